package vec

import (
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// bench times a kernel on operands of n numbers.
func bench(b *testing.B, n int, run func(*kernel.Args) error, inputs, outputs int) {
	o := &kernel.Args{Dims: []int{n}, Attr: 0.5}
	for i := range inputs {
		o.In = append(o.In, kerneltest.Noise(string(rune('a'+i)), n))
	}
	for range outputs {
		o.Out = append(o.Out, make([]float32, n))
	}
	b.SetBytes(int64(4 * n * (inputs + outputs)))
	for b.Loop() {
		if err := run(o); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/number")
}

// run1 runs an element-wise kernel with one output.
func run1(t *testing.T, run func(*kernel.Args) error, in ...[]float32) []float32 {
	t.Helper()
	o := &kernel.Args{In: in, Out: [][]float32{make([]float32, len(in[0]))}, Dims: []int{len(in[0])}, Attr: 0.5}
	if err := run(o); err != nil {
		t.Fatal(err)
	}
	return o.Out[0]
}

func TestSigmoid(t *testing.T) {
	var x []float32
	for v := float32(-110); v < 110; v += 0.0131 {
		x = append(x, v)
	}
	for i, y := range run1(t, sigmoid, x) {
		want := 1 / (1 + math.Exp(-float64(x[i])))
		if u := ulps(y, want); u > 0.6 {
			t.Fatalf("sigmoid(%v) is %v, want %v: wrong by %.2f ulp", x[i], y, want, u)
		}
	}
}

// The gradient is the derivative of the function itself.
func TestSigmoidGrad(t *testing.T) {
	x := kerneltest.Noise("sigmoid", 100)
	y := run1(t, sigmoid, x)
	dy := kerneltest.Noise("dy", 100)
	for i, dx := range run1(t, sigmoidGrad, y, dy) {
		const h = 1e-5
		f := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
		want := float64(dy[i]) * (f(float64(x[i])+h) - f(float64(x[i])-h)) / (2 * h)
		if math.Abs(float64(dx)-want) > 1e-7 {
			t.Errorf("x = %v: gradient %v, by differences %v", x[i], dx, want)
		}
	}
}

func TestReLU(t *testing.T) {
	nan := float32(math.NaN())
	y := run1(t, relu, []float32{-1, float32(math.Copysign(0, -1)), 0, 2, nan})
	if y[0] != 0 || math.Signbit(float64(y[1])) || y[1] != 0 || y[2] != 0 || y[3] != 2 || y[4] == y[4] {
		t.Errorf("relu gives %v", y)
	}
	dx := run1(t, reluGrad, y, []float32{nan, nan, nan, 5, 6})
	if dx[0] != 0 || dx[1] != 0 || dx[2] != 0 || dx[3] != 5 || dx[4] != 0 {
		t.Errorf("relu-grad gives %v", dx)
	}
}

func BenchmarkSigmoid(b *testing.B)     { bench(b, 25600, sigmoid, 1, 1) }
func BenchmarkSigmoidGrad(b *testing.B) { bench(b, 25600, sigmoidGrad, 2, 1) }
func BenchmarkReLU(b *testing.B)        { bench(b, 25600, relu, 1, 1) }
func BenchmarkReLUGrad(b *testing.B)    { bench(b, 25600, reluGrad, 2, 1) }
