package cpu

import (
	"fmt"
	"math"
	"testing"
)

// The three kernels are tied by ⟨dy, x·Wᵀ⟩ = ⟨dy·W, x⟩ = ⟨dyᵀ·x, W⟩: gradients are the transposes
// of the forward map.
func TestLinearAdjoint(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {5, 3, 7}, {65, 129, 33}, {70, 10, 200}} {
		m, n, k := s[0], s[1], s[2]
		x, w, dy := noise("x", m*k), noise("w", n*k), noise("dy", m*n)
		y, dx, dw, db := make([]float32, m*n), make([]float32, m*k), make([]float32, n*k), make([]float32, n)
		for kernel, o := range map[string]*operands{
			"linear":        {in: [][]float32{x, w, make([]float32, n)}, out: [][]float32{y}, dims: s[:]},
			"linear-grad-x": {in: [][]float32{dy, w}, out: [][]float32{dx}, dims: s[:]},
			"linear-grad-w": {in: [][]float32{x, dy}, out: [][]float32{dw, db}, dims: s[:]},
		} {
			run := map[string]func(*operands) error{"linear": linear, "linear-grad-x": linearGradX,
				"linear-grad-w": linearGradW}[kernel]
			if err := run(o); err != nil {
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

// Sums of columns are rounded once: 1 is not lost beside 2^24.
func TestColumnSums(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 17} {
		const m = 6
		a, dst := make([]float32, m*n), make([]float32, n)
		for j := range n {
			for i, v := range []float32{1 << 24, 1, 1, 1, float32(j), -1 << 24} {
				a[i*n+j] = v
			}
		}
		columnSums(dst, a, m, n)
		for j, got := range dst {
			if want := float32(3 + j); got != want {
				t.Errorf("n = %d: column %d is %v, want %v", n, j, got, want)
			}
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
			run  func(*operands) error
			o    operands
		}{
			{"forward", linear, operands{in: [][]float32{x, w, bias}, out: [][]float32{make([]float32, m*n)}}},
			{"gradX", linearGradX, operands{in: [][]float32{y, w}, out: [][]float32{make([]float32, m*k)}}},
			{"gradW", linearGradW, operands{in: [][]float32{x, y}, out: [][]float32{make([]float32, n*k), db}}},
		} {
			b.Run(fmt.Sprintf("%s/%dx%dx%d", c.name, m, n, k), func(b *testing.B) {
				c.o.dims = s[:]
				for b.Loop() {
					if err := c.run(&c.o); err != nil {
						b.Fatal(err)
					}
				}
				reportFLOPs(b, 2*float64(m)*float64(n)*float64(k))
			})
		}
	}
}
