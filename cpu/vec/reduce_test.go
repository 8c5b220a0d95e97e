package vec

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// The order of additions is fixed, since a run may resume from a checkpoint on another machine. The
// reference keeps the partial sums of a block by index, and adds them pair by pair.
func TestDotOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 100, 4095, 4096, 4097, 9000} {
		x, y := kerneltest.Noise("x", n), kerneltest.Noise("y", n)
		want := 0.0
		for from := 0; from < n; from += 4096 {
			var s [32]float64
			for k := from; k < min(n, from+4096); k++ {
				s[k%32] += float64(x[k]) * float64(y[k])
			}
			want += treeOf(s[:])
		}
		var got float64
		if (Ops{}).Do(device.Dot(&got, &Vector{x}, &Vector{y})); math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("n = %d: %v, want %v", n, got, want)
		}
	}
}

// treeOf adds recursively: the even and the odd entries are joined by the last addition.
func treeOf(s []float64) float64 {
	if len(s) == 1 {
		return s[0]
	}
	var even, odd []float64
	for i := 0; i < len(s); i += 2 {
		even, odd = append(even, s[i]), append(odd, s[i+1])
	}
	return treeOf(even) + treeOf(odd)
}

// The error is bounded compared with exact arithmetic.
func TestDotExact(t *testing.T) {
	const n = 5000
	x, y := kerneltest.Noise("x", n), kerneltest.Noise("y", n)
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
	for _, n := range []int{paperDim, resnetDim} {
		x, y := longVector("x", n).Data, longVector("y", n).Data
		for name, f := range map[string]func(){"copy": func() { copy(x, y) }, "dot": func() { dot(x, y) }} {
			b.Run(fmt.Sprintf("n=%d/%s", n, name), func(b *testing.B) {
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					f()
				}
			})
		}
	}
}
