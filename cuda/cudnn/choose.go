package cudnn

import (
	"fmt"

	"fspda/cuda/driver"
)

// Choosing is how the algorithm of a convolution is chosen.
type Choosing struct {
	// Most is what an algorithm may work in, in bytes.
	Most int
	// Deterministic takes the first algorithm of the library's advice that gives the same bits in
	// each run. Nothing is timed, for a choice by time may differ from one day to the next, and
	// with it the bits. Otherwise it is the fastest that counts.
	Deterministic bool
	// Memory lends device memory for so many bytes, in which the algorithms are timed, and end
	// gives it back. Where it fails, or is nil, the advice of the library has to do.
	Memory func(bytes ...int) (at []driver.Pointer, end func(), err error)
	// Time has the stream do something n times, in one go that is sent before it begins, and
	// returns the time of the fastest of some turns, in ms. With n = 0 it is done once, as it
	// comes. ErrRefused is what cannot be sent so. Where Time is nil engines of the graph API are
	// not timed, and algorithms by the library.
	Time func(n, turns int, send func() error) (ms float64, err error)
	// Product computes the convolution where it is a product of matrices, by another library; nil
	// elsewhere. It is a way where there is time to choose by.
	Product func(x, w, y driver.Pointer) error
	// Aligned is what the address of every operand is a multiple of, in bytes; 0 is 16. Fast
	// kernels want 16.
	Aligned int
	// Choices keeps what was found by timing; nil keeps nothing.
	Choices *Choices
}

// Choice is an algorithm, an engine of the graph API, or the product.
type Choice struct {
	Product bool    `json:"product,omitempty"`
	Engine  *Engine `json:"engine,omitempty"` // nil: an algorithm
	Algo    int32   `json:"algo"`
	Math    Math    `json:"math"`
	Memory  int     `json:"memory"` // bytes that it works in
	Time    float32 `json:"ms"`     // as it was measured, for people
}

// candidates is how many algorithms the library is asked for: more than there are.
const candidates = 16

// choose takes what is known, or finds it. What is known but cannot be made any more is found anew.
func (c *Conv) choose(how Choosing, m Math) error {
	if how.Deterministic {
		return c.advised(how, m)
	}
	key := c.key(how, m)
	if known, ok := how.Choices.get(key); ok && c.take(known, how) == nil {
		return nil
	}
	found, timed, err := c.fastest(how, m)
	if err != nil {
		return err
	}
	if !timed {
		return c.advised(how, m)
	}
	how.Choices.keep(key, found)
	return c.take(found, how)
}

// key names all that a choice by time depends on, but for the GPU and the library.
func (c *Conv) key(how Choosing, m Math) string {
	return fmt.Sprintf("graphs too: %s of type %d, math %d, direction %d, at most %d bytes, aligned to %d", c.shape,
		c.of, m, c.direction, how.Most, how.aligned())
}

func (how Choosing) aligned() int {
	if how.Aligned <= 0 {
		return 16
	}
	return how.Aligned
}

// take makes a choice the way of the convolution.
func (c *Conv) take(to Choice, how Choosing) error {
	if to.Memory > how.Most {
		return fmt.Errorf("cudnn: a convolution of %v: what was chosen works in %d bytes, expected %d at most", c.shape,
			to.Memory, how.Most)
	}
	if to.Product {
		if how.Product == nil {
			return fmt.Errorf("cudnn: a convolution of %v is no product", c.shape)
		}
		c.product, c.Workspace = how.Product, 0
		return nil
	}
	if to.Engine == nil {
		c.algo, c.Workspace = to.Algo, to.Memory
		return c.h.api.check(c.h.api.SetMath(c.conv, to.Math), "setting how a convolution of %v is computed", c.shape)
	}
	p, err := c.planWithin(*to.Engine, how)
	if err != nil {
		return err
	}
	c.use(p)
	return nil
}

// advised takes the first engine that the library advises, or where no engine can be had the first
// algorithm.
func (c *Conv) advised(how Choosing, m Math) error {
	if p := c.advisedPlan(how, m); p != nil {
		c.use(p)
		return nil
	}
	return c.advisedAlgorithm(how, m)
}

