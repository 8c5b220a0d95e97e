package external

import (
	"errors"
	"fmt"
	"slices"

	"fspda/device"
)

// vectors are the vectors of a request in host memory.
type vectors struct {
	x       []float32
	g       []float32 // nil unless the request writes a gradient
	buffers []float32 // nil: none
}

// staged are the vectors of a request in a client's memory: the ones of the training itself, or
// copies.
type staged struct {
	vectors
	of vectors // the ones of the training
}

// stageVectors returns the vectors where the client finds them, and adds them to a request. Buffers
// are copied, so that a client that fails leaves the agent's own as they were.
func (v vectors) stage(c *client, r *request) *staged {
	s := &staged{vectors: v, of: v}
	if r.X = c.stage.place(v.x); r.X == nil && v.x != nil {
		s.x, r.X = c.stage.floats(len(v.x))
		copy(s.x, v.x)
	}
	if r.G = c.stage.place(v.g); r.G == nil && v.g != nil {
		s.g, r.G = c.stage.floats(len(v.g))
	}
	if len(v.buffers) > 0 {
		s.buffers, r.Buffers = c.stage.floats(len(v.buffers))
		copy(s.buffers, v.buffers)
	}
	return s
}

// copied returns how many numbers the copies of the vectors may take.
func (v vectors) copied() int { return len(v.x) + len(v.g) + len(v.buffers) }

// ask makes a request about a batch, which may be nil, of a client. The client may write to the
// vectors named in written, of x, g and buffers.
func (e *Engine) ask(r request, v vectors, b *device.Batch, out []float64, written func(s *staged)) (*answer, error) {
	need := 2*len(out) + v.copied()
	if b != nil {
		if err := e.check(*b); err != nil {
			return nil, err
		}
		need += e.example.numbers(*b)
	}
	var s *staged
	var logits []float32
	var got *answer
	err := e.program.do(r.Do, e.about, func(c *client) (request, error) {
		if err := c.stage.reset(max(need, 1)); err != nil {
			return r, err
		}
		now := r
		if b != nil {
			now.Batch = e.example.stage(*b, e.test, &c.stage)
		}
		if out != nil {
			logits, now.Out = c.stage.floats(b.N(), e.Classes())
		}
		s = v.stage(c, &now)
		return now, nil
	}, func(_ *client, a *answer) error {
		written(s)
		for i := range out {
			out[i] = float64(logits[i])
		}
		got = a
		return nil
	})
	return got, err
}

// check refuses a batch whose examples are of another form than the client was told.
func (e *Engine) check(b device.Batch) error {
	switch {
	case e.example.Rows && b.Rows == nil:
		return fmt.Errorf("external: a batch of examples for a program that loads its own: resolve the run again")
	case e.example.Tokens && b.Tokens == nil:
		return errors.New("external: a batch without tokens for a model that reads tokens")
	}
	return nil
}

// Init returns the initial vector of a seed, as the program draws it, or a copy of the one given to
// StartFrom. It panics if the program fails: see Initialize.
func (e *Engine) Init(seed uint64) []float32 {
	x, _, err := e.initial(seed)
	if err != nil {
		panic(err)
	}
	return slices.Clone(x)
}

// InitBuffers returns the buffers that the program gave with the vector of Initialize, or a copy of
// those given to StartFrom.
func (e *Engine) InitBuffers() []float32 { return slices.Clone(e.startBuffers) }

// Initialize asks the program for the initial vectors of a seed, which Init and InitBuffers then
// return.
func (e *Engine) Initialize(seed uint64) error {
	x, buffers, err := e.initial(seed)
	if err == nil {
		e.StartFrom(x, buffers)
	}
	return err
}

func (e *Engine) initial(seed uint64) (x, buffers []float32, err error) {
	if e.start != nil {
		return e.start, e.startBuffers, nil
	}
	x, buffers = make([]float32, e.Dim()), make([]float32, e.Buffers().Dim())
	_, err = e.ask(request{Do: "init", Seed: &seed}, vectors{x: x, buffers: buffers}, nil, nil, func(s *staged) {
		copy(x, s.x)
		copy(buffers, s.buffers)
	})
	return x, buffers, err
}

