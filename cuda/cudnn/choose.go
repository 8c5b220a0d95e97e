package cudnn

import (
	"fmt"
	"time"

	"fspda/cuda/driver"
)

// Selection says how to select the implementation of a convolution.
type Selection struct {
	// MaxWorkspace limits the workspace, in bytes.
	MaxWorkspace int
	// Deterministic takes the first implementation recommended by the library that is
	// bit-reproducible. Nothing is measured, because a measured choice, and with it the bits, may
	// differ from run to run. Otherwise the fastest is taken.
	Deterministic bool
	// Alloc allocates device memory for the measurements, one block per size; free releases it. If
	// it fails or is nil, the library's recommendation is taken.
	Alloc func(bytes ...int) (at []driver.Pointer, free func(), err error)
	// Measure runs send n times as one captured graph and returns the time of the fastest of
	// several turns, in ms. With n = 0 it runs send once without a graph. It returns ErrRefused if
	// send cannot be captured. If Measure is nil, algorithms are timed by the library and engines
	// of the graph API are not considered.
	Measure func(n, turns int, send func() error) (ms float64, err error)
	// Product computes the convolution as a matrix product with another library; nil if it is not
	// one. It is considered if Measure is set.
	Product func(x, w, y driver.Pointer) error
	// Alignment divides the addresses of x, w and y, in bytes; 0 means 16, which fast kernels need.
	// Operands of measurements have no larger one.
	Alignment [3]int
	// Cache stores measured choices; nil stores none.
	Cache *ChoiceCache
}

// Choice is the selected implementation: an algorithm, an engine of the graph API, or the matrix
// product. [ChoiceCache.Attempt] stores one that is only Why, while a candidate runs for the first
// time.
type Choice struct {
	Why     string  `json:"why,omitempty"` // the candidate is not run again for this reason
	Product bool    `json:"product,omitempty"`
	Engine  *Engine `json:"engine,omitempty"` // nil if an algorithm was chosen
	Algo    int32   `json:"algo"`
	Math    Math    `json:"math"`
	Memory  int     `json:"memory"` // workspace in bytes
	Time    float32 `json:"ms"`     // the measured time, for information
}

// maxAlgorithms is the number of algorithms requested from the library; it has fewer.
const maxAlgorithms = 16

// choose takes the cached choice, or measures. A cached choice that can no longer be made is
// measured again.
func (c *Conv) choose(how Selection, m Math) error {
	if how.Deterministic {
		return c.recommended(how, m)
	}
	key := c.key(how, m)
	if c.takeKnown(key, how) {
		return nil
	}
	defer how.Cache.lock(key)()
	if c.takeKnown(key, how) { // another GPU has measured meanwhile
		return nil
	}
	how.Cache.noteTiming()
	found, timed, err := c.fastest(how, m)
	if err != nil {
		return err
	}
	if !timed {
		return c.recommended(how, m)
	}
	how.Cache.put(key, found)
	return c.take(found, how)
}

// takeKnown takes the stored choice, if there is one that can be made.
func (c *Conv) takeKnown(key string, how Selection) bool {
	known, ok := how.Cache.get(key)
	return ok && c.take(known, how) == nil
}

// key describes everything that a measured choice depends on, except the GPU and the library.
func (c *Conv) key(how Selection, m Math) string {
	text := fmt.Sprintf("graphs too: %s of type %d, math %d, direction %d, at most %d bytes, aligned to %d", c.shape,
		c.of, m, c.direction, how.MaxWorkspace, how.alignment())
	if how.alignment() < fullAlignment {
		text += fmt.Sprintf(" %d", how.Alignment)
	}
	return text
}

// attemptKey is the key of the first run of one way to compute the convolution.
func (c *Conv) attemptKey(how Selection, m Math, route string) string {
	return fmt.Sprintf("the first run of the %s: %s", route, c.key(how, m))
}

// route names the implementation.
func (c Choice) route() string {
	switch {
	case c.Product:
		return "matrix product"
	case c.Engine != nil:
		return c.Engine.String()
	}
	return fmt.Sprintf("algorithm %d", c.Algo)
}

// fullAlignment is the alignment that the fastest kernels need, in bytes.
const fullAlignment = 16

// alignment returns the common alignment of the operands.
func (how Selection) alignment() int {
	least := fullAlignment
	for _, a := range how.Alignment {
		if a > 0 {
			least = min(least, a)
		}
	}
	return least
}

