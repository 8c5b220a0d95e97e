package config

import "cmp"

// FitTo sets the algorithm, and keys that another algorithm may have needed to what this one admits:
// edges to auto, a mask to all coordinates, momentum to 0 and the optimizer to auto, each where the
// algorithm has no use for it. An unknown name is left to Check.
func (c *Config) FitTo(algo string) {
	c.Algo = algo
	m, ok := c.findMethod()
	if !ok {
		return
	}
	if m.Edges != AnyEdges && m.Edges != AnyRounds {
		c.Edges = "auto"
	}
	if !m.Masks {
		c.Mask, c.Density = "auto", 1
	}
	if !m.takesMomentum() {
		c.Momentum = 0
	}
	if c.Optimizer != "auto" && !m.takes(c.Optimizer) {
		c.Optimizer = "auto"
	}
	if m.Constant {
		c.Schedule = "constant"
	}
	if !m.roundEnds() && m.Edges != Rounds && m.Edges != Coins || m.Edges == AnyRounds {
		c.LocalSteps = 0
	}
}

// RoundSteps returns the number of iterations of a round of the algorithm; 0 if it has no rounds.
func (c Config) RoundSteps() int {
	m, ok := c.findMethod()
	if !ok || m.Edges != Rounds && !m.roundEnds() {
		return 0
	}
	if m.Edges == AnyRounds {
		return c.LocalSteps
	}
	return cmp.Or(c.LocalSteps, m.Usual.Steps, defaultSteps)
}

// Masked reports whether an exchange carries part of the coordinates.
func (c Config) Masked() bool {
	m, ok := c.findMethod()
	return ok && m.Masks && c.Mask != "all" && c.Density < 1
}
