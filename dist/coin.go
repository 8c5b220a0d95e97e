package dist

// coin activates all edges with probability p, otherwise none. All agents share the coin, as
// ProxSkip requires.
type coin struct {
	edgeSampler
	p float64
}

func (c coin) String() string        { return withFloat("coin", c.p) }
func (c coin) Rate(edge int) float64 { return c.p }

func (c coin) Active(dst []Event, t int) []Event {
	s := c.at(t)
	if s.Float64() >= c.p {
		return dst[:0]
	}
	return full{c.g}.Active(dst, t)
}
