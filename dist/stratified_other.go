//go:build !amd64 || noasm

package dist

import "fspda/internal/rng"

// strataGroup is more than there are blocks: they are all drawn from one by one.
const strataGroup = 1 << 62

// fillFast draws nothing.
func (c *strataCursor) fillFast(_ []uint32, begin uint32, _ *rng.Stream) (n int, next uint32) {
	return 0, begin
}
