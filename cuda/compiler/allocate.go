package compiler

import (
	"cmp"
	"fmt"
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// place gives every value a part of the arena, and every operand its place. Values that are not
// needed at the same time share memory.
func (p *planner) allocate() (*Plan, error) {
	if len(p.paramCasts) == 0 {
		p.tasks = p.tasks[1:]
	}
	p.lifetimes()
	made := &Plan{Tasks: p.tasks, Scaling: p.scaling, Arena: p.pack()}
	for i := range made.Tasks {
		t := &made.Tasks[i]
		if t.Mask != nil {
			t.Mask.Offset = p.values[t.Mask.value].offset
		}
		for _, o := range t.operandPtrs() {
			if o.value >= 0 {
				o.Offset = p.values[o.value].offset
			}
		}
	}
	if len(p.paramCasts) > 0 {
		made.Tasks[0].Casts = p.castStretches()
	}
	made.Examples = p.examples(made.Tasks)
	for _, r := range p.code.Results {
		s, err := p.valueAt(r.Ref)
		if err != nil {
			return nil, fmt.Errorf("result %s: %w", r.Name, err)
		}
		r.Ref.Off += p.values[s.value].offset/4 - s.ref.Off
		made.Results = append(made.Results, r)
	}
	return made, nil
}

// examples is the only copy of all examples, if nothing else reads them.
func (p *planner) examples(tasks []Task) *examples {
	var found *examples
	for i := range tasks {
		t := &tasks[i]
		for _, in := range t.In {
			if in.Space != device.Input {
				continue
			}
			if found != nil || t.Work != CastToHalf || in.Len != p.code.Batch*p.code.Features {
				return nil
			}
			found = &examples{t.Out[0], t.Columns, t.Padded}
		}
	}
	return found
}

// shadowStretches are the parameters to round, in pieces.
func (p *planner) castStretches() []kernels.Segment {
	var all []kernels.Segment
	for _, s := range p.paramCasts {
		one := kernels.Segment{From: s.ref.Off, To: p.values[s.value].offset / p.element.Size(), N: s.ref.Len, C: s.columns,
			Padded: s.padded}
		if s.columns == s.padded { // one long row
			one.C, one.Padded = 1, 1
		}
		all = append(all, one.Split()...)
	}
	return all
}

// lifetimes finds the tasks between which each value is needed.
func (p *planner) lifetimes() {
	for v := range p.values {
		p.values[v].first, p.values[v].last = len(p.tasks), -1
	}
	touch := func(v, at int) {
		if v >= 0 {
			p.values[v].first, p.values[v].last = min(p.values[v].first, at), max(p.values[v].last, at)
		}
	}
	for i := range p.tasks {
		if m := p.tasks[i].Mask; m != nil {
			touch(m.value, i)
		}
		for _, o := range p.tasks[i].operandPtrs() {
			touch(o.value, i)
		}
	}
	for _, s := range p.paramCasts {
		touch(s.value, 0)
	}
	for i := range p.tasks { // they may be there before the first task
		if t := &p.tasks[i]; t.Work == CastToHalf && t.In[0].Space == device.Input {
			touch(t.Out[0].value, 0)
		}
	}
	for v := range p.values {
		if p.values[v].result {
			touch(v, len(p.tasks))
		}
	}
}

// owner is the value whose memory a value lies in.
func (p *planner) storage(v int) int {
	for p.values[v].inPlaceOf >= 0 {
		v = p.values[v].inPlaceOf
	}
	return v
}

// bytes is what a value takes.
func (p *planner) bytes(v int) int {
	switch p.values[v].format {
	case halfFormat:
		return Align(p.values[v].n * p.element.Size())
	case positionFormat:
		return Align(p.values[v].n)
	}
	return Align(4 * p.values[v].n)
}

// pack lays values into the arena, the largest first, each at the lowest place that is free all the
// time that it is needed. It returns the length of the arena in bytes.
func (p *planner) pack() int {
	var order []int
	for v := range p.values {
		if o := p.storage(v); o != v {
			p.values[o].first, p.values[o].last = min(p.values[o].first, p.values[v].first), max(p.values[o].last,
				p.values[v].last)
		} else {
			order = append(order, v)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.bytes(b), p.bytes(a)) })
	var placed []int // by where they lie
	length := 0
	for _, v := range order {
		at, size := 0, p.bytes(v)
		for _, o := range placed {
			other := &p.values[o]
			if other.first > p.values[v].last || p.values[v].first > other.last {
				continue
			}
			if other.offset >= at+size {
				break // it fits in front of this one, and all that follow lie behind
			}
			at = max(at, other.offset+p.bytes(o))
		}
		p.values[v].offset = at
		length = max(length, at+size)
		i, _ := slices.BinarySearchFunc(placed, at, func(o, at int) int { return cmp.Compare(p.values[o].offset, at) })
		placed = slices.Insert(placed, i, v)
	}
	for v := range p.values {
		p.values[v].offset = p.values[p.storage(v)].offset
	}
	return length
}

// line is what parts of the arena are aligned to, in bytes: what the widest loads want.
const AlignBytes = 256

func Align(n int) int { return (n + AlignBytes - 1) / AlignBytes * AlignBytes }