// Grad writes the gradient of the mean loss over the batch at x, including the L2 term, to dst and
// returns that loss.
func (e *Engine) Grad(dst, x device.Vector, b device.Batch) (loss float64, err error) {
	return e.gradient(dst, x, nil, b)
}

// Async reports that a gradient is finished when StartGrad returns.
func (*Engine) Async() bool { return false }

// StartGrad computes a gradient as Grad does. With buffers it also updates them by the statistics of
// the batch. wait returns the loss.
func (e *Engine) StartGrad(dst, x, buffers device.Vector, b device.Batch) (wait func() (loss float64, err error)) {
	loss, err := e.gradient(dst, x, buffers, b)
	return func() (float64, error) { return loss, err }
}

func (e *Engine) gradient(dst, x, buffers device.Vector, b device.Batch) (loss float64, err error) {
	v := vectors{x: e.host.Floats(x), g: e.host.Floats(dst)}
	if buffers != nil {
		v.buffers = e.host.Floats(buffers)
	}
	a, err := e.ask(request{Do: "grad"}, v, &b, nil, func(s *staged) {
		if len(v.g) > 0 && &s.g[0] != &v.g[0] {
			copy(v.g, s.g)
		}
		copy(v.buffers, s.buffers)
	})
	if err != nil {
		return 0, err
	}
	return a.loss() + e.regularize(dst, x), nil
}

// regularize adds the gradient of the L2 term at x to g, multiplies g by the factors of the
// tensors, and returns the term.
func (e *Engine) regularize(g, x device.Vector) (l2 float64) {
	if len(e.decayed) > 0 {
		wd := e.WeightDecay()
		e.dev.Do(device.Combine(g, device.Term{A: 1, V: g}, device.Term{A: wd, V: x}).Within(e.decayed))
		all := e.host.Floats(x)
		for _, r := range e.decayed {
			part, sum := e.host.Wrap(all[r.From:r.To]), 0.0
			e.dev.Do(device.Dot(&sum, part, part))
			l2 += float64(wd / 2 * sum)
		}
	}
	for _, f := range e.factors {
		of := g
		if f.by == 0 {
			of = x // a gradient that is not finite must not move what is frozen
		}
		e.dev.Do(device.Combine(g, device.Term{A: f.by, V: of}).Within([]device.Range{{From: f.from, To: f.to}}))
	}
	return l2
}

// Observe runs the batch forward at x to update the buffers: each becomes (1-momentum) times itself
// plus momentum times the mean, or the unbiased variance, of the batch.
func (e *Engine) Observe(x, buffers device.Vector, b device.Batch, momentum float64) error {
	v := vectors{x: e.host.Floats(x), buffers: e.host.Floats(buffers)}
	if len(v.buffers) == 0 {
		return nil
	}
	_, err := e.ask(request{Do: "observe", Momentum: &momentum}, v, &b, nil, func(s *staged) {
		copy(v.buffers, s.buffers)
	})
	return err
}

// Score sums over the batch at x: the losses without the L2 term, top-1 hits, and top-5 hits. Batch
// norm takes the statistics of the batch.
func (e *Engine) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return e.score(vectors{x: e.host.Floats(x)}, b)
}

// ScoreWith is Score with the buffers as the statistics of batch norm.
func (e *Engine) ScoreWith(x, buffers device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return e.score(vectors{x: e.host.Floats(x), buffers: e.host.Floats(buffers)}, b)
}

func (e *Engine) score(v vectors, b device.Batch) (loss, hits, hits5 float64, err error) {
	b.Key = 0 // nothing is random
	a, err := e.ask(request{Do: "score"}, v, &b, nil, func(*staged) {})
	if err != nil {
		return 0, 0, 0, err
	}
	return a.loss(), a.Hits, a.Hits5, nil
}

// Predict writes the logits of the batch at x, with the buffers as the statistics of batch norm, to
// out: N × Classes numbers.
func (e *Engine) Predict(out []float64, x, buffers device.Vector, b device.Batch) error {
	b.Key = 0
	_, err := e.ask(request{Do: "predict"}, vectors{x: e.host.Floats(x), buffers: e.host.Floats(buffers)}, &b, out,
		func(*staged) {})
	return err
}

// ClientMemory returns the bytes of memory that the processes of the program have beside the vectors.
func (e *Engine) ClientMemory() uint64 { return e.program.ClientMemory() }
