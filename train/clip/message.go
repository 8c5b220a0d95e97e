package clip

import (
	"math"

	"fspda/device"
	"fspda/dist"
)

// Message returns b, a vector that an agent received, or one in its place whose difference from
// own, the agent's vector, is not longer than a limit; 0: there is none. Both ends of an edge
// shorten a difference by one factor. Message takes over a reference to b.
func Message(pool *dist.Pool, b *dist.Buffer, own device.Vector, limit float64) *dist.Buffer {
	if limit == 0 {
		return b
	}
	dev, diff := pool.Device(), pool.Get(b.V.Len())
	dev.Do(device.Combine(diff.V, device.Term{A: 1, V: b.V}, device.Term{A: -1, V: own}))
	norm := math.Sqrt(device.InnerProduct(dev, diff.V, diff.V))
	if !(norm > limit) {
		diff.Release()
		return b
	}
	dev.Do(device.Combine(diff.V, device.Term{A: 1, V: own}, device.Term{A: limit / norm, V: diff.V}))
	b.Release()
	return diff
}
