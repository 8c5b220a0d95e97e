package cudnn

import (
	"errors"
	"fmt"
	"math"

	"fspda/cuda/driver"
)

// AttentionShape is causal attention of windows of T tokens with some heads. A row of queries, keys
// and values has 3·Heads·Width numbers, all heads of the queries first.
type AttentionShape struct{ Windows, T, Heads, Width int }

func (s AttentionShape) String() string {
	return fmt.Sprintf("attention of %d windows of %d tokens with %d heads of %d", s.Windows, s.T, s.Heads, s.Width)
}

// AttentionOperands are the addresses of attention or of its gradient. LSE is the logarithm of the
// sum of the exponentials of each row of each head, in float32.
type AttentionOperands struct {
	QKV, Y, LSE driver.Pointer
	DY, DQKV    driver.Pointer // Only the gradient has them.
	Workspace   driver.Pointer
}

// Attention is attention or its gradient by an engine of the graph API. It belongs to the thread of
// its Handle.
type Attention struct {
	Workspace int // bytes

	h         *Handle
	shape     AttentionShape
	direction Direction // Forward or GradX
	of        Type
	plan      *executionPlan
}

// float32s returns the numbers of float32 of the gradient's own part of the workspace: a sum for
// each row of each head, and the gradient of the queries.
func (a *Attention) float32s() (sums, queries int) {
	if a.direction == Forward {
		return 0, 0
	}
	n := a.shape.Windows * a.shape.T * a.shape.Heads
	return n, n * a.shape.Width
}

// ownBytes returns the size of the parts of float32s, each padded to full alignment.
func (a *Attention) ownBytes() (sums, all int) {
	align := func(numbers int) int { return (4*numbers + 255) / 256 * 256 }
	n, queries := a.float32s()
	return align(n), align(n) + align(queries)
}

// Run enqueues the computation on the stream.
func (a *Attention) Run(o AttentionOperands) error {
	row := driver.Pointer(a.shape.Heads * a.shape.Width * a.of.size())
	at := addresses{o.QKV, o.QKV + row, o.QKV + 2*row, o.Y, o.LSE}
	sums, own := a.ownBytes()
	if a.direction == Forward {
		at[5] = o.Workspace
	} else {
		copy(at[5:], []driver.Pointer{o.DY, o.DQKV, o.DQKV + row, o.DQKV + 2*row, o.Workspace,
			o.Workspace + driver.Pointer(sums), o.Workspace + driver.Pointer(own)})
	}
	return a.plan.run(at)
}

func (a *Attention) Route() string { return "graph, " + a.plan.engine.String() }

// Close destroys the library's descriptors.
func (a *Attention) Close() error { return a.plan.close() }

// graph creates the graph. The caller must close the nodes, even after an error.
func (a *Attention) graph() (*dataflow, Node, error) {
	f := &dataflow{nodes: &nodes{api: a.h.api, what: a.shape}, alignment: fullAlignment}
	if a.direction == Forward {
		a.forward(f)
	} else {
		a.backward(f)
	}
	g := f.graph(a.h.target())
	return f, g, f.err
}

// attentionTensors are the operands that both directions have.
type attentionTensors struct{ q, k, v, y, lse tensor }

// operands adds the first five operands. Keys and values may be transposed.
func (a *Attention) operands(f *dataflow, transposedV bool) (t attentionTensors) {
	dims, in, out := a.layouts()
	row := [4]int64{dims[0], dims[1], dims[2], 1}
	t.q = f.operand(a.of, dims, in)
	t.k = f.operand(a.of, swap(dims), swap(in))
	if transposedV {
		t.v = f.operand(a.of, swap(dims), swap(in))
	} else {
		t.v = f.operand(a.of, dims, in)
	}
	t.y = f.operand(a.of, dims, out)
	t.lse = f.operand(Float32, row, rows(row))
	return t
}

// layouts returns the dimensions of queries, and the strides of inputs and of outputs: windows,
// heads, tokens, and numbers of a head.
func (a *Attention) layouts() (dims, in, out [4]int64) {
	b, t, h, d := int64(a.shape.Windows), int64(a.shape.T), int64(a.shape.Heads), int64(a.shape.Width)
	return [4]int64{b, h, t, d}, [4]int64{3 * t * h * d, d, 3 * h * d, 1}, [4]int64{t * h * d, d, h * d, 1}
}

