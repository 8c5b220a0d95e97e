package config

import "cmp"

// FitTo sets the algorithm, and keys that another algorithm may have needed to values that this one
// admits: edges to auto, a mask to all coordinates, momentum to 0 and the optimizer to auto, each
// where the algorithm has no use for it. An unknown name is left to Check.
func (c *Config) FitTo(name string) {
	c.Algo = name
	m, ok := c.findMethod()
	if !ok {
		return
	}
	if !m.traits.Edges.Anytime() {
		c.Edges = "auto"
	}
	if !m.traits.Masks {
		c.Mask, c.Density = "auto", 1
	}
	if !m.takesMomentum() {
		c.Momentum = 0
	}
	if c.Optimizer != "auto" && !m.takes(c.Optimizer) {
		c.Optimizer = "auto"
	}
	if m.traits.Constant {
		c.Schedule = "constant"
	}
	if kind := m.traits.Edges; !kind.AtRoundEnds && !kind.InRounds || kind.OptionalRounds {
		c.LocalSteps = 0
	}
}

// RoundSteps returns the number of iterations of a round of the algorithm; 0 if it has no rounds.
func (c Config) RoundSteps() int {
	m, ok := c.findMethod()
	if !ok {
		return 0
	}
	switch kind := m.traits.Edges; {
	case kind.Drawn || !kind.InRounds && !kind.AtRoundEnds:
		return 0
	case kind.OptionalRounds:
		return c.LocalSteps
	}
	return cmp.Or(c.LocalSteps, m.traits.LocalSteps, defaultSteps)
}

// Masked reports whether an exchange carries part of the coordinates.
func (c Config) Masked() bool {
	m, ok := c.findMethod()
	return ok && m.traits.Masks && c.Mask != "all" && c.Density < 1
}
