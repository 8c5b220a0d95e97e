package cuda

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"fspda/cpu"
	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// Dense layers of 16 bits use cuBLASLt for bias and sums where it exists and their bias is aligned,
// and else cuBLAS and kernels. Both have the same gradient up to rounding. In fp32 no layer uses
// cuBLASLt.
func TestEpilogues(t *testing.T) {
	net := exampleNetworks(t)["mlp"]
	b := exampleBatch(net)
	gradients := map[bool][]float32{}
	for _, c := range []struct {
		precision Precision
		there     bool
		want      int // two of three layers, forward and backward, sent once and captured once
	}{{BF16, true, 8}, {BF16, false, 0}, {FP32, true, 0}} {
		m, p := fakeBackend(t, fakegpu.Options{})
		plain, ran := p.libraries, 0
		p.libraries = func(g driver.Properties) (l libraries, err error) {
			if l, err = plain(g); !c.there {
				l.lt = nil
				return l, err
			}
			multiply := l.lt.Matmul
			l.lt.Matmul = func(h, desc cublas.Ptr, alpha *float32, a driver.Pointer, la cublas.Ptr, b driver.Pointer,
				lb cublas.Ptr, beta *float32, c driver.Pointer, lc cublas.Ptr,
				d driver.Pointer, ld cublas.Ptr, algo *cublas.Algo, workspace driver.Pointer, n uintptr,
				s driver.Stream) cublas.Status {
				ran++
				return multiply(h, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, workspace, n, s)
			}
			return l, err
		}
		d, err := open(p, WithPrecision(c.precision), withoutGroups)
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
		m.CheckLeaks(t)
		if ran != c.want {
			t.Errorf("%s, cuBLASLt there: %v: %d products of it, want %d", c.precision, c.there, ran, c.want)
		}
	}
	if far := distance(gradients[true], gradients[false]); far == 0 || far > 0.01 {
		t.Errorf("gradients with and without cuBLASLt differ by %.2g of their length, want some roundings", far)
	}
}

// withoutGroups gives each gradient launches of its own.
func withoutGroups(d *Device) error { d.noGroups = true; return nil }

