//go:build (!amd64 && !arm64) || noasm || fspda_noasm

package data

func (c *channel) apply(dst []float32, pixels, _ []uint8) { c.applyGo(dst, pixels) }

func (n *normalizer) applyPattern([]float32, []uint8) int { return 0 }
