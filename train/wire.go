package train

import (
	"slices"

	"fspda/device"
	"fspda/dist"
)

// shorten rounds a lent buffer to what travels of it, once, before anybody else sees it: both ends
// then compare the same numbers. See [dist.ValueFormat].
func (a *agent) shorten(b *dist.Buffer) {
	wire := a.run.setup.WireFormat()
	if wire.Bits() == 32 || slices.Contains(a.short, b) {
		return
	}
	a.short = append(a.short, b)
	a.host = slices.Grow(a.host[:0], b.V.Len())[:b.V.Len()]
	a.dev.Read(a.host, b.V)
	wire.Round(a.host)
	a.dev.Write(b.V, a.host)
}

// trader is Round.Swap. Where values are rounded before they travel there is none: what an
// algorithm posts is then a copy, so that its own vectors keep all their bits.
func (a *agent) trader() func(v device.Vector) device.Vector {
	if a.run.setup.WireFormat().Bits() != 32 {
		return nil
	}
	return a.trade
}
