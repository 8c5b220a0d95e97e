//go:build !amd64 || noasm || fspda_noasm

package attention

import "fspda/cpu/tile"

// products computes products of parts of a head, in Go.
type products struct{}

func newProducts() *products { return &products{} }

func (p *products) release() {}

func (p *products) transposed(_ []float32, _ int, src tile.View, _, _ int) tile.View { return src.T() }

func (p *products) scaledKeys(_, scratch []float32, _ int, keys tile.View, rows, width int) tile.View {
	return scaled(scratch, keys, rows, width).T()
}

func (p *products) right(_ []float32, src tile.View, _, _ int) tile.View { return src }

func (p *products) multiply(rows, cols, depth int, alpha float32, a, b tile.View, beta float32, c tile.View) {
	plainMultiply(rows, cols, depth, alpha, a, b, beta, c)
}
