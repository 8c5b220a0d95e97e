package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// Param declares the next tensor of a Tape's parameter vector and returns its leaf. Matrices
// (inputs × outputs, for gorgonia.Mul(x, w)) and tensors of higher rank are initialized uniformly
// in ±1/√(first dimension); vectors are initialized to 0.
type Param func(name string, shape ...int) *gorgonia.Node

// TapeOptions describes a Tape.
type TapeOptions struct {
	Inputs, Classes int     // features per example, and classes, at least 2
	WeightDecay     float64 // adds WeightDecay/2·Σw² over all parameters to the loss
	// Forward builds the logits, examples × Classes, from x, examples × Inputs, with operations of
	// Gorgonia. It may be called several times, at least once for each batch size, and must declare
	// the same parameters in the same order each time. It may panic like gorgonia.Must.
	Forward func(param Param, x *gorgonia.Node) *gorgonia.Node
}

// Tape is a classifier written with Gorgonia's own differentiable operations and run by Gorgonia's
// TapeMachine on the host, without the kernels of package device. It implements fspda/train.Model,
// and is much slower than an [Engine] on the same network. Tape adds the mean softmax cross entropy
// itself. It is safe for concurrent use.
type Tape struct {
	opt    TapeOptions
	dev    device.Device
	layout Layout

	mu   sync.Mutex
	idle map[planKey][]*tapeGraph
}

// NewTape returns the network described by o.Forward, with its vectors on dev. It builds the
// network once and returns Gorgonia's errors.
func NewTape(dev device.Device, o TapeOptions) (*Tape, error) {
	if o.Inputs < 1 || o.Classes < 2 || o.WeightDecay < 0 || o.Forward == nil {
		return nil, fmt.Errorf("model: tape: %d inputs, %d classes, weight decay %v: want at least 1 and 2, none "+
			"below 0, and a Forward", o.Inputs, o.Classes, o.WeightDecay)
	}
	t := &Tape{opt: o, dev: dev, idle: map[planKey][]*tapeGraph{}}
	g, err := t.build(planKey{batch: 2, kind: Train}, &t.layout)
	if err != nil {
		return nil, err
	}
	t.put(planKey{batch: 2, kind: Train}, g)
	return t, nil
}

func (t *Tape) Dim() int { return t.layout.dim }

// Layout describes the flat parameter vector.
func (t *Tape) Layout() *Layout { return &t.layout }

// Describe lists the parameter tensors, as vectors: only Forward knows what their axes are.
func (t *Tape) Describe() Description {
	return Description{Tensors: Vectors(t.layout.sizes()...), Mixed: true}
}

// Init returns a new parameter vector, drawn from the stream "init" of the run seed as described at
// [Param].
func (t *Tape) Init(seed uint64) []float32 { return (&Network{layout: &t.layout}).Init(seed) }

// Grad writes the gradient of the mean loss over the batch at x, including the L2 term, to dst and
// returns that loss.
func (t *Tape) Grad(dst, x device.Vector, b device.Batch) (loss float64, err error) {
	params := make([]float32, t.Dim())
	t.dev.Read(params, x)
	logits, err := t.logits(params, b)
	if err != nil {
		return 0, err
	}
	s, slope := scoreLogits(logits, b.Y, b.Mix, t.opt.Classes)
	grad, err := t.pull(params, b, slope)
	if err != nil {
		return 0, err
	}
	loss = s.loss / float64(b.N())
	for i, w := range params {
		// the conversion prevents a fused multiply-add, here and below
		loss += float64(t.opt.WeightDecay / 2 * float64(w) * float64(w))
		grad[i] += float32(float32(t.opt.WeightDecay) * w)
	}
	t.dev.Write(dst, grad)
	return loss, nil
}

// Score sums over the batch at x: cross entropy without the L2 term, top-1 hits, and top-5 hits.
func (t *Tape) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	params := make([]float32, t.Dim())
	t.dev.Read(params, x)
	logits, err := t.logits(params, b)
	if err != nil {
		return 0, 0, 0, err
	}
	s, _ := scoreLogits(logits, b.Y, nil, t.opt.Classes)
	return s.loss, s.hits, s.hits5, nil
}

