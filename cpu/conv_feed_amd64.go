//go:build !noasm

package cpu

import "unsafe"

// feed asks the cache for operands that will be needed later, while micro-kernels are at work: each
// of their products asks for a line. Memory is far, and a processor does not look ahead beyond the
// page it reads.
type feed struct {
	areas [2]area
	each  int // bytes for a tile
}

// area is what is left of some memory, as addresses: nothing is read there.
type area struct{ at, end uintptr }

func areaOf(v []float32) area {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(v)))
	return area{at, at + uintptr(4*len(v))}
}

// feedOf shares what will be needed among so many tiles.
func feedOf(a, b []float32, tiles int) feed {
	return feed{[2]area{areaOf(a), areaOf(b)}, 4*(len(a)+len(b))/tiles + line}
}

// give makes the next tile, whose a is set, ask for the next piece.
func (f *feed) give(t *tileArgs, products int) {
	for i := range f.areas {
		if m := &f.areas[i]; m.at < m.end {
			t.ahead, t.step = int(m.at-uintptr(unsafe.Pointer(t.a))), min(line, f.each/products+1)
			m.at += uintptr(products * t.step)
			return
		}
	}
	t.ahead, t.step = 0, 0
}

// askBeside makes the next tile, whose a and b are set, ask for what lies so many numbers further
// on in every row of b.
func askBeside(t *tileArgs, far int) {
	t.ahead, t.step = int(uintptr(unsafe.Pointer(t.b))-uintptr(unsafe.Pointer(t.a)))+4*far, t.brs
}
