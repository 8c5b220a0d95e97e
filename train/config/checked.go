package config

import (
	"fmt"

	"fspda/train/algo"
)

// checked is a setup as the check of its method sees it.
type checked struct{ s *Setup }

func (c checked) Settings() algo.Settings { return c.s.settings() }

func (c checked) Text(key string) string {
	v, ok := c.s.Config.value(key)
	if !ok {
		return ""
	}
	return fmt.Sprint(v)
}

func (c checked) Edges() int { return len(c.s.Graph.Edges) }

func (c checked) EqualDegrees() bool {
	for i := range c.s.Graph.N {
		if c.s.Graph.Degree(i) != c.s.Graph.MaxDegree() {
			return false
		}
	}
	return true
}

func (c checked) ValueBits() int { return c.s.WireFormat().Bits() }

func (c checked) LeastEigenvalue() float64 { return c.s.Mixing.Spectrum()[0] }

func (c checked) Contraction() algo.Contraction {
	delta := c.s.Compressor.Delta()
	if !c.s.Broadcasts() {
		return algo.Contraction{Message: delta, Iteration: delta, Limit: c.s.copyLimit()}
	}
	return algo.Contraction{Message: delta, Iteration: delta * c.s.BroadcastRate(), Limit: c.s.chocoLimit()}
}

func (c checked) CheckGain(key string, gain, dual float64) ([]string, error) {
	return c.s.gossipStable(key, gain, dual)
}

func (c checked) CheckMomentum(key string, m algo.GossipMomentum) error {
	return c.s.momentumStable(key, m)
}

func (c checked) LimitedCoefficients() []string { return c.s.limitedCoefficients() }
