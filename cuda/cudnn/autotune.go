package cudnn

import (
	"errors"
	"fmt"
	"math"
	"time"

	"fspda/cuda/driver"
)

// trials times ways to compute something, and keeps the fastest.
type trials struct {
	how  Selection
	what fmt.Stringer
	// key names the first run of a route, for ChoiceCache.Attempt.
	key   func(route string) string
	best  Choice
	timed bool // best is set
}

// autotuner finds the fastest implementation of a convolution.
type autotuner struct {
	trials
	c      *Conv
	math   Math
	at     addresses // operands and workspace of the measurements
	begin  time.Time
	failed error // why the algorithms could not be timed
}

// algorithms lets the library time its algorithms, and times the fastest again with our clock, for
// comparison with engines.
func (t *autotuner) algorithms() error {
	var best Choice
	var timed bool
	lost := t.attempt("algorithms", func() error {
		best, timed, t.failed = t.c.findAlgorithm(t.how, t.math, t.at)
		return t.alive(t.failed)
	})
	if lost != nil || !timed || t.failed != nil {
		return lost
	}
	t.best, t.timed = best, true
	if t.how.Measure == nil {
		return nil
	}
	if err := t.c.take(best, t.how); err != nil {
		return err
	}
	x := t.at
	ms, ran, err := t.measure(best.route(), math.Inf(1), func() error {
		return t.c.runAlgorithm(x[0], x[1], x[2], x[3])
	})
	t.best.Time, t.timed = float32(ms), ran
	return err
}

// Limits of the search for one convolution, of which ResNet-50 has about 70: its time, including
// the algorithms, and how many engines are tried. The first engine is tried anyway, and the best
// come first; PyTorch tries as many by default.
const (
	maxTuning  = 500 * time.Millisecond
	maxEngines = 10
)

// engines times the engines that the library offers.
func (t *autotuner) engines() error {
	if t.how.Measure == nil || t.c.h.api.Backend == nil {
		return nil
	}
	for i, e := range t.c.engines(t.how, t.math) {
		if i == maxEngines || i > 0 && time.Since(t.begin) > maxTuning {
			break
		}
		if err := t.engine(e); err != nil {
			return err
		}
	}
	return nil
}

// engine times an engine. An engine that cannot be made or run is skipped.
func (t *autotuner) engine(e Engine) error {
	p, err := t.c.planWithin(e, t.how)
	if err != nil {
		return nil
	}
	c := Choice{Engine: &e, Memory: p.memory}
	err = t.try(c.route(), c, func() error { return p.run(t.at) })
	return errors.Join(err, p.close())
}

// try times a choice, and keeps it if it is the fastest so far.
func (t *trials) try(route string, c Choice, run func() error) error {
	limit := math.Inf(1)
	if t.timed {
		limit = float64(t.best.Time)
	}
	ms, ran, err := t.measure(route, limit, run)
	if ran && ms < limit {
		c.Time = float32(ms)
		t.best, t.timed = c, true
	}
	return err
}

// product times the matrix product, if the convolution is one.
func (t *autotuner) product() error {
	if t.how.Product == nil || t.how.Measure == nil {
		return nil
	}
	c := Choice{Product: true}
	return t.try(c.route(), c, func() error { return t.how.Product(t.at[0], t.at[1], t.at[2]) })
}

const (
	muchSlower = 2 // times the best: slower ones are not measured further
	turns      = 3 // the fastest turn counts
	// ms; faster ones run several times per turn, so that the clock's resolution suffices
	turnMS     = 0.25
	maxPerTurn = 10 // runs per turn
	verySlow   = 10 // times the best, together with
	verySlowMS = 20 // ms; more than loading a kernel takes: not measured again
)

// ErrRefused is returned by Measure and Product for work that cannot be run, or cannot be captured.
var ErrRefused = errors.New("cudnn: cannot be run or captured")

// measure returns the time of one run in ms. ran is false if the library refuses it, or if its
// first run did not return in an earlier program; other errors are errors of the GPU. If a run is
// much slower than limit, it is measured less often.
func (t *trials) measure(what string, limit float64, send func() error) (ms float64, ran bool, err error) {
	once := func(n, turns int) (float64, bool, error) {
		took, err := t.how.Measure(n, turns, send)
		if _, ok := errors.AsType[*Error](err); ok || errors.Is(err, ErrRefused) {
			return 0, false, t.alive(err)
		}
		return took / float64(max(n, 1)), err == nil, err
	}
	err = t.attempt(what, func() (err error) {
		ms, ran, err = once(0, 1) // loads the kernel
		return err
	})
	if err != nil || !ran || ms > verySlowMS && ms > verySlow*limit {
		return ms, ran, err
	}
	ms, ran, err = once(1, 1)
	if !ran || ms > muchSlower*limit {
		return ms, ran, err
	}
	took, ran, err := once(int(min(maxPerTurn, 1+turnMS/max(ms, 1e-3))), turns)
	return min(ms, took), ran, err
}

// attempt runs work that may lose the GPU, unless an earlier program did not survive it. It returns
// an error only if the GPU is lost.
func (t *trials) attempt(what string, run func() error) error {
	err := t.how.Cache.Attempt(t.key(what), run)
	if errors.Is(err, ErrNoReturn) {
		return nil
	}
	if driver.Lost(err) && t.how.Cache != nil {
		err = fmt.Errorf("cudnn: trying the %s of %v: %w; the next start does without it", what, t.what, err)
	}
	return err
}

// alive returns the error of the GPU after the library has failed: its own error may say as little
// as that a kernel did not start.
func (t *trials) alive(failed error) error {
	if failed == nil || t.how.Measure == nil {
		return nil
	}
	_, err := t.how.Measure(0, 1, func() error { return nil })
	return err
}

// engines lists the usable engines that the library offers, in its order. In runs that measure,
// engines that compile a kernel come last.
func (c *Conv) engines(how Selection, m Math) (all []Engine) {
	n, g, err := c.graph(how.alignment())
	var later []Engine
	for i := 0; i < len(heuristics) && err == nil && len(all) == 0; i++ {
		for _, o := range n.offers(g, heuristics[i], c.h.target()) {
			switch {
			case o.unusable(m, how.Deterministic):
			case !how.Deterministic && how.Cache.lost(c.attemptKey(how, m, o.engine.String())):
			case o.compiles() && !how.Deterministic:
				later = append(later, o.engine)
			default:
				all = append(all, o.engine)
			}
		}
		all, later = append(all, later...), nil
	}
	_ = n.close() // a failure leaks a little memory, and the convolution is unaffected
	return all
}

// planWithin makes a plan whose workspace fits the limit.
func (c *Conv) planWithin(e Engine, how Selection) (*executionPlan, error) {
	p, err := c.makePlan(e, how.alignment())
	if err != nil || p.memory <= how.MaxWorkspace {
		return p, err
	}
	return nil, errors.Join(errTooLarge, p.close())
}

var errTooLarge = errors.New("cudnn: the engine needs more workspace than allowed")

// recommendedPlan makes a plan for the first recommended engine that can be made, or returns nil.
func (c *Conv) recommendedPlan(how Selection, m Math) *executionPlan {
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
