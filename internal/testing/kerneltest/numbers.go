package kerneltest

import (
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/rng"
)

// Noise returns n numbers uniform in [-1,1), none of them zero. Different names give different
// numbers.
func Noise(name string, n int) []float32 {
	s, v := rng.New(0, "rate "+name), kernel.Aligned(n)
	for i := range v {
		for v[i] == 0 {
			v[i] = 2*s.Float32() - 1
		}
	}
	return v
}

// Bytes returns a matrix of random bytes whose rows lie in any order, some of them twice, and the
// numbers that it stands for.
func Bytes(rows, cols int) (kernel.ByteMatrix, []float32) {
	s := rng.New(3, "coded", uint64(rows), uint64(cols))
	v := kernel.ByteMatrix{Bytes: make([]uint8, (rows+3)*cols), Scale: 0.0123, Shift: -0.77}
	for i := range v.Bytes {
		v.Bytes[i] = uint8(s.IntN(256))
	}
	for i := range rows + kernel.ExtraRows {
		v.Starts = append(v.Starts, s.IntN(rows+3)*cols)
		if i >= rows {
			v.Starts[i] = v.Starts[rows-1]
		}
	}
	numbers := make([]float32, rows*cols)
	for i, first := range v.Starts[:rows] {
		for j, b := range v.Bytes[first:][:cols] {
			numbers[i*cols+j] = v.Number(b)
		}
	}
	return v, numbers
}

// Same reports whether two numbers have the same bits, or are both NaN.
func Same(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y }

// Compare fails the test at the first number whose bits differ. All NaN are equal.
func Compare(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if !Same(got[i], want[i]) {
			t.Fatalf("%s: number %d of %d is %v (%08x), want %v (%08x)",
				what, i, len(want), got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// Panic returns the text that f panics with, and fails the test if it does not panic.
func Panic(t *testing.T, f func()) (text string) {
	t.Helper()
	defer func() {
		t.Helper()
		r := recover()
		if r == nil {
			t.Error("no panic")
			return
		}
		text, _ = r.(string)
	}()
	f()
	return ""
}
