package cpu

import (
	"fmt"
	"math"
	"testing"

	"fspda/device"
)

// The three kernels are tied by ⟨dy, x·Wᵀ⟩ = ⟨dy·W, x⟩ = ⟨dyᵀ·x, W⟩: gradients are the transposes
// of the forward map.
func TestLinearAdjoint(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {5, 3, 7}, {65, 129, 33}, {70, 10, 200}} {
		m, n, k := s[0], s[1], s[2]
		x, w, dy := noise("x", m*k), noise("w", n*k), noise("dy", m*n)
		y, dx, dw, db := make([]float32, m*n), make([]float32, m*k), make([]float32, n*k), make([]float32, n)
		for kernel, o := range map[device.Kernel]*operands{
			device.Linear:      {in: [][]float32{x, w, make([]float32, n)}, out: [][]float32{y}, dims: s[:]},
			device.LinearGradX: {in: [][]float32{dy, w}, out: [][]float32{dx}, dims: s[:]},
			device.LinearGradW: {in: [][]float32{x, dy}, out: [][]float32{dw, db}, dims: s[:]},
		} {
			if err := linearKernels[kernel].run(o); err != nil {
				t.Fatal(err)
			}
		}
		forward, byX, byW := dot(dy, y), dot(dx, x), dot(dw, w)
		bound := 1e-6 * float64(m*n) * float64(k)
		if math.Abs(forward-byX) > bound || math.Abs(forward-byW) > bound {
			t.Errorf("%v: ⟨dy,y⟩ %v, ⟨dx,x⟩ %v, ⟨dW,W⟩ %v", s, forward, byX, byW)
		}
	}
}

// BenchmarkLinear has the shapes of the network of the paper's first figure, batch 256.
func BenchmarkLinear(b *testing.B) {
	for _, s := range [][3]int{{256, 100, 784}, {256, 10, 100}} {
		m, n, k := s[0], s[1], s[2]
		x, w, bias, y, db := noise("x", m*k), noise("w", n*k), noise("b", n), noise("y", m*n), make([]float32, n)
		for _, c := range []struct {
			name string
			run  device.Kernel
			o    operands
		}{
			{"forward", device.Linear, operands{in: [][]float32{x, w, bias}, out: [][]float32{make([]float32, m*n)}}},
			{"gradX", device.LinearGradX, operands{in: [][]float32{y, w}, out: [][]float32{make([]float32, m*k)}}},
			{"gradW", device.LinearGradW, operands{in: [][]float32{x, y}, out: [][]float32{make([]float32, n*k), db}}},
		} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", c.name, m, n, k), func(b *testing.B) {
				c.o.dims = s[:]
				for b.Loop() {
					if err := linearKernels[c.run].run(&c.o); err != nil {
						b.Fatal(err)
					}
				}
				reportFLOPs(b, 2*float64(m)*float64(n)*float64(k))
			})
		}
	}
}
