package compiler

import (
	"cmp"
	"fmt"
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// allocate gives every value an offset in the arena, and every operand that of its value. Values
// with disjoint lifetimes share memory.
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
		made.Tasks[0].Casts = p.paramSegments()
	}
	made.Examples = p.findExamples(made.Tasks)
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

// findExamples returns the operand of the only cast that reads the examples, or nil.
func (p *planner) findExamples(tasks []Task) *Examples {
	var found *Examples
	for i := range tasks {
		t := &tasks[i]
		for _, in := range t.In {
			if in.Space != device.Input {
				continue
			}
			if found != nil || t.Work != CastToHalf || in.Len != p.code.Batch*p.code.Features {
				return nil
			}
			found = &Examples{t.Out[0], t.Columns, t.Padded}
		}
	}
	return found
}

// paramSegments returns the parameters to round, in pieces.
func (p *planner) paramSegments() []kernels.Segment {
	var all []kernels.Segment
	for _, s := range p.paramCasts {
		one := kernels.Segment{From: s.ref.Off, To: p.values[s.value].offset / p.element.Size(), N: s.ref.Len,
			C:      s.columns,
			Padded: s.padded}
		if s.columns == s.padded { // no padding: one long row
			one.C, one.Padded = 1, 1
		}
		all = append(all, one.Split()...)
	}
	return all
}

// lifetimes sets the first and the last task that need each value.
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
	// the examples may be in 16 bits before the first task: see Plan.Examples
	for i := range p.tasks {
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

// storage returns the value in whose memory v lies: itself, or the value that it overwrites in
// place.
func (p *planner) storage(v int) int {
	for p.values[v].inPlaceOf >= 0 {
		v = p.values[v].inPlaceOf
	}
	return v
}

// bytes returns the size of a value's memory.
func (p *planner) bytes(v int) int {
	switch p.values[v].format {
	case halfFormat:
		return Align(p.values[v].n * p.element.Size())
	case positionFormat:
		return Align(p.values[v].n)
	}
	return Align(4 * p.values[v].n)
}

// pack allocates the values in the arena, the largest first, each at the lowest offset that is free
// during its lifetime. It returns the size of the arena in bytes.
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
	var allocated []int // by offset
	length := 0
	for _, v := range order {
		at, size := 0, p.bytes(v)
		for _, o := range allocated {
			other := &p.values[o]
			if other.first > p.values[v].last || p.values[v].first > other.last {
				continue
			}
			if other.offset >= at+size {
				break // it fits before this one, and the rest have larger offsets
			}
			at = max(at, other.offset+p.bytes(o))
		}
		p.values[v].offset = at
		length = max(length, at+size)
		i, _ := slices.BinarySearchFunc(allocated, at, func(o, at int) int {
			return cmp.Compare(p.values[o].offset,
				at)
		})
		allocated = slices.Insert(allocated, i, v)
	}
	for v := range p.values {
		p.values[v].offset = p.values[p.storage(v)].offset
	}
	return length
}

// AlignBytes is the alignment of values in the arena, enough for the widest loads.
const AlignBytes = 256

func Align(n int) int { return (n + AlignBytes - 1) / AlignBytes * AlignBytes }
