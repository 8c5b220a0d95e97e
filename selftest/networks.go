package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
)

// example is a network with a batch of noise. A language model has no shape: its batch is windows
// of random tokens.
type example struct {
	name     string
	what     string // added to the name of its checks
	shape    []int
	classes  int
	batch    int
	residual bool
	sizes    model.Transformer
}

func (t Target) examples() []example {
	if t.Small {
		return []example{{name: "mlp", shape: []int{6, 6, 1}, classes: 4, batch: 4},
			{name: "resnet20", shape: []int{8, 8, 3}, classes: 4, batch: 4, residual: true},
			{name: "gpt-nano", classes: 7, batch: 2,
				sizes: model.Transformer{Layers: 2, Heads: 2, Width: 12, Block: 9}},
			{name: "gpt-nano", what: " of 2,061 tokens", classes: 2061, batch: 1,
				sizes: model.Transformer{Layers: 1, Heads: 2, Width: 16, Block: 9}},
			{name: "llama-nano", classes: 7, batch: 1,
				sizes: model.Transformer{Layers: 1, Heads: 1, Width: 6, Block: 70}}}
	}
	return []example{{name: "mlp", shape: []int{28, 28, 1}, classes: 10, batch: 256},
		{name: "resnet18", shape: []int{64, 64, 3}, classes: 10, batch: 8, residual: true},
		{name: "resnet50", shape: []int{64, 64, 3}, classes: 10, batch: 4, residual: true},
		{name: "gpt-nano", classes: 65, batch: 12}, // windows of one tile of attention, and of several
		{name: "gpt-nano", what: " of GPT-2's vocabulary", classes: 50257, batch: 1},
		{name: "llama-nano", classes: 65, batch: 3, sizes: model.Transformer{Block: 300}}}
}

func (t Target) networks() (all []Check) {
	for _, e := range t.examples() {
		compare := func(context.Context) (string, error) { return t.compare(e) }
		differentiate := func(context.Context) (string, error) { return t.differentiate(e) }
		all = append(all, Check{"networks/" + e.name + e.what + " by the CPU", compare},
			Check{"networks/" + e.name + e.what + " differences", differentiate})
	}
	return all
}

func (e example) open() (*model.Network, device.Batch, error) {
	o := model.Options{Shape: e.shape, Classes: e.classes, Loss: model.LossOptions{WeightDecay: 1e-4},
		Transformer: e.sizes}
	if e.shape != nil && !e.residual {
		o.Hidden = []int{100}
	}
	net, err := model.Open(e.name, o)
	if err != nil {
		return nil, device.Batch{}, err
	}
	if net.Tokens() {
		return net, e.windows(net.Inputs()), nil
	}
	b := device.Batch{X: make([]float32, e.batch*net.Inputs()), Y: make([]int32, e.batch)}
	s := rng.New(1, "selftest")
	for i := range b.X {
		b.X[i] = float32(s.Norm())
	}
	for i := range b.Y {
		b.Y[i] = int32(i % e.classes)
	}
	return net, b, nil
}

func (e example) windows(length int) device.Batch {
	b, s := device.Batch{Length: length, Tokens: make([]uint16, e.batch*length+1)}, rng.New(1, "selftest")
	for i := range b.Tokens {
		b.Tokens[i] = uint16(s.IntN(e.classes))
	}
	for i := range e.batch {
		b.At = append(b.At, int64(i*length))
	}
	return b
}

// compare compares a gradient and a loss with the CPU's, and with a second run.
func (t Target) compare(e example) (string, error) {
	net, b, err := e.open()
	if err != nil {
		return "", err
	}
	host := cpu.New(cpu.Threads(runtime.GOMAXPROCS(0)))
	defer host.Close()
	want, wantLoss, err := gradient(net, host, b)
	if err != nil {
		return "", fmt.Errorf("on the CPU: %w", err)
	}
	got, loss, err := gradient(net, t.Device, b)
	if err != nil {
		return "", err
	}
	again, _, err := gradient(net, t.Device, b)
	if err != nil {
		return "", err
	}
	bounds := BoundsOf(t.Precision)
	bound := bounds.MLP
	if e.residual {
		bound = bounds.Residual
	}
	far, farLoss := distance(got, want), math.Abs(loss-wantLoss)/math.Abs(wantLoss)
	switch {
	case !(far <= bound):
		err = fmt.Errorf("the gradient differs from the CPU's by %.2g of its norm, at most %.2g is allowed", far, bound)
	case !(farLoss <= max(bounds.Loss, bound/10)):
		err = fmt.Errorf("the loss is %v, on the CPU %v: at most %.2g relative difference is allowed", loss, wantLoss,
			max(bounds.Loss, bound/10))
	case !slices.Equal(got, again):
		err = errors.New("a second gradient differs from the first")
	}
	return fmt.Sprintf("gradient within %.1e of %.0e, loss %.1e", far, bound, farLoss), err
}