func (a *Attention) scores() [4]int64 {
	t := int64(a.shape.T)
	return [4]int64{int64(a.shape.Windows), int64(a.shape.Heads), t, t}
}

// mask makes the scores of later keys -∞. The lowest float32 number stood for that before version
// 9.10.
func (f *dataflow) mask(s, below tensor) tensor {
	row, column := f.index(s, 2), f.index(s, 3)
	keeps := f.each(PointwiseGreaterEqual, Boolean, f.within(Boolean, s.dims, s.strides), row, column)
	return f.float(PointwiseSelect, s, below, keeps)
}

func (f *dataflow) below() float32 {
	if f.api.Version != nil && f.api.Version() < 91000 {
		return -math.MaxFloat32
	}
	return float32(math.Inf(-1))
}

// forward adds y = softmax(mask(q·kᵀ/√h))·v and lse.
func (a *Attention) forward(f *dataflow) {
	t := a.operands(f, false)
	scale, below := f.scalar(a.scale()), f.scalar(f.below())
	dims := a.scores()
	s := f.product(f.within(Float32, dims, rows(dims)), t.q, t.k)
	s = f.mask(f.float(PointwiseMultiply, s, scale), below)
	most := f.reduce(ReductionMax, s)
	e := f.float(PointwiseExp, f.float(PointwiseSubtract, s, most))
	sum := f.reduce(ReductionSum, e)
	f.each(PointwiseAdd, Float32, t.lse, most, f.float(PointwiseLog, sum))
	p := f.each(PointwiseDivide, Float32, f.within(a.of, dims, rows(dims)), e, sum)
	f.product(t.y, p, t.v)
}

// scale returns 1/√h.
func (a *Attention) scale() float32 { return float32(1 / math.Sqrt(float64(a.shape.Width))) }

// backward adds, with p = exp(mask(q·kᵀ/√h) - lse), D = Σ dy·y of each row and g =
// p·(dy·vᵀ - D)/√h: dv = pᵀ·dy, dk = gᵀ·q, and dq = g·k, which the library sums in float32.
func (a *Attention) backward(f *dataflow) {
	t := a.operands(f, true)
	dims, in, out := a.layouts()
	row := [4]int64{dims[0], dims[1], dims[2], 1}
	dy := f.operand(a.of, dims, out)
	dq, dk, dv := f.operand(a.of, dims, in), f.operand(a.of, dims, in), f.operand(a.of, dims, in)
	d, queries := f.operand(Float32, row, rows(row)), f.operand(Float32, dims, rows(dims))
	scale, below, one := f.scalar(a.scale()), f.scalar(f.below()), f.scalar(1)

	products := f.each(PointwiseMultiply, Float32, f.within(Float32, dims, rows(dims)), dy, t.y)
	f.each(PointwiseMultiply, Float32, d, f.reduce(ReductionSum, products), one)

	scores := a.scores()
	s := f.product(f.within(Float32, scores, rows(scores)), t.q, t.k)
	s = f.float(PointwiseSubtract, f.float(PointwiseMultiply, s, scale), t.lse)
	p := f.float(PointwiseExp, f.mask(s, below))
	f.product(dv, f.transpose(a.of, p), dy)

	g := f.product(f.within(Float32, scores, rows(scores)), dy, t.v)
	g = f.float(PointwiseMultiply, f.float(PointwiseSubtract, g, d), p)
	last := f.each(PointwiseMultiply, Float32, f.within(a.of, scores, rows(scores)), g, scale)
	f.product(dk, f.transpose(a.of, last), t.q)
	f.product(queries, last, f.transpose(a.of, t.k))
	f.each(PointwiseIdentity, Float32, dq, queries)
}

// makePlan makes a plan of an engine whose workspace fits the limit.
func (a *Attention) makePlan(e Engine, how Selection) error {
	f, g, err := a.graph()
	p, err := a.h.planOf(f.nodes, g, e, fullAlignment, err)
	if err != nil {
		return err
	}
	p.operands, p.scalars = f.operands, f.scalars
	_, own := a.ownBytes()
	if p.memory+own > how.MaxWorkspace {
		return errors.Join(errTooLarge, p.close())
	}
	a.plan, a.Workspace = p, p.memory+own
	return nil
}

