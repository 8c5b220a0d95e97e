package cpu

import (
	"fmt"
	"math"
	"math/big"
	"testing"
)

// The order of additions is a promise: a checkpoint of one machine must be met by another. The reference keeps four sums by
// index and no loop is unrolled.
func TestDotOrder(t *testing.T) {
	for n := range 40 {
		x, y := noise("x", n), noise("y", n)
		var s [4]float64
		for k := range x {
			slot := k % 4
			if k >= n/4*4 {
				slot = 0
			}
			s[slot] += float64(x[k]) * float64(y[k])
		}
		want := (s[0] + s[1]) + (s[2] + s[3])
		if got := New().Dot(&Vector{x}, &Vector{y}); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

// Against exact arithmetic.
func TestDotExact(t *testing.T) {
	const n = 5000
	x, y := noise("x", n), noise("y", n)
	sum, size := new(big.Float).SetPrec(200), 0.0
	for k := range x {
		p := float64(x[k]) * float64(y[k])
		sum.Add(sum, big.NewFloat(p))
		size += math.Abs(p)
	}
	want, _ := sum.Float64()
	if got := dot(x, y); math.Abs(got-want) > n/4*0x1p-53*size {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkDot(b *testing.B) {
	for _, n := range []int{79510, 1 << 23} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			x, y := noise("x", n), noise("y", n)
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				dot(x, y)
			}
		})
	}
}
