package cudnn

import (
	"errors"
	"math"
	"time"
)

// trial looks for the fastest way to compute a convolution.
type trial struct {
	c      *Conv
	how    Choosing
	math   Math
	at     addresses // where it may compute
	best   Choice
	timed  bool  // there is a best
	failed error // why algorithms were not timed
}

// algorithms times the algorithms, by the library's own clock and, so that it can be compared with
// engines, the fastest by ours.
func (t *trial) algorithms() error {
	best, timed, err := t.c.findAlgorithm(t.how, t.math, t.at)
	if err != nil || !timed {
		t.failed = err
		return nil
	}
	t.best, t.timed = best, true
	if t.how.Time == nil {
		return nil
	}
	if err := t.c.take(best, t.how); err != nil {
		return err
	}
	x := t.at
	ms, ran, err := t.measure(math.Inf(1), func() error { return t.c.runAlgorithm(x[0], x[1], x[2], x[3]) })
	t.best.Time, t.timed = float32(ms), ran
	return err
}

// longestTrial is how long engines of one convolution are tried, the first one aside: some are
// compiled first.
const longestTrial = 2 * time.Second

// engines times the engines that the library offers.
func (t *trial) engines() error {
	if t.how.Time == nil || t.c.h.api.Backend == nil {
		return nil
	}
	begin := time.Now()
	for i, e := range t.c.engines(t.how, t.math) {
		if i > 0 && time.Since(begin) > longestTrial {
			break
		}
		if err := t.engine(e); err != nil {
			return err
		}
	}
	return nil
}

// engine times an engine. One that cannot be made, or does not run, is none.
func (t *trial) engine(e Engine) error {
	p, err := t.c.planWithin(e, t.how)
	if err != nil {
		return nil
	}
	limit := math.Inf(1)
	if t.timed {
		limit = float64(t.best.Time)
	}
	ms, ran, err := t.measure(limit, func() error { return p.run(t.at) })
	if ran && ms < limit {
		t.best, t.timed = Choice{Engine: &e, Memory: p.memory, Time: float32(ms)}, true
	}
	return errors.Join(err, p.close())
}

// product times the product of matrices, where it is one.
func (t *trial) product() error {
	if t.how.Product == nil || t.how.Time == nil {
		return nil
	}
	limit := math.Inf(1)
	if t.timed {
		limit = float64(t.best.Time)
	}
	ms, ran, err := t.measure(limit, func() error { return t.how.Product(t.at[0], t.at[1], t.at[2]) })
	if ran && ms < limit {
		t.best, t.timed = Choice{Product: true, Time: float32(ms)}, true
	}
	return err
}

const (
	hopeless = 2    // times the best: what takes so long is not timed further
	turns    = 3    // of which the fastest counts
	turnMS   = 0.25 // what is faster is sent often, so that the clock's steps are small beside it
	mostSent = 10   // in a turn
	slow     = 10   // times the best, and
	slowInMS = 20   // longer than it takes to bring a kernel to the GPU: not timed again
)

// ErrRefused is in what a clock or a product says of something that cannot be run, or not in one
// go.
var ErrRefused = errors.New("cudnn: it is refused")

// measure returns what one run takes, in ms. ran is false for what the library refuses; another
// error is the GPU's. What is slower by far than limit is measured less.
func (t *trial) measure(limit float64, send func() error) (ms float64, ran bool, err error) {
	once := func(n, turns int) (float64, bool, error) {
		took, err := t.how.Time(n, turns, send)
		var refused *Error
		if errors.As(err, &refused) || errors.Is(err, ErrRefused) {
			return 0, false, nil
		}
		return took / float64(max(n, 1)), err == nil, err
	}
	ms, ran, err = once(0, 1) // which brings the kernel to the GPU
	if !ran || ms > slowInMS && ms > slow*limit {
		return ms, ran, err
	}
	ms, ran, err = once(1, 1)
	if !ran || ms > hopeless*limit {
		return ms, ran, err
	}
	took, ran, err := once(int(min(mostSent, 1+turnMS/max(ms, 1e-3))), turns)
	return min(ms, took), ran, err
}

// engines lists those that the library offers and that compute as they should, best first by its
// advice, but that those which are to be compiled first come last where time is short.
func (c *Conv) engines(how Choosing, m Math) (all []Engine) {
	n, g, err := c.graph(how.aligned())
	var later []Engine
	for i := 0; i < len(heuristics) && err == nil && len(all) == 0; i++ {
		for _, o := range n.offers(g, heuristics[i], c.h.place()) {
			switch {
			case o.rounds(m, how.Deterministic):
			case o.compiles() && !how.Deterministic:
				later = append(later, o.engine)
			default:
				all = append(all, o.engine)
			}
		}
		all, later = append(all, later...), nil
	}
	_ = n.close() // descriptors that end badly cost a little memory, and the convolution nothing
	return all
}

// planWithin is a plan that works in the memory that there is.
func (c *Conv) planWithin(e Engine, how Choosing) (*executionPlan, error) {
	p, err := c.plan(e, how.aligned())
	if err != nil || p.memory <= how.Most {
		return p, err
	}
	return nil, errors.Join(errTooLarge, p.close())
}

var errTooLarge = errors.New("cudnn: the engine works in more memory than there is")

// advisedPlan is the first engine of the library's advice that can be made, nil for none.
func (c *Conv) advisedPlan(how Choosing, m Math) *executionPlan {
	if c.h.api.Backend == nil {
		return nil
	}
	for _, e := range c.engines(how, m) {
		if p, err := c.planWithin(e, how); err == nil {
			return p
		}
	}
	return nil
}
