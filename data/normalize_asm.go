//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package data

// normalizeCode is an implementation of normalization: dst[i] = scale·pixels[i] + shift for n
// pixels, a positive multiple of 16. It prefetches n bytes at ahead, which need not be valid.
type normalizeCode struct {
	name string
	run  func(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)

	// pattern computes dst[i] = scale[i mod 48]·pixels[i] + shift[i mod 48] for n pixels, a
	// positive multiple of 48. It may be nil.
	pattern func(dst *float32, pixels *uint8, n int, p *pattern)
}

var normalizeIn = normalizeCodes()[0]

// normalizeBlock is the number of pixels per assembly call: one or two microseconds, since the
// scheduler cannot preempt assembly.
const normalizeBlock = 1 << 14

// apply is normalizer.apply for one channel.
func (c *channel) apply(dst []float32, pixels, ahead []uint8) {
	dst = dst[:len(pixels)]
	for len(pixels) >= 16 {
		whole := min(len(pixels)&^15, normalizeBlock)
		if len(ahead) == 0 {
			ahead = pixels
		}
		normalizeIn.run(&dst[0], &pixels[0], whole, c.scale, c.shift, &ahead[0])
		dst, pixels, ahead = dst[whole:], pixels[whole:], ahead[min(whole, len(ahead)):]
	}
	c.applyGo(dst, pixels)
}

// patternBlock is the number of pixels per assembly call with a pattern, a multiple of its length.
const patternBlock = patternLength * (normalizeBlock / patternLength)

// applyPattern converts as many pixels as whole vectors allow, and returns their number.
func (n *normalizer) applyPattern(dst []float32, pixels []uint8) int {
	whole := len(pixels) / patternLength * patternLength
	if normalizeIn.pattern == nil {
		return 0
	}
	for at := 0; at < whole; at += patternBlock {
		normalizeIn.pattern(&dst[at], &pixels[at], min(whole-at, patternBlock), &n.pattern)
	}
	return whole
}
