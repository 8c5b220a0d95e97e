package cpu

import "fspda/cpu/isa"

import (
	"fmt"
	"testing"
)

// What is written is what was read, up to the last whole step, for each mix and in every code.
func TestTraffic(t *testing.T) {
	for _, mix := range [][2]int{{1, 0}, {1, 1}, {3, 2}, {6, 1}} {
		for _, n := range []int{trafficStep, 3 * trafficStep, vecBlock + trafficStep} {
			words := func() (v [][]float32) {
				for k := range mix[0] + mix[1] {
					x := aligned(n + 16)
					copy(x, mixed(uint64(k), n+16, 10))
					v = append(v, x)
				}
				return v
			}
			want := words()
			trafficGo(want, mix[0], n)
			for _, code := range isa.Available() {
				got := words()
				isa.With(code, func() { traffic(got, mix[0], n, 128) })
				for k := range got {
					for i, w := range want[k] {
						if !same(got[k][i], w) {
							t.Fatalf("%v in %v, %d numbers: word %d of vector %d is %x, want %x", mix, code, n, i, k,
								got[k][i], w)
						}
					}
				}
			}
		}
	}
}

func ExampleTraffic() {
	const n = 1 << 14
	var v [][]float32
	for range 3 {
		v = append(v, aligned(n))
	}
	fmt.Println(Traffic(v, 2) > 0) // two vectors read, one written
	// Output: true
}
