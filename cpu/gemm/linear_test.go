package gemm

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// The three kernels satisfy ⟨dy, x·Wᵀ⟩ = ⟨dy·W, x⟩ = ⟨dyᵀ·x, W⟩: gradients are the adjoints of the
// forward map.
func TestLinearAdjoint(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {5, 3, 7}, {65, 129, 33}, {70, 10, 200}} {
		m, n, k := s[0], s[1], s[2]
		x, w, dy := kerneltest.Noise("x", m*k), kerneltest.Noise("w", n*k), kerneltest.Noise("dy", m*n)
		y, dx, dw, db := make([]float32, m*n), make([]float32, m*k), make([]float32, n*k), make([]float32, n)
		for name, o := range map[device.Kernel]*kernel.Args{
			device.Linear:      {In: [][]float32{x, w, make([]float32, n)}, Out: [][]float32{y}, Dims: s[:]},
			device.LinearGradX: {In: [][]float32{dy, w}, Out: [][]float32{dx}, Dims: s[:]},
			device.LinearGradW: {In: [][]float32{x, dy}, Out: [][]float32{dw, db}, Dims: s[:]},
		} {
			if err := Kernels[name].Run(o); err != nil {
				t.Fatal(err)
			}
		}
		forward, byX, byW := inner(dy, y), inner(dx, x), inner(dw, w)
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
		x, w, bias, y, db := kerneltest.Noise("x", m*k), kerneltest.Noise("w", n*k), kerneltest.Noise("b",
			n), kerneltest.Noise("y", m*n), make([]float32, n)
		for _, c := range []struct {
			name string
			run  device.Kernel
			o    kernel.Args
		}{
			{"forward", device.Linear, kernel.Args{In: [][]float32{x, w, bias},
				Out: [][]float32{make([]float32, m*n)}}},
			{"gradX", device.LinearGradX, kernel.Args{In: [][]float32{y, w}, Out: [][]float32{make([]float32, m*k)}}},
			{"gradW", device.LinearGradW, kernel.Args{In: [][]float32{x, y},
				Out: [][]float32{make([]float32, n*k), db}}},
		} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", c.name, m, n, k), func(b *testing.B) {
				c.o.Dims = s[:]
				for b.Loop() {
					if err := Kernels[c.run].Run(&c.o); err != nil {
						b.Fatal(err)
					}
				}
				reportFLOPs(b, 2*float64(m)*float64(n)*float64(k))
			})
		}
	}
}

// inner returns the scalar product.
func inner(x, y []float32) float64 {
	sum := 0.0
	for i, v := range x {
		sum += float64(v) * float64(y[i])
	}
	return sum
}
