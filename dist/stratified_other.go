//go:build !(amd64 || arm64) || noasm || fspda_noasm

package dist

import "fspda/internal/rng"

// strataGroup is larger than any number of blocks: all are drawn one at a time.
const strataGroup = 1 << 62

// fillFast draws nothing.
func (c *strataCursor) fillFast(_ []uint32, begin uint32, _ *rng.Stream) (n int, next uint32) {
	return 0, begin
}