// StartGrad is Grad, which is finished when StartGrad returns. There are no buffers.
func (t *Tape) StartGrad(dst, x, _ device.Vector, b device.Batch) (wait func() (loss float64, err error)) {
	loss, err := t.Grad(dst, x, b)
	return func() (float64, error) { return loss, err }
}

// Async is false.
func (*Tape) Async() bool { return false }

// InitBuffers returns nil.
func (*Tape) InitBuffers() []float32 { return nil }

// ScoreWith is Score.
func (t *Tape) ScoreWith(x, _ device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return t.Score(x, b)
}

// Observe does nothing.
func (*Tape) Observe(_, _ device.Vector, _ device.Batch, _ float64) error { return nil }

// logits runs the network forward.
func (t *Tape) logits(params []float32, b device.Batch) (logits []float32, err error) {
	err = t.run(keyOf(b, Score), params, b, func(g *tapeGraph) error {
		v, err := hostSlice(g.logits.Value(), g.logits.Shape())
		logits = slices.Clone(v)
		return err
	}, nil)
	return logits, err
}

// pull returns the gradient of Σ slope·logits by the parameters: the vector-Jacobian product.
func (t *Tape) pull(params []float32, b device.Batch, slope []float32) ([]float32, error) {
	grad := make([]float32, t.Dim())
	err := t.run(keyOf(b, Train), params, b, func(g *tapeGraph) error {
		for i, n := range g.grads {
			if err := read(grad, n, t.layout.tensors[i]); err != nil {
				return fmt.Errorf("gradient of %w", err)
			}
		}
		return nil
	}, slope)
	return grad, err
}

// run runs a graph with these leaves and calls read with it, before another goroutine can use it.
func (t *Tape) run(r planKey, params []float32, b device.Batch, read func(*tapeGraph) error,
	slope []float32) (err error) {
	if err := b.Check(&device.Code{Batch: b.N(), Features: t.opt.Inputs}); err != nil {
		return fmt.Errorf("model: tape: %w", err)
	}
	g, err := t.get(r)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("model: tape: running with batch %d: %v", r.batch, p)
		}
		if err != nil {
			g.machine.Close()
			return
		}
		g.machine.Reset()
		t.put(r, g)
	}()
	err = let(g.x, b.Numbers(nil, t.opt.Inputs))
	for i, n := range g.params {
		at := t.layout.tensors[i]
		err = cmp.Or(err, let(n, params[at.Offset:at.Offset+at.Size]))
	}
	if r.kind == Train {
		err = cmp.Or(err, let(g.slope, slope))
	}
	if err == nil {
		err = g.machine.RunAll()
	}
	if err == nil {
		err = read(g)
	}
	if err != nil {
		return fmt.Errorf("model: tape: running with batch %d: %w", r.batch, err)
	}
	return nil
}

func (t *Tape) get(r planKey) (*tapeGraph, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if free := t.idle[r]; len(free) > 0 {
		t.idle[r] = free[:len(free)-1]
		return free[len(free)-1], nil
	}
	var again Layout
	g, err := t.build(r, &again)
	if err == nil && !slices.Equal(again.sizes(), t.layout.sizes()) {
		g.machine.Close()
		err = fmt.Errorf("model: tape: Forward declared parameters of %v with batch %d, and %v at the first call: "+
			"want the same every time", again.sizes(), r.batch, t.layout.sizes())
	}
	return g, err
}

func (t *Tape) put(r planKey, g *tapeGraph) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle[r] = append(t.idle[r], g)
}

// tapeGraph is a Tape at one batch size, with its machine. It belongs to one goroutine at a time.
type tapeGraph struct {
	machine gorgonia.VM
	// slope: derivative of the loss by the logits; nil without differentiation
	x, slope *gorgonia.Node
	logits   *gorgonia.Node
	params   gorgonia.Nodes
	grads    gorgonia.Nodes
}

