package norm

import (
	"fmt"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// fenced copies operands to memory that ends right behind each of them.
func fenced(t *testing.T, o *kernel.Args) *kernel.Args {
	f := &kernel.Args{Dims: o.Dims, Attr: o.Attr}
	move := func(from [][]float32) (to [][]float32) {
		for _, v := range from {
			w := kerneltest.Fenced(t, len(v))
			copy(w, v)
			to = append(to, w)
		}
		return to
	}
	f.In, f.Out = move(o.In), move(o.Out)
	return f
}

// No operand is read or written behind its last number.
func TestNormStaysInBounds(t *testing.T) {
	for _, k := range isa.Available() {
		for _, s := range [][2]int{{1, 1}, {2, 7}, {3, 8}, {2, 9}, {3, 15}, {1, 17}, {5, 33}, {2, 63}, {2, 65},
			{3, 100}, {600, 3}} {
			for _, kernel := range append(append(append([]device.Kernel{}, forwardNorms...), backwardNorms...),
				givenNorms...) {
				want := normCase(kernel, s[0], s[1], 0, 0)
				got := fenced(t, want)
				isa.With(isa.Go, func() { run(t, kernel, want) })
				isa.With(k, func() { run(t, kernel, got) })
				for i := range want.Out {
					kerneltest.Compare(t, fmt.Sprint(k, kernel, s, i), got.Out[i], want.Out[i])
				}
			}
		}
		for _, dims := range [][]int{{1, 1, 1, 1, 1, 1, 0}, {2, 3, 4, 5, 3, 2, 1}, {1, 5, 5, 17, 3, 1, 2},
			{1, 4, 7, 70, 2, 3, 0}} {
			for _, kernel := range []device.Kernel{device.MaxPool, device.MaxPoolGrad} {
				want := poolCase(kernel, dims, 0, 0)
				got := fenced(t, want)
				isa.With(isa.Go, func() { run(t, kernel, want) })
				isa.With(k, func() { run(t, kernel, got) })
				for i := range want.Out {
					kerneltest.Compare(t, fmt.Sprint(k, kernel, dims, i), got.Out[i], want.Out[i])
				}
			}
		}
	}
}