// take applies a choice to the convolution.
func (c *Conv) take(to Choice, how Selection) error {
	if to.Memory > how.MaxWorkspace {
		return fmt.Errorf("cudnn: a convolution of %v: the choice needs %d bytes of workspace, at most %d are allowed",
			c.shape, to.Memory, how.MaxWorkspace)
	}
	if to.Product {
		if how.Product == nil {
			return fmt.Errorf("cudnn: a convolution of %v is not a matrix product", c.shape)
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

// recommended takes the first engine that the library recommends, or else the first algorithm.
func (c *Conv) recommended(how Selection, m Math) error {
	if p := c.recommendedPlan(how, m); p != nil {
		c.use(p)
		return nil
	}
	return c.recommendedAlgorithm(how, m)
}

// recommendedAlgorithm takes the first algorithm that the library recommends.
func (c *Conv) recommendedAlgorithm(how Selection, m Math) error {
	all, err := c.algorithms()
	if err != nil {
		return err
	}
	if best, ok := how.first(all, m); ok {
		return c.take(best, how)
	}
	kind := ""
	if how.Deterministic {
		kind = " is deterministic and"
	}
	return fmt.Errorf("cudnn: none of %d algorithms of a convolution of %v%s needs at most %d bytes: "+
		"choose a smaller batch, or precision fp16 or bf16", len(all), c.shape, kind, how.MaxWorkspace)
}

// algorithms lists the algorithms that the library recommends, best first, including unsupported
// ones.
func (c *Conv) algorithms() ([]Perf, error) {
	a, all, got := c.h.api, make([]Perf, maxAlgorithms), int32(0)
	var r Status
	switch c.direction {
	case Forward:
		r = a.GetForward(c.h.h, c.x, c.w, c.conv, c.y, maxAlgorithms, &got, &all[0])
	case GradX:
		r = a.GetData(c.h.h, c.w, c.y, c.conv, c.x, maxAlgorithms, &got, &all[0])
	case GradW:
		r = a.GetFilter(c.h.h, c.x, c.y, c.conv, c.w, maxAlgorithms, &got, &all[0])
	}
	return all[:got], a.check(r, "asking for algorithms of a convolution of %v", c.shape)
}

// fastest measures engines, algorithms and the product. timed is false if there is no memory for
// that or none of them ran.
func (c *Conv) fastest(how Selection, m Math) (best Choice, timed bool, err error) {
	if how.Alloc == nil {
		return best, false, nil
	}
	s, e := c.shape, c.of.size()
	var skip [3]int // bytes before an operand, since blocks have a larger alignment
	for i, a := range how.Alignment {
		skip[i] = a % fullAlignment
	}
	at, free, err := how.Alloc(skip[0]+s.N*s.H*s.W*s.C*e, skip[1]+s.K*s.R*s.S*s.C*e, skip[2]+s.N*s.P()*s.Q()*s.K*e,
		how.MaxWorkspace)
	if err != nil {
		return best, false, nil
	}
	defer free()
	for i, n := range skip {
		at[i] += driver.Pointer(n)
	}
	t := &autotuner{c: c, math: m, begin: time.Now(), trials: trials{how: how, what: convolution{s},
		key: func(route string) string { return c.attemptKey(how, m, route) }}}
	copy(t.at[:], at)
	for _, kind := range []func() error{t.algorithms, t.engines, t.product} {
		if err := kind(); err != nil {
			return best, false, err
		}
	}
	if !t.timed {
		return best, false, t.failed
	}
	return t.best, true, nil
}

// findAlgorithm lets the library time its algorithms.
func (c *Conv) findAlgorithm(how Selection, m Math, at addresses) (best Choice, timed bool, err error) {
	x, w, y, workspace := at[0], at[1], at[2], at[3]
	a, all, got := c.h.api, make([]Perf, maxAlgorithms), int32(0)
	var r Status
	switch c.direction {
	case Forward:
		r = a.FindForward(c.h.h, c.x, x, c.w, w, c.conv, c.y, y, maxAlgorithms, &got, &all[0], workspace,
			uintptr(how.MaxWorkspace))
	case GradX:
		r = a.FindData(c.h.h, c.w, w, c.y, y, c.conv, c.x, x, maxAlgorithms, &got, &all[0], workspace,
			uintptr(how.MaxWorkspace))
	case GradW:
		r = a.FindFilter(c.h.h, c.x, x, c.y, y, c.conv, c.w, w, maxAlgorithms, &got, &all[0], workspace,
			uintptr(how.MaxWorkspace))
	}
	if err := a.check(r, "timing the algorithms of a convolution of %v", c.shape); err != nil {
		return best, false, err
	}
	best, timed = how.first(all[:got], m)
	return best, timed, nil
}

// first returns the first usable algorithm of a list.
func (how Selection) first(all []Perf, m Math) (Choice, bool) {
	for _, p := range all {
		if choice, ok := how.usable(p, m); ok {
			return choice, true
		}
	}
	return Choice{}, false
}

// usable reports whether an algorithm satisfies the limits. With FMA, tensor cores are excluded.
func (how Selection) usable(p Perf, m Math) (Choice, bool) {
	if p.Status != 0 || int(p.Memory) > how.MaxWorkspace || how.Deterministic && p.Deterministic == 0 || m == FMA &&
		(p.Math == TensorOp || p.Math == AllowConversion) {
		return Choice{}, false
	}
	if m == FMA { // the library's default math may round to TF32
		p.Math = FMA
	}
	return Choice{Algo: p.Algo, Math: p.Math, Memory: int(p.Memory), Time: p.Time}, true
}

func (t Type) size() int {
	if t == Float32 {
		return 4
	}
	return 2
}
