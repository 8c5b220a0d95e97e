package vec

import (
	"fmt"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// The written vectors hold what was read, up to the last whole step, for each number of vectors and
// every instruction set.
func TestBandwidth(t *testing.T) {
	for _, mix := range [][2]int{{1, 0}, {1, 1}, {3, 2}, {6, 1}} {
		for _, n := range []int{bandwidthStep, 3 * bandwidthStep, vecBlock + bandwidthStep} {
			words := func() (v [][]float32) {
				for k := range mix[0] + mix[1] {
					x := kernel.Aligned(n + 16)
					copy(x, randomNumbers(uint64(k), n+16, 10))
					v = append(v, x)
				}
				return v
			}
			want := words()
			bandwidthGo(want, mix[0], n)
			for _, code := range isa.Available() {
				got := words()
				isa.With(code, func() { bandwidth(got, mix[0], n, 128) })
				for k := range got {
					for i, w := range want[k] {
						if !kerneltest.Same(got[k][i], w) {
							t.Fatalf("%v in %v, %d numbers: word %d of vector %d is %x, want %x", mix, code, n, i, k,
								got[k][i], w)
						}
					}
				}
			}
		}
	}
}

func ExampleBandwidth() {
	const n = 1 << 14
	var v [][]float32
	for range 3 {
		v = append(v, kernel.Aligned(n))
	}
	fmt.Println(Bandwidth(v, 2) > 0) // two vectors read, one written
	// Output: true
}
