//go:build !noasm && !fspda_noasm

package tile

import "fspda/cpu/isa"

var avx512 = Set{Lanes: isa.AVX512.Lanes(), Masked: isa.AVX512.Masked(), peak: peakAVX512, Tiles: [][2]Func{
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

var avx2 = Set{Lanes: isa.AVX2.Lanes(), peak: peakAVX2, Tiles: [][2]Func{
	{tile1x8AVX2, tile1x16AVX2},
	{tile2x8AVX2, tile2x16AVX2},
	{tile3x8AVX2, tile3x16AVX2},
	{tile4x8AVX2, tile4x16AVX2},
	{tile5x8AVX2, tile5x16AVX2},
	{tile6x8AVX2, tile6x16AVX2},
}}

var avx512BF16 = Set{Lanes: isa.AVX512.Lanes(), Masked: isa.AVX512.Masked(), narrow: narrowAVX512BF16,
	between: betweenAVX512BF16, widen: widenAVX512BF16, interleave: interleaveAVX512BF16,
	narrowStream: narrowStreamAVX512BF16, fence: fenceAVX512BF16, sums: pairSums, Tiles: [][2]Func{
		{tile1x16AVX512BF16, tile1x32AVX512BF16},
		{tile2x16AVX512BF16, tile2x32AVX512BF16},
		{tile3x16AVX512BF16, tile3x32AVX512BF16},
		{tile4x16AVX512BF16, tile4x32AVX512BF16},
		{tile5x16AVX512BF16, tile5x32AVX512BF16},
		{tile6x16AVX512BF16, tile6x32AVX512BF16},
		{tile7x16AVX512BF16, tile7x32AVX512BF16},
		{tile8x16AVX512BF16, tile8x32AVX512BF16},
		{tile9x16AVX512BF16, tile9x32AVX512BF16},
		{tile10x16AVX512BF16, tile10x32AVX512BF16},
		{tile11x16AVX512BF16, tile11x32AVX512BF16},
		{tile12x16AVX512BF16, tile12x32AVX512BF16},
		{tile13x16AVX512BF16, tile13x32AVX512BF16},
		{tile14x16AVX512BF16, tile14x32AVX512BF16},
	}}

// sets holds the micro-kernels by instruction set, pairSets and dotSets the ones of pairs.
var (
	sets              = [isa.Count]*Set{isa.AVX2: &avx2, isa.AVX512: &avx512}
	pairSets, dotSets = availablePairs()
)
