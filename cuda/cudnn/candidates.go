package cudnn

import (
	"errors"
	"time"
)

// maxTrying limits the time in which engines are tried, since each that compiles its kernel takes
// seconds. Those come last; a run chooses among fewer of them.
const maxTrying = 3 * time.Second

// Candidates calls visit for every implementation that may be chosen for a convolution: the engines
// that the library offers, as far as they can be tried in some seconds, the algorithms that it
// recommends, and the matrix product. The Conv is
// ready to run and valid until visit returns. An error of visit ends the iteration.
func (h *Handle) Candidates(s Shape, d Direction, of Type, m Math, how Selection, visit func(c *Conv) error) error {
	c := &Conv{h: h, shape: s, direction: d, of: of, how: how, math: m, hasRun: true}
	err := c.describe(of, m)
	if err == nil && h.api.Backend != nil {
		err = c.eachEngine(how, m, visit)
	}
	if err == nil {
		err = c.eachAlgorithm(how, m, visit)
	}
	if err == nil && how.Product != nil {
		c.product = how.Product
		err = visit(c)
	}
	return errors.Join(err, c.Close())
}

func (c *Conv) eachEngine(how Selection, m Math, visit func(c *Conv) error) error {
	begin := time.Now()
	for _, e := range c.engines(how, m) {
		if time.Since(begin) > maxTrying {
			break
		}
		p, err := c.planWithin(e, how)
		if err != nil {
			continue // cannot be chosen
		}
		c.use(p)
		err = visit(c)
		c.plan = nil
		if err := errors.Join(err, p.close()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conv) eachAlgorithm(how Selection, m Math, visit func(c *Conv) error) error {
	all, err := c.algorithms()
	if err != nil {
		return err
	}
	for _, p := range all {
		choice, ok := how.usable(p, m)
		if !ok {
			continue
		}
		if err := c.take(choice, how); err != nil {
			return err
		}
		if err := visit(c); err != nil {
			return err
		}
	}
	return nil
}