// damped is the initial scale of the last batch norm of a residual block, which is 1 in networks.
// With 1, the gradient of ResNet-50 at 64×64 pixels and 4 examples changes by 0.016 of its norm if
// parameters change in their last bit, and by 0.7 if they are rounded to 11 bits, so no error could
// be seen; with this value it changes by 2e-6 and 0.06.
const damped = 0.1

// start returns the parameters at which a network's gradient is computed.
func start(net *model.Network) []float32 {
	x := net.Init(1)
	for _, p := range net.Layout().Tensors() {
		if endsBlock(net.Layout(), p.Name) {
			for i := range p.Size {
				x[p.Offset+i] *= damped
			}
		}
	}
	return x
}

// endsBlock reports whether a tensor is the scale of the last batch norm of a residual block.
func endsBlock(l *model.Layout, name string) bool {
	block, second := strings.CutSuffix(name, ".bn2.weight")
	if !second {
		return strings.HasSuffix(name, ".bn3.weight")
	}
	_, third := l.Tensor(block + ".bn3.weight")
	return !third
}

// gradient returns the gradient at the network's start. It is computed three times, because a
// device may run later ones in another way.
func gradient(net *model.Network, dev device.Device, b device.Batch) (grad []float32, loss float64, err error) {
	m := model.NewEngine(net, dev)
	x, g := dev.NewVector(net.Dim()), dev.NewVector(net.Dim())
	dev.Write(x, start(net))
	for range 3 {
		if loss, err = m.Grad(g, x, b); err != nil {
			return nil, 0, err
		}
	}
	grad = make([]float32, net.Dim())
	dev.Read(grad, g)
	return grad, loss, nil
}

// distance returns |a-b| / |b|.
func distance(a, b []float32) float64 {
	far, long := 0.0, 0.0
	for i, v := range b {
		d := float64(a[i]) - float64(v)
		far, long = far+d*d, long+float64(v)*float64(v)
	}
	return math.Sqrt(far / long)
}

// reach is the part of the loss by which a step for finite differences changes it, in both
// directions: far above the rounding errors of a loss, and small enough for the loss to be nearly
// linear. Batch norms and ReLUs make it nonlinear, as does attention.
func (e example) reach() float64 {
	switch {
	case e.residual:
		return 0.001
	case e.shape == nil:
		return 0.002
	}
	return 0.02
}

// differentiate compares the slope of the loss along the gradient, and along random halves of it,
// with the gradient.
func (t Target) differentiate(e example) (string, error) {
	if t.Precision != "fp32" {
		return "", SkipError("so small a step is lost in the rounding errors of " + t.Precision)
	}
	net, b, err := e.open()
	if err != nil {
		return "", err
	}
	m, start := model.NewEngine(net, t.Device), start(net)
	x, g := t.Device.NewVector(net.Dim()), t.Device.NewVector(net.Dim())
	t.Device.Write(x, start)
	loss, err := m.Grad(g, x, b)
	if err != nil {
		return "", err
	}
	grad := make([]float32, net.Dim())
	t.Device.Read(grad, g)
	worst, bound, s := 0.0, DifferencesBound, rng.New(1, "halves")
	for try := range 4 {
		along, square := make([]float32, len(grad)), 0.0
		for i, v := range grad {
			if try == 0 || s.Uint64()&1 == 0 {
				along[i] = v
				square += float64(v) * float64(v)
			}
		}
		step := e.reach() * loss / (2 * square)
		var at [2]float64
		expected := 0.0 // computed from the rounded steps: a scale near 1 changes by at least 1e-7
		for side, sign := range []float64{1, -1} {
			moved := make([]float32, len(start))
			for i, v := range start {
				moved[i] = v + float32(sign*step*float64(along[i]))
				expected += sign * float64(grad[i]) * (float64(moved[i]) - float64(v))
			}
			t.Device.Write(x, moved)
			if at[side], err = m.Grad(g, x, b); err != nil {
				return "", err
			}
		}
		if d := math.Abs((at[0]-at[1])/expected - 1); !(d <= worst) {
			worst = d
		}
	}
	if !(worst <= bound) {
		return "", fmt.Errorf("the slope of the loss differs from the gradient by %.2g, at most %.2g is allowed",
			worst, bound)
	}
	return fmt.Sprintf("slope within %.1e of %.0e", worst, bound), nil
}
