package plan

import (
	"cmp"
	"slices"
)

// Block is memory that is in use during a range of steps. The zero Lifetime is empty.
type Block struct {
	Size int
	Lifetime
	Off int // set by Pack
}

// Lifetime is a range of steps: First <= step < End.
type Lifetime struct{ First, End int }

// Used reports whether the lifetime has any step.
func (l *Lifetime) Used() bool { return l.First < l.End }

// Use extends the lifetime to a step.
func (l *Lifetime) Use(step int) { l.Extend(Lifetime{step, step + 1}) }

// Extend extends the lifetime to another one and all steps between them.
func (l *Lifetime) Extend(other Lifetime) {
	switch {
	case !other.Used():
	case !l.Used():
		*l = other
	default:
		l.First, l.End = min(l.First, other.First), max(l.End, other.End)
	}
}

// overlaps reports whether two lifetimes have a step in common.
func (l *Lifetime) overlaps(other Lifetime) bool { return l.First < other.End && other.First < l.End }

// Pack sets the offset of each used block to a multiple of align and returns the end of the last
// block. Blocks whose lifetimes overlap do not share memory.
//
// The largest block comes first, and each takes the lowest offset that is free during its lifetime:
// small blocks placed first would fragment the space that large ones need. Blocks of equal size are
// packed in the order given.
func Pack(blocks []*Block, align int) (size int) {
	order := slices.DeleteFunc(slices.Clone(blocks), func(b *Block) bool { return !b.Used() })
	slices.SortStableFunc(order, func(a, b *Block) int { return cmp.Compare(b.Size, a.Size) })
	var packed []*Block // blocks sorted by offset
	for _, b := range order {
		b.Off = 0
		for _, other := range packed {
			if !b.overlaps(other.Lifetime) {
				continue
			}
			if other.Off >= b.Off+Align(b.Size, align) {
				break // b fits before it, and the rest have larger offsets
			}
			b.Off = max(b.Off, other.Off+Align(other.Size, align))
		}
		size = max(size, b.Off+Align(b.Size, align))
		at, _ := slices.BinarySearchFunc(packed, b.Off, func(o *Block, off int) int { return cmp.Compare(o.Off, off) })
		packed = slices.Insert(packed, at, b)
	}
	return size
}

// Align rounds a size up to a multiple of align.
func Align(size, align int) int { return (size + align - 1) / align * align }