// build makes a graph and records its parameters.
func (t *Tape) build(r planKey, layout *Layout) (g *tapeGraph, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			g, err = nil, fmt.Errorf("model: tape: building with batch %d: %w", r.batch, err)
		}
	}()
	if r.batch < 1 {
		return nil, fmt.Errorf("want at least 1 example in a batch")
	}
	expr := gorgonia.NewGraph()
	leaf := func(name string, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(expr, gorgonia.Float32, len(shape), gorgonia.WithShape(shape...),
			gorgonia.WithName(name))
	}
	g = &tapeGraph{x: leaf("examples", r.batch, t.opt.Inputs)}
	g.logits = t.opt.Forward(func(name string, shape ...int) *gorgonia.Node {
		layout.declare(name, shape)
		g.params = append(g.params, leaf(name, shape...))
		return g.params[len(g.params)-1]
	}, g.x)
	if len(g.params) == 0 {
		return nil, fmt.Errorf("Forward declares no parameter: call param for each")
	}
	if s := g.logits.Shape(); len(s) != 2 || s[0] != r.batch || s[1] != t.opt.Classes {
		return nil, fmt.Errorf("the logits have shape %v, want (%d, %d): examples × classes", s, r.batch, t.opt.Classes)
	}
	if r.kind == Train {
		g.slope = leaf("slope of the loss", r.batch, t.opt.Classes)
		pulled := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.HadamardProd(g.logits, g.slope))))
		if g.grads, err = gorgonia.Grad(pulled, g.params...); err != nil {
			return nil, err
		}
	}
	g.machine = gorgonia.NewTapeMachine(expr)
	return g, nil
}

// declare adds a tensor requested by a Tape's Forward; it panics if the tensor is invalid.
func (l *Layout) declare(name string, shape []int) {
	if _, twice := l.Tensor(name); twice || name == "" || len(shape) == 0 {
		panic(fmt.Errorf("parameter %q of shape %v: want a unique name and at least one dimension", name, shape))
	}
	t := Tensor{Name: name, Shape: slices.Clone(shape), Size: checkSize("parameter "+name, shape), Decay: true,
		FanIn: shape[0]}
	if len(shape) == 1 {
		t.start = start{rule: constant}
	}
	if l.add(t); l.dim > maxTensor {
		panic(fmt.Errorf("%d parameters up to %s, want at most %d", l.dim, name, maxTensor))
	}
}

// top is the k of the top-k hits.
const top = 5

// scores are the sums over a batch.
type scores struct{ loss, hits, hits5 float64 }

// scoreLogits returns the sums over a batch and the derivative of the mean cross entropy by the
// logits, rows of classes: (softmax - onehot)/N. A hit is a row whose label has the largest logit;
// the lower index wins ties, and a row with a NaN is no hit. Loss and derivative are for both
// classes of examples that mix gives a second one.
func scoreLogits(logits []float32, labels []int32, mix []device.Mix, classes int) (s scores, slope []float32) {
	slope = make([]float32, len(logits))
	n := float64(len(labels))
	for i, c := range labels {
		row, out := logits[i*classes:(i+1)*classes], slope[i*classes:(i+1)*classes]
		largest := math.Inf(-1)
		before, known := 0, true
		for j, v := range row {
			largest = max(largest, float64(v))
			known = known && v == v
			if v > row[c] || v == row[c] && j < int(c) {
				before++
			}
		}
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v) - largest)
		}
		for j, v := range row {
			out[j] = float32(math.Exp(float64(v)-largest) / sum / n)
		}
		if mix == nil || mix[i].Weight == 1 {
			out[c] -= float32(1 / n)
			s.loss += largest + math.Log(sum) - float64(row[c])
		} else {
			other, w := mix[i].Partner, float64(mix[i].Weight)
			out[c] -= float32(w / n)
			out[other] -= float32((1 - w) / n)
			s.loss += largest + math.Log(sum) - float64(w*float64(row[c])) - float64((1-w)*float64(row[other]))
		}
		if known && before == 0 {
			s.hits++
		}
		if known && before < top {
			s.hits5++
		}
	}
	return s, slope
}
