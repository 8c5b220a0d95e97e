//go:build !noasm && !fspda_noasm

package tile

import "fspda/cpu/isa"

var neon = Set{Lanes: isa.NEON.Lanes(), peak: peakNEON, Tiles: [][2]Func{
	{tile1x8NEON, tile1x16NEON},
	{tile2x8NEON, tile2x16NEON},
	{tile3x8NEON, tile3x16NEON},
	{tile4x8NEON, tile4x16NEON},
	{tile5x8NEON, tile5x16NEON},
	{tile6x8NEON, tile6x16NEON},
}}

// sets holds the micro-kernels by instruction set.
var sets = [isa.Count]*Set{isa.NEON: &neon}

// pairSets and dotSets are empty: arm64 has no micro-kernels of pairs.
var pairSets, dotSets [isa.Count]*Set
