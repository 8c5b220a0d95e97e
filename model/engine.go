package model

import (
	"fmt"
	"slices"
	"sync"

	"fspda/device"
)

// Engine is a Network on a device: it computes gradients and scores of any batch at any point,
// concurrently for any number of goroutines. It compiles one plan per batch size and kind on first
// use and pools idle programs, so the number of programs is the peak number of concurrent calls. It
// implements fspda/train.Model.
type Engine struct {
	*Network
	dev device.Device

	mu      sync.Mutex
	plans   map[planKey]*Plan
	idle    map[planKey][]device.Program
	pending sync.Pool // finished *pendingGradient values, for reuse

	start, startBuffers []float32 // initial vectors; nil: the network's
}

// planKey selects a plan.
type planKey struct {
	batch  int
	length int // tokens of a window; 0: the network's
	kind   Kind
}

// keyOf returns the key of the plan for a batch.
func keyOf(b device.Batch, kind Kind) planKey { return planKey{b.N(), b.Length, kind} }

// NewEngine runs a network on a device.
func NewEngine(n *Network, dev device.Device) *Engine {
	return &Engine{Network: n, dev: dev, plans: map[planKey]*Plan{}, idle: map[planKey][]device.Program{}}
}

// On returns an Engine for the same network on another device, with the same initial vectors.
func (e *Engine) On(dev device.Device) *Engine {
	other := NewEngine(e.Network, dev)
	other.start, other.startBuffers = e.start, e.startBuffers
	return other
}

// StartFrom makes Init and InitBuffers return these vectors instead of random ones, for example the
// weights of an earlier training. The Engine keeps the slices. Call it before any other method.
func (e *Engine) StartFrom(x, buffers []float32) {
	if len(x) != e.Dim() || len(buffers) != e.buffers.dim {
		panic(fmt.Sprintf("model: StartFrom %d parameters and %d buffers, want %d and %d", len(x), len(buffers),
			e.Dim(), e.buffers.dim))
	}
	e.start, e.startBuffers = x, buffers
}

// Init returns Network.Init, or a copy of the vector given to StartFrom.
func (e *Engine) Init(seed uint64) []float32 {
	if e.start != nil {
		return slices.Clone(e.start)
	}
	return e.Network.Init(seed)
}

// InitBuffers returns Network.InitBuffers, or a copy of the vector given to StartFrom.
func (e *Engine) InitBuffers() []float32 {
	if e.start != nil {
		return slices.Clone(e.startBuffers)
	}
	return e.Network.InitBuffers()
}

// Footprint estimates the working memory in bytes of one run of that kind at that batch size.
// Programs that run one after the other need the maximum of their footprints. Parameters, gradients
// and batches are not included.
func (e *Engine) Footprint(batch int, kind Kind) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.plan(planKey{batch, 0, kind})
	if err != nil {
		return 0, err
	}
	return e.dev.Footprint(p.Code()), nil
}

// Grad writes the gradient of the mean loss over the batch at x, including the L2 term, to dst and
// returns that loss.
func (e *Engine) Grad(dst, x device.Vector, b device.Batch) (loss float64, err error) {
	var out [1]float64
	err = e.run(Train, x, dst, nil, 0, b, out[:])
	return out[0], err
}

// stepMomentum is PyTorch's momentum of running statistics.
const stepMomentum = 0.1

// Step is Grad as part of training: it also updates the buffers with the statistics of this batch,
// with momentum 0.1.
func (e *Engine) Step(dst, x, buffers device.Vector, b device.Batch) (loss float64, err error) {
	return e.StartGrad(dst, x, buffers, b)()
}

// Async reports whether gradients are computed asynchronously: see StartGrad.
func (e *Engine) Async() bool {
	return e.dev.Features().Async
}

// StartGrad starts Grad, or Step if buffers is not nil, and returns once the batch may be
// overwritten; on a device that is not asynchronous, once the gradient is finished. wait waits for
// the loss; it must be called exactly once. Later operations on the vectors come after the
// gradient.
func (e *Engine) StartGrad(dst, x, buffers device.Vector, b device.Batch) (wait func() (loss float64, err error)) {
	kind, momentum := Train, 0.0
	if e.buffers.dim == 0 {
		buffers = nil
	} else if buffers != nil {
		kind, momentum = Step, stepMomentum
	}
	r := keyOf(b, kind)
	p, err := e.acquire(r)
	if err != nil {
		return func() (float64, error) { return 0, err }
	}
	defer e.release(r, p) // its next run is queued after this one
	g, ok := e.pending.Get().(*pendingGradient)
	if !ok {
		g = &pendingGradient{engine: e}
		g.wait = g.end
	}
	g.over = p.Start(x, dst, buffers, momentum, b, g.out[:])
	return g.wait
}

