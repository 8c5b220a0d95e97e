package train

import (
	"slices"

	"fspda/device"
	"fspda/dist"
)

// wire is how the values of the run's messages travel.
func (s *Setup) wire() dist.ValueFormat { return dist.ValueFormat(s.Config.Wire) }

// admitWire refuses short values where they are not what travels.
func (s *Setup) admitWire() error {
	c := &s.Config
	if s.wire().Bits() == 32 {
		return nil
	}
	switch s.method.Edges {
	case Speakers, Pairs:
		return wrong("wire", c.Wire, "%s sends what compress says: use wire fp32, or compress with fewer bits", c.Algo)
	case Clocks:
		if c.Clock != clockReal {
			return wrong("wire", c.Wire, "the exchanges of %s are simulated in float32: use wire fp32, clock real, or a synchronous algorithm", c.Algo)
		}
	}
	return nil
}

// shorten rounds a lent buffer to what travels of it, once, before anybody else sees it: both ends
// then compare the same numbers. See [dist.ValueFormat].
func (a *agent) shorten(b *dist.Buffer) {
	wire := a.run.setup.wire()
	if wire.Bits() == 32 || slices.Contains(a.short, b) {
		return
	}
	a.short = append(a.short, b)
	a.host = slices.Grow(a.host[:0], b.V.Len())[:b.V.Len()]
	a.dev.Read(a.host, b.V)
	wire.Round(a.host)
	a.dev.Write(b.V, a.host)
}

// trader is Round.Trade. Where values are rounded before they travel there is none: what an
// algorithm posts is then a copy, so that its own vectors keep all their bits.
func (a *agent) trader() func(v device.Vector) device.Vector {
	if a.run.setup.wire().Bits() != 32 {
		return nil
	}
	return a.trade
}
