//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

// tileSet is the micro-kernels of an instruction set, by height and by width in vectors.
type tileSet struct {
	name   string
	lanes  int  // columns of a vector
	masked bool // the last vector of a row of B is read only as far as it is wide
	tiles  [][2]tileFunc
}

var avx512 = tileSet{"avx512", 16, true, [][2]tileFunc{
	{tile1x16AVX512, tile1x32AVX512},
	{tile2x16AVX512, tile2x32AVX512},
	{tile3x16AVX512, tile3x32AVX512},
	{tile4x16AVX512, tile4x32AVX512},
	{tile5x16AVX512, tile5x32AVX512},
	{tile6x16AVX512, tile6x32AVX512},
	{tile7x16AVX512, tile7x32AVX512},
	{tile8x16AVX512, tile8x32AVX512},
	{tile9x16AVX512, tile9x32AVX512},
	{tile10x16AVX512, tile10x32AVX512},
	{tile11x16AVX512, tile11x32AVX512},
	{tile12x16AVX512, tile12x32AVX512},
	{tile13x16AVX512, tile13x32AVX512},
	{tile14x16AVX512, tile14x32AVX512},
}}

var avx2 = tileSet{"avx2", 8, false, [][2]tileFunc{
	{tile1x8AVX2, tile1x16AVX2},
	{tile2x8AVX2, tile2x16AVX2},
	{tile3x8AVX2, tile3x16AVX2},
	{tile4x8AVX2, tile4x16AVX2},
	{tile5x8AVX2, tile5x16AVX2},
	{tile6x8AVX2, tile6x16AVX2},
}}

// tileSets is what this processor can do, fastest first. GODEBUG=cpu.avx512f=off (or avx512, which
// the runtime does not know and says so) and cpu.avx2=off (or avx, fma) take from it.
var tileSets = available()

func available() []*tileSet {
	var sets []*tileSet
	if !cpu.X86.HasAVX || !cpu.X86.HasAVX2 || !cpu.X86.HasFMA { // the packing of both stands on AVX2
		return nil
	}
	if cpu.X86.HasAVX512 && cpu.X86.HasAVX512F {
		sets = append(sets, &avx512)
	}
	return append(sets, &avx2)
}

// product is gemmThen without its checks.
func product(m, n, k int, alpha float32, a, b view, beta float32, c view, then epilogue) {
	if len(tileSets) == 0 {
		productPlain(m, n, k, alpha, a, b, beta, c, then)
		return
	}
	tileSets[0].product(m, n, k, alpha, a, b, beta, c, then)
}
