//go:build !(amd64 || arm64) || noasm || fspda_noasm

package strata

import "fspda/internal/rng"

// groupSize is larger than any number of blocks: all are drawn one at a time.
const groupSize = 1 << 62

// fillFast draws nothing.
func (c *cursor) fillFast(_ []uint32, begin uint32, _ *rng.Stream) (n int, next uint32) {
	return 0, begin
}