// advisedAlgorithm takes the first algorithm that the library advises.
func (c *Conv) advisedAlgorithm(how Choosing, m Math) error {
	all, err := c.algorithms()
	if err != nil {
		return err
	}
	if best, ok := how.first(all, m); ok {
		return c.take(best, how)
	}
	kind := ""
	if how.Deterministic {
		kind = " repeats its bits and"
	}
	return fmt.Errorf("cudnn: none of %d algorithms of a convolution of %v%s works in %d bytes: choose a smaller batch, or precision fp16 or bf16", len(all), c.shape, kind, how.Most)
}

// algorithms lists what the library advises, best first, also what it cannot do.
func (c *Conv) algorithms() ([]Perf, error) {
	a, all, got := c.h.api, make([]Perf, candidates), int32(0)
	var r Status
	switch c.direction {
	case Forward:
		r = a.AlgorithmsForward(c.h.h, c.x, c.w, c.conv, c.y, candidates, &got, &all[0])
	case GradX:
		r = a.AlgorithmsData(c.h.h, c.w, c.y, c.conv, c.x, candidates, &got, &all[0])
	case GradW:
		r = a.AlgorithmsFilter(c.h.h, c.x, c.y, c.conv, c.w, candidates, &got, &all[0])
	}
	return all[:got], a.check(r, "asking for algorithms of a convolution of %v", c.shape)
}

// fastest times engines and algorithms. timed is false where there is no memory for it, or none of
// them ran.
func (c *Conv) fastest(how Choosing, m Math) (best Choice, timed bool, err error) {
	if how.Memory == nil {
		return best, false, nil
	}
	s, e := c.shape, c.of.size()
	at, end, err := how.Memory(s.N*s.H*s.W*s.C*e, s.K*s.R*s.S*s.C*e, s.N*s.P()*s.Q()*s.K*e, how.Most)
	if err != nil {
		return best, false, nil
	}
	defer end()
	t := &trial{c: c, how: how, math: m, at: addresses(at[:4])}
	if err := t.algorithms(); err != nil {
		return best, false, err
	}
	if err := t.engines(); err != nil {
		return best, false, err
	}
	if err := t.product(); err != nil {
		return best, false, err
	}
	if !t.timed {
		return best, false, t.failed
	}
	return t.best, true, nil
}

// findAlgorithm has the library time its algorithms.
func (c *Conv) findAlgorithm(how Choosing, m Math, at addresses) (best Choice, timed bool, err error) {
	x, w, y, room := at[0], at[1], at[2], at[3]
	a, all, got := c.h.api, make([]Perf, candidates), int32(0)
	var r Status
	switch c.direction {
	case Forward:
		r = a.FindForward(c.h.h, c.x, x, c.w, w, c.conv, c.y, y, candidates, &got, &all[0], room, uintptr(how.Most))
	case GradX:
		r = a.FindData(c.h.h, c.w, w, c.y, y, c.conv, c.x, x, candidates, &got, &all[0], room, uintptr(how.Most))
	case GradW:
		r = a.FindFilter(c.h.h, c.x, x, c.y, y, c.conv, c.w, w, candidates, &got, &all[0], room, uintptr(how.Most))
	}
	if err := a.check(r, "timing the algorithms of a convolution of %v", c.shape); err != nil {
		return best, false, err
	}
	best, timed = how.first(all[:got], m)
	return best, timed, nil
}

// first is the first of a list, best first, that may be taken.
func (how Choosing) first(all []Perf, m Math) (Choice, bool) {
	for _, p := range all {
		if choice, ok := how.may(p, m); ok {
			return choice, true
		}
	}
	return Choice{}, false
}

// may tells whether an algorithm may be taken. Where numbers are to be multiplied as they are,
// tensor cores are out.
func (how Choosing) may(p Perf, m Math) (Choice, bool) {
	if p.Status != 0 || int(p.Memory) > how.Most || how.Deterministic && p.Deterministic == 0 || m == FMA &&
		(p.Math == TensorOp || p.Math == AllowConversion) {
		return Choice{}, false
	}
	if m == FMA { // what the library calls its default may round to TF32
		p.Math = FMA
	}
	return Choice{Algo: p.Algo, Math: p.Math, Memory: int(p.Memory), Time: p.Time}, true
}

// size is how many bytes a number has.
func (t Type) size() int {
	if t == Float32 {
		return 4
	}
	return 2
}
