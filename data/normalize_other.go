//go:build !amd64 || noasm

package data

func (n *normalizer) apply(dst []float32, pixels []uint8) { n.applyGo(dst, pixels) }