// reluNetwork is a network of three layers with ReLU, of which the second has rows longer than a
// row of a mask is aligned to.
func reluNetwork(t *testing.T) *model.Network {
	t.Helper()
	net, err := model.MLP(model.MLPOptions{Inputs: 36, Classes: 4, Hidden: []int{9, 131}, Activation: "relu",
		WeightDecay: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// epilogueCounts opens a GPU whose cuBLASLt counts products by their epilogue.
func epilogueCounts(t *testing.T, of ltBehaviour, options ...Option) (*Device, map[cublas.Epilogue]int) {
	t.Helper()
	m, p := fakeBackend(t, fakegpu.Options{})
	counts, epilogues := map[cublas.Epilogue]int{}, map[cublas.Ptr]cublas.Epilogue{}
	plain := p.libraries
	p.libraries = func(g driver.Properties) (libraries, error) {
		l, err := plain(g)
		l.lt = newFakeLt(m, of)
		set, multiply := l.lt.SetDesc, l.lt.Matmul
		l.lt.SetDesc = func(d cublas.Ptr, at int32, v unsafe.Pointer, n uintptr) cublas.Status {
			if at == 7 {
				epilogues[d] = *(*cublas.Epilogue)(v)
			}
			return set(d, at, v, n)
		}
		l.lt.Matmul = func(h, desc cublas.Ptr, alpha *float32, a driver.Pointer, la cublas.Ptr, b driver.Pointer,
			lb cublas.Ptr, beta *float32, c driver.Pointer, lc cublas.Ptr,
			d driver.Pointer, ld cublas.Ptr, algo *cublas.Algo, workspace driver.Pointer, n uintptr,
			s driver.Stream) cublas.Status {
			counts[epilogues[desc]]++
			return multiply(h, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, workspace, n, s)
		}
		return l, err
	}
	d, err := open(p, append(options, withoutGroups)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		m.CheckLeaks(t)
	})
	return d, counts
}

// ReLU is computed by cuBLASLt where that keeps NaN, and its gradient by a mask where the order of
// the mask's bits is known; the gradient has the bits that kernels give it.
func TestReLUEpilogues(t *testing.T) {
	net := reluNetwork(t)
	b := exampleBatch(net)
	want, wantLoss := gradientOf(t, net, cpu.New(), b)
	for _, p := range []Precision{TF32, BF16, FP16} {
		var plain []float32
		// Two hidden layers and their gradients, sent once and captured once, after a trial of each
		// kind.
		for _, c := range []struct {
			of                     ltBehaviour
			masked, withMask, relu int // products
		}{{ltBehaviour{oddBits: true}, 2, 2, 2}, {ltBehaviour{}, 6, 2, 2}, {ltBehaviour{keepsNaN: true}, 4, 6,
			0}, {ltBehaviour{keepsNaN: true, oddBits: true}, 4, 6, 0}} {
			d, counts := epilogueCounts(t, c.of, WithPrecision(p))
			grad, loss := gradientOf(t, net, d, b)
			// in fp16 a unit that is near 0 flips
			if !(math.Abs(loss-wantLoss) <= 0.02*wantLoss) || !(distance(grad, want) <= 0.1) {
				t.Errorf("%s, %+v: loss %v, want %v; the gradient differs by %.2g of its length", p, c.of, loss,
					wantLoss, distance(grad, want))
			}
			if counts[cublas.EpilogueReLUGrad] != c.masked || counts[cublas.EpilogueReLUMaskBias] != c.withMask ||
				counts[cublas.EpilogueReLUBias] != c.relu {
				t.Errorf("%s, %+v: products by epilogue %v, want %+v", p, c.of, counts, c)
			}
			if plain == nil {
				plain = grad
			}
			if !slices.Equal(grad, plain) {
				t.Errorf("%s, %+v: the gradient differs by %.2g from that of kernels", p, c.of, distance(grad, plain))
			}
		}
	}
}

// NaN passes ReLU, whatever the library does: the loss of a network that has diverged is NaN.
func TestReLUKeepsNaN(t *testing.T) {
	net := reluNetwork(t)
	for _, of := range []ltBehaviour{{}, {oddBits: true}, {keepsNaN: true}} {
		d, _ := epilogueCounts(t, of, WithPrecision(BF16))
		plan, err := net.Plan(4, model.Train)
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Load(plan.Code())
		if err != nil {
			t.Fatal(err)
		}
		x, g := d.NewVector(net.Dim()), d.NewVector(net.Dim())
		params := net.Init(1)
		params[0] = float32(math.NaN())
		d.Write(x, params)
		out := make([]float64, len(plan.Code().Results))
		if err := p.Run(x, g, exampleBatch(net), out); err != nil || !math.IsNaN(out[0]) {
			t.Errorf("%+v: loss %v (%v), want NaN", of, out[0], err)
		}
	}
}

// Biases are rounded only where they are added in 16 bits. The biases of the logits stay float32.
func TestBiasFormat(t *testing.T) {
	net := exampleNetworks(t)["mlp"]
	code, err := net.Plan(4, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	for _, epilogues := range []bool{false, true} {
		p, err := compiler.Compile(code.Code(), compiler.Options{Precision: BF16, Epilogues: epilogues})
		if err != nil {
			t.Fatal(err)
		}
		var got []kernels.Element
		for _, task := range p.Tasks {
			if task.Work == compiler.Compute && (task.Call.Kernel == device.Linear ||
				task.Call.Kernel == device.LinearSigmoid) {
				got = append(got, task.In[2].Element)
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

// GELU after a product and its gradient are computed by cuBLASLt, where it has algorithms for them
// and they pass the trial: not where it approximates GELU, and not for the form with the error
// function. Both ways have the CPU's gradient up to rounding.
func TestGELUEpilogues(t *testing.T) {
	for _, c := range []struct {
		precision Precision
		form      string
		noBias    bool
		of        ltBehaviour
		want      map[cublas.Epilogue]int // products of two layers, sent once and captured once, and one trial
	}{
		{BF16, "tanh", false, ltBehaviour{},
			map[cublas.Epilogue]int{cublas.EpilogueGELUBias: 5, cublas.EpilogueGELUGrad: 5}},
		{FP16, "tanh", true, ltBehaviour{},
			map[cublas.Epilogue]int{cublas.EpilogueGELU: 5, cublas.EpilogueGELUGrad: 5}},
		{BF16, "tanh", false, ltBehaviour{sigmoid: true},
			map[cublas.Epilogue]int{cublas.EpilogueGELUBias: 1, cublas.EpilogueGELUGrad: 1}},
		{BF16, "tanh", false, ltBehaviour{noGELU: true}, nil},
		{BF16, "erf", false, ltBehaviour{}, nil},
		{TF32, "tanh", false, ltBehaviour{}, nil},
	} {
		o := model.Transformer{Layers: 2, Heads: 2, Width: 24, Block: 6, GELU: c.form, NoBias: c.noBias}
		net, err := model.Open("gpt-nano", model.Options{Classes: 11, Transformer: o})
		if err != nil {
			t.Fatal(err)
		}
		d, counts := epilogueCounts(t, c.of, WithPrecision(c.precision))
		b := device.Batch{Length: 6}
		for i := range 12 {
			b.X, b.Y = append(b.X, float32(i%11)), append(b.Y, int32(i*5%11))
		}
		want, wantLoss := gradientOf(t, net, cpu.New(), b)
		grad, loss := gradientOf(t, net, d, b)
		if far := distance(grad, want); !(math.Abs(loss-wantLoss) <= 0.01*wantLoss) || !(far <= 0.05) {
			t.Errorf("%+v: loss %v, want %v; the gradient differs by %.2g of its length", c, loss, wantLoss, far)
		}
		for _, e := range []cublas.Epilogue{cublas.EpilogueGELU, cublas.EpilogueGELUBias, cublas.EpilogueGELUGrad} {
			if counts[e] != c.want[e] {
				t.Errorf("%+v: products by epilogue %v", c, counts)
			}
		}
	}
}