// AttentionTrial is what the choice of an implementation of attention needs besides a Selection.
type AttentionTrial struct {
	// Own computes it by other kernels.
	Own func(o AttentionOperands) error
	// Agrees reports whether run computes the numbers of Own, up to roundings.
	Agrees func(run func(o AttentionOperands) error) (bool, error)
}

// NewAttention times the engines of the library and the kernels of the trial, and returns the
// fastest engine, or nil where these kernels are faster, or no engine computes the numbers that they
// compute. The choice is stored in the cache. Its Product stands for the kernels.
func (h *Handle) NewAttention(s AttentionShape, d Direction, of Type, how Selection, with AttentionTrial) (*Attention,
	error) {
	if how.Deterministic || h.api.Backend == nil || how.Measure == nil || how.Alloc == nil {
		return nil, nil
	}
	a := &Attention{h: h, shape: s, direction: d, of: of}
	key := a.key(how)
	if known, ok := how.Cache.get(key); ok && a.take(known, how) {
		return a.orNone(), nil
	}
	defer how.Cache.lock(key)()
	if known, ok := how.Cache.get(key); ok && a.take(known, how) {
		return a.orNone(), nil
	}
	how.Cache.noteTiming()
	best, err := a.fastest(how, with)
	if err != nil {
		return nil, err
	}
	how.Cache.put(key, best)
	a.take(best, how)
	return a.orNone(), nil
}

// orNone returns nil if there is no plan.
func (a *Attention) orNone() *Attention {
	if a.plan == nil {
		return nil
	}
	return a
}

// take applies a choice. It reports false for an engine that cannot be made.
func (a *Attention) take(to Choice, how Selection) bool {
	return to.Product || to.Engine != nil && a.makePlan(*to.Engine, how) == nil
}

// key describes everything that a choice depends on, except the GPU and the library.
func (a *Attention) key(how Selection) string {
	return fmt.Sprintf("%v of type %d, direction %d, at most %d bytes", a.shape, a.of, a.direction, how.MaxWorkspace)
}

// fastest times all ways. Without memory for that, and if none can be timed, it returns the kernels.
func (a *Attention) fastest(how Selection, with AttentionTrial) (Choice, error) {
	own := Choice{Product: true}
	row := a.shape.Windows * a.shape.T * a.shape.Heads * a.shape.Width * a.of.size()
	at, free, err := how.Alloc(3*row, row, 4*a.shape.Windows*a.shape.T*a.shape.Heads, row, 3*row, how.MaxWorkspace)
	if err != nil {
		return own, nil
	}
	defer free()
	o := AttentionOperands{at[0], at[1], at[2], at[3], at[4], at[5]}
	t := &trials{how: how, what: a.shape, key: func(route string) string {
		return fmt.Sprintf("the first run of the %s: %s", route, a.key(how))
	}}
	if err := t.try("own kernels", own, func() error { return with.Own(o) }); err != nil {
		return own, err
	}
	for i, e := range a.engines(how) {
		if i == maxEngines {
			break
		}
		if err := a.tryEngine(t, e, o, with); err != nil {
			return own, err
		}
	}
	if !t.timed {
		return own, nil
	}
	return t.best, nil
}

// engines lists the engines that the library offers, in its order.
func (a *Attention) engines(how Selection) (all []Engine) {
	f, g, err := a.graph()
	for i := 0; i < len(heuristics) && err == nil && len(all) == 0; i++ {
		for _, o := range f.offers(g, heuristics[i], a.h.target()) {
			if !o.unusable(TensorOp, how.Deterministic) {
				all = append(all, o.engine)
			}
		}
	}
	_ = f.close() // a failure leaks a little memory
	return all
}

// tryEngine times an engine. One that cannot be made or run, or computes other numbers, is skipped.
func (a *Attention) tryEngine(t *trials, e Engine, o AttentionOperands, with AttentionTrial) error {
	b := &Attention{h: a.h, shape: a.shape, direction: a.direction, of: a.of}
	if b.makePlan(e, t.how) != nil {
		return nil
	}
	before, timed := t.best, t.timed
	err := t.try(e.String(), Choice{Engine: &e, Memory: b.Workspace}, func() error { return b.Run(o) })
	if err == nil && t.best.Engine == &e {
		right, failed := with.Agrees(b.Run)
		if failed = t.alive(failed); failed != nil {
			err = failed
		} else if !right {
			t.best, t.timed = before, timed
		}
	}
	return errors.Join(err, b.Close())
}
