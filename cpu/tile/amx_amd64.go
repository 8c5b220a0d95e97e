//go:build !noasm && !fspda_noasm

package tile

import (
	"sync"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

// Tiles of AMX hold 16 rows of 16 pairs or sums. A micro-kernel has two times two of them as sums.
const (
	amxRows  = 16
	amxSpace = 2048 // numbers of memory that a micro-kernel needs for sums and copies
)

// amxProduct is a micro-kernel for the rows of A that the configuration of tiles has, `second` rows
// of the second half, and one vector of columns or, if wide is not 0, two. tileSums defines
// its sums. It uses tiles from its first instruction to its last: the goroutine cannot move to
// another thread between, since Go does not preempt assembly, and a signal saves and restores
// tiles.
//
//go:noescape
func amxProduct(args *Args, config *byte, second int, wide int, space *float32)

var amxSpaces = sync.Pool{New: func() any { return &amxMemory{kernel.Aligned(amxSpace)} }}

type amxMemory struct{ numbers []float32 }

// amx returns the micro-kernels with tiles.
func amx() *Set {
	s := &Set{Lanes: 16, RowsOnly: true, sums: tileSums}
	for height := 1; height <= 2*amxRows; height++ {
		first, second := (height+1)/2, height/2
		config := new([64]byte)
		config[0] = 1 // palette
		for tile, rows := range []int{first, first, second, second, first, second, amxRows, amxRows} {
			if rows > 0 {
				config[16+2*tile], config[48+tile] = 64, byte(rows)
			}
		}
		var both [2]Func
		for wide := range both {
			both[wide] = func(args *Args) {
				m := amxSpaces.Get().(*amxMemory)
				amxProduct(args, &config[0], second, wide, &m.numbers[0])
				amxSpaces.Put(m)
			}
		}
		s.Tiles = append(s.Tiles, both)
	}
	return s
}

// availablePairs returns the micro-kernels of pairs that this processor has: the fastest ones, and
// the ones of AVX-512 BF16.
func availablePairs() (pairs, dots [isa.Count]*Set) {
	if isa.BF16() {
		pairs[isa.AVX512], dots[isa.AVX512] = &avx512BF16, &avx512BF16
	}
	if isa.AMX() {
		pairs[isa.AVX512] = amx()
	}
	return pairs, dots
}
