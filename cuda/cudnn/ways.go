package cudnn

import "errors"

// Ways goes through all that may be chosen for a convolution: the engines that the library offers,
// the algorithms that it advises, and the product. Each is handed over ready to be run, and is over
// when then returns. An error of then ends it.
func (h *Handle) Ways(s Shape, d Direction, of Type, m Math, how Choosing, then func(c *Conv) error) error {
	c := &Conv{h: h, shape: s, direction: d, of: of, how: how, math: m, proven: true}
	err := c.describe(of, m)
	if err == nil && h.api.Backend != nil {
		err = c.eachEngine(how, m, then)
	}
	if err == nil {
		err = c.eachAlgorithm(how, m, then)
	}
	if err == nil && how.Product != nil {
		c.product = how.Product
		err = then(c)
	}
	return errors.Join(err, c.Close())
}

func (c *Conv) eachEngine(how Choosing, m Math, then func(c *Conv) error) error {
	for _, e := range c.engines(how, m) {
		p, err := c.planWithin(e, how)
		if err != nil {
			continue // it is no choice
		}
		c.use(p)
		err = then(c)
		c.planned = nil
		if err := errors.Join(err, p.close()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conv) eachAlgorithm(how Choosing, m Math, then func(c *Conv) error) error {
	all, err := c.algorithms()
	if err != nil {
		return err
	}
	for _, p := range all {
		choice, ok := how.may(p, m)
		if !ok {
			continue
		}
		if err := c.take(choice, how); err != nil {
			return err
		}
		if err := then(c); err != nil {
			return err
		}
	}
	return nil
}
