package dist

import "fspda/device"

// Lawful is a Mask of which a device can draw the coordinates by itself: by a law, and from a
// stream with a counter.
type DeviceMask interface {
	Mask
	Sampling() device.Sampling
	// Counter is that of the stream from which Draw draws.
	Counter(t, i, j int) uint64
}

var (
	_ DeviceMask = randK{}
	_ DeviceMask = stratified{}
)

// Law implements [Lawful].
func (m randK) Sampling() device.Sampling { return device.Sampling{Dim: m.d, Count: m.k} }

// Law implements [Lawful].
func (m stratified) Sampling() device.Sampling {
	return device.Sampling{Dim: m.d, Count: m.k, Stratified: true}
}

// Counter is that of the stream of a mask.
func (b maskBase) Counter(t, i, j int) uint64 {
	s := b.stream(t, i, j)
	return s.Counter()
}
