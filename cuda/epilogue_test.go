package cuda

import (
	"slices"
	"testing"

	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/driver/drivertest"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/model"
)

// Dense layers of 16 bits go through cuBLASLt where it is there, bias and sums included, and through cuBLAS and kernels where it is not; both have
// the same gradient but for roundings. In fp32 nothing does.
func TestEpilogues(t *testing.T) {
	net := exampleNetworks(t)["mlp"]
	b := exampleBatch(net)
	gradients := map[bool][]float32{}
	for _, c := range []struct {
		precision Precision
		there     bool
		want      int // three layers, forward and backward, sent once and captured once
	}{{BF16, true, 12}, {BF16, false, 0}, {FP32, true, 0}} {
		m, p := imaginaryParts(t, drivertest.Options{})
		plain, ran := p.tools, 0
		p.tools = func(g driver.Properties) (l tools, err error) {
			if l, err = plain(g); !c.there {
				l.lt = nil
				return l, err
			}
			multiply := l.lt.Matmul
			l.lt.Matmul = func(h, desc cublas.Raw, alpha *float32, a driver.Pointer, la cublas.Raw, b driver.Pointer, lb cublas.Raw, beta *float32, c driver.Pointer, lc cublas.Raw,
				d driver.Pointer, ld cublas.Raw, algo *cublas.Algo, room driver.Pointer, n uintptr, s driver.Stream) cublas.Status {
				ran++
				return multiply(h, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, room, n, s)
			}
			return l, err
		}
		d, err := open(p, WithPrecision(c.precision))
		if err != nil {
			t.Fatal(err)
		}
		grad, _ := gradientOf(t, net, d, b)
		if c.precision == BF16 {
			gradients[c.there] = grad
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		m.NoLeaks(t)
		if ran != c.want {
			t.Errorf("%s, cuBLASLt there: %v: %d products of it, want %d", c.precision, c.there, ran, c.want)
		}
	}
	if far := distance(gradients[true], gradients[false]); far == 0 || far > 0.01 {
		t.Errorf("gradients with and without cuBLASLt differ by %.2g of their length, want some roundings", far)
	}
}

// Biases are rounded only for what adds them in 16 bits: those of the logits stay float32.
func TestBiasFormat(t *testing.T) {
	net := exampleNetworks(t)["mlp"]
	code, err := net.Plan(4, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	for _, epilogues := range []bool{false, true} {
		p, err := planShort(code.Code(), kernels.BF16, false, epilogues, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []kernels.Element
		for _, task := range p.tasks {
			if task.work == compute && (task.call.Kernel == device.Linear || task.call.Kernel == device.LinearSigmoid) {
				got = append(got, task.in[2].element)
			}
		}
		want := []kernels.Element{kernels.F32, kernels.F32, kernels.F32}
		if epilogues {
			want = []kernels.Element{kernels.BF16, kernels.BF16, kernels.F32}
		}
		if !slices.Equal(got, want) {
			t.Errorf("epilogues %v: biases in %v, want %v", epilogues, got, want)
		}
	}
}
