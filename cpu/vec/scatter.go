package vec

import (
	"slices"

	"fspda/device"
)

const (
	// all parts are added to this many numbers of a vector before the next: they stay in the
	// second-level cache, and each part is read in long stretches
	scatterBlock = 1 << 16
	scatterParts = 32 // parts at a time
)

// addAllParts computes a ScatterAdd.
func addAllParts(op *device.Op) {
	for parts := op.Parts; len(parts) > 0; {
		n := min(scatterParts, len(parts))
		addParts(numbers(op.Out[0]), parts[:n])
		parts = parts[n:]
	}
}

// addParts adds the parts to v block by block. Each number gets its parts in their order, as if one
// part was added after the other.
func addParts(v []float32, parts []device.SparseTerm) {
	var done [scatterParts]int // coordinates that were added, for each part
	block := scatterBlock
	if len(parts) == 1 {
		block = len(v)
	}
	for begin := 0; begin < len(v); begin += block {
		end := min(begin+block, len(v))
		for k, p := range parts {
			values, a := numbers(p.V), float32(p.A)
			if p.Idx == nil {
				plusTimes(v[begin:end], a, values[begin:end])
				continue
			}
			at := coordinates(p.Idx)[done[k]:]
			n, _ := slices.BinarySearch(at[:min(block, len(at))], uint32(end))
			if adjacent(at[:n]) {
				plusTimes(v[at[0]:][:n], a, values[done[k]:][:n])
			} else {
				scatterAdd(v, at, n, values[done[k]:], a)
			}
			done[k] += n
		}
	}
}

// scatterAddGo: v[at] += a·p for the first n coordinates.
func scatterAddGo(v []float32, at []uint32, n int, p []float32, a float32) {
	p = p[:n]
	for j, i := range at[:n] {
		v[i] += float32(a * p[j])
	}
}
