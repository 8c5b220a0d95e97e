//go:build !noasm && !fspda_noasm

package norm

import (
	"fspda/cpu/isa"
	"fspda/cpu/tile"
)

// halfLoops returns the loops over numbers of 16 bits, nil if the active instruction set has none.
func halfLoops() *loops {
	if isa.Active == isa.AVX512 && tile.Dots.Set() != nil {
		return loopsAVX512BF16
	}
	return nil
}

var loopsAVX512BF16 = loopsOfHalves(halfMomentsAVX512,
	[2][3]func(stride, rows, cols, ahead int, x, z, y, mean, scale, shift *float32){
		{halfAffineAVX512, halfAffineReLUAVX512, halfAffineAddReLUAVX512},
		{halfAffineStreamAVX512, halfAffineReLUStreamAVX512, halfAffineAddReLUStreamAVX512},
	},
	[4]func(stride, rows, cols, ahead int, x, dy, y, dz, mean *float32, s1, s2 *float64){
		halfGradSumsAVX512, halfGradSumsReLUAVX512, halfGradSumsAddReLUAVX512, halfGradSumsAddReLUStreamAVX512,
	},
	[2][2]func(stride, rows, cols, ahead int, x, dy, y, dx, mean, a, b, e *float32){
		{halfGradientAVX512, halfGradientReLUAVX512}, {halfGradientStreamAVX512, halfGradientReLUStreamAVX512},
	})
