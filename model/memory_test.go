package model

import (
	"testing"

	"fspda/device"
)

// liveBound returns a lower bound of the arena: the largest sum of values that are live at one
// step, each from the step that computes it to its last read, counting shared memory once.
func liveBound(p *Plan) int {
	l := p.lowered
	type span struct{ first, last, size int }
	spans := map[int]*span{}
	for i, s := range l.steps {
		for _, v := range append(append([]int{}, s.out...), s.in...) {
			if l.values[v].leaf || l.values[v].ref.Space != device.Arena {
				continue
			}
			if spans[v] == nil {
				spans[v] = &span{first: i, size: l.values[v].ref.Len}
			}
			spans[v].last = i
		}
	}
	// a sum overwrites a summand: in that step they count as one
	for _, s := range l.steps {
		for _, v := range s.in {
			if in, out := spans[v], spans[s.out[0]]; in != nil && out != nil && v != s.out[0] &&
				l.values[v].ref == l.values[s.out[0]].ref {
				in.last = min(in.last, out.first-1)
			}
		}
	}
	most := 0
	for i := range l.steps {
		sum := 0
		for _, s := range spans {
			if s.first <= i && i <= s.last {
				sum += s.size
			}
		}
		most = max(most, sum)
	}
	return most
}

// ResNet-50 at 224 pixels and batch 32 needs no more than its live set, and a third of it with
// recomputation.
func TestResNet50FitsTheLiveSet(t *testing.T) {
	var arena [2]int
	for i, r := range []Recompute{RecomputeNone, RecomputeBlocks} {
		p := mustPlan(t, resNetOf(t, ResNetOptions{Depth: 50, Height: 224, Width: 224, Classes: 1000, WeightDecay: 1e-4,
			Recompute: r}), 32, Step)
		bound := liveBound(p)
		arena[i] = p.code.Arena
		if p.code.Arena < bound || float64(p.code.Arena) > 1.1*float64(bound) {
			t.Errorf("recompute %s: an arena of %d numbers, of which %d are live at once", r, p.code.Arena, bound)
		}
		if p.Bytes() != 4*p.code.Arena {
			t.Errorf("%d bytes for an arena of %d numbers", p.Bytes(), p.code.Arena)
		}
	}
	if arena[0] > 2750<<18 || arena[1] > arena[0]/3 {
		t.Errorf("arenas of %d MiB and, with recomputation, %d MiB, want at most 2750 and a third", arena[0]>>18,
			arena[1]>>18)
	}
}
