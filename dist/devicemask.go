package dist

import "fspda/device"

// DeviceMask is a Mask whose coordinates a device can draw, given the sampling parameters and the
// counter of the random stream.
type DeviceMask interface {
	Mask
	Sampling() device.Sampling
	// Counter returns the counter of the stream from which Draw draws.
	Counter(t, i, j int) uint64
}

var (
	_ DeviceMask = randK{}
	_ DeviceMask = stratified{}
)

// Sampling implements [DeviceMask].
func (m randK) Sampling() device.Sampling { return device.Sampling{Dim: m.d, Count: m.k} }

// Sampling implements [DeviceMask].
func (m stratified) Sampling() device.Sampling {
	return device.Sampling{Dim: m.d, Count: m.k, Stratified: true}
}

// Counter implements [DeviceMask].
func (b maskBase) Counter(t, i, j int) uint64 {
	s := b.stream(t, i, j)
	return s.Counter()
}