// pendingGradient is a gradient whose loss has not been read. It is reused after wait.
type pendingGradient struct {
	engine *Engine
	out    [1]float64
	over   func() error
	wait   func() (float64, error) // end, as a func created once
}

func (g *pendingGradient) end() (float64, error) {
	err := g.over()
	loss := g.out[0]
	g.over = nil
	g.engine.pending.Put(g)
	return loss, err
}

// Observe runs the batch forward at x to update the buffers: each becomes (1-momentum) times itself
// plus momentum times the mean, or the unbiased variance, of the batch. The variance of a single
// number is undefined and leaves its buffer unchanged.
func (e *Engine) Observe(x, buffers device.Vector, b device.Batch, momentum float64) error {
	if e.buffers.dim == 0 {
		return nil
	}
	return e.run(Observe, x, nil, buffers, momentum, b, nil)
}

// Score sums over the batch at x: cross entropy without the L2 term, top-1 hits, and top-5 hits.
func (e *Engine) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	var out [3]float64
	err = e.run(Score, x, nil, nil, 0, b, out[:])
	return out[0], out[1], out[2], err
}

// ScoreWith is Score with the buffers as the statistics of batch norm.
func (e *Engine) ScoreWith(x, buffers device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	var out [3]float64
	err = e.run(ScoreWith, x, nil, buffers, 0, b, out[:])
	return out[0], out[1], out[2], err
}

// Predict writes the logits of the batch at x, with the buffers as the statistics of batch norm, to
// out: N × Classes numbers.
func (e *Engine) Predict(out []float64, x, buffers device.Vector, b device.Batch) error {
	return e.run(Predict, x, nil, buffers, 0, b, out)
}

// Next writes the logits of the token that follows the given ones, of which there are 1 to the
// largest window of the network, to out: Classes numbers.
func (e *Engine) Next(out []float64, x device.Vector, tokens []uint16) error {
	if !e.tokens || len(tokens) == 0 || len(out) != e.classes {
		return fmt.Errorf("model: %s: the next token of %d with %d logits, want a language model and one logit for "+
			"each of its %d tokens", e.name, len(tokens), len(out), e.classes)
	}
	// a window has one token more than features: the last one is not used
	stream := append(slices.Clone(tokens), tokens[len(tokens)-1])
	return e.run(Next, x, nil, nil, 0, device.Batch{Tokens: stream, At: []int64{0}, Length: len(tokens)}, out)
}

func (e *Engine) run(kind Kind, x, grad, buffers device.Vector, momentum float64, b device.Batch, out []float64) error {
	r := keyOf(b, kind)
	p, err := e.acquire(r)
	if err != nil {
		return err
	}
	defer e.release(r, p)
	if p.Code().Buffers == 0 {
		return p.Run(x, grad, b, out)
	}
	return p.RunBuffered(x, grad, buffers, momentum, b, out)
}

func (e *Engine) acquire(r planKey) (device.Program, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if free := e.idle[r]; len(free) > 0 {
		e.idle[r] = free[:len(free)-1]
		return free[len(free)-1], nil
	}
	plan, err := e.plan(r)
	if err != nil {
		return nil, err
	}
	return e.dev.Load(plan.Code())
}

// plan returns the plan of a key and compiles it on first use. The caller holds the lock.
func (e *Engine) plan(r planKey) (*Plan, error) {
	if p := e.plans[r]; p != nil {
		return p, nil
	}
	n := e.Network
	if n.tokens && r.length > 0 && r.length != n.inputs {
		var err error
		if n, err = n.Window(r.length); err != nil {
			return nil, err
		}
	}
	p, err := n.Plan(r.batch, r.kind)
	if err != nil {
		return nil, err
	}
	e.plans[r] = p
	return p, nil
}

func (e *Engine) release(r planKey, p device.Program) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle[r] = append(e.idle[r], p)
}
