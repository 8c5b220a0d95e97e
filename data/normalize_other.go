//go:build !amd64 || noasm

package data

// apply writes the numbers of pixels to dst.
func (n *normalizer) apply(dst []float32, pixels, _ []uint8) { n.applyGo(dst, pixels) }
