package compiler

import (
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/plan"
)

// allocate gives every value an offset in the arena, and every operand the offset of its value.
// Values with disjoint lifetimes share memory.
func (p *planner) allocate() *Plan {
	if len(p.paramCasts) == 0 {
		p.tasks = p.tasks[1:]
	}
	p.lifetimes()
	p.splitInPlace()
	made := &Plan{Tasks: p.tasks, Scaling: p.scaling, Arena: p.pack()}
	for i := range made.Tasks {
		t := &made.Tasks[i]
		if t.Mask != nil {
			t.Mask.Offset = p.values[t.Mask.value].Off
		}
		for _, o := range t.operandPtrs() {
			if o.value >= 0 {
				o.Offset = p.values[o.value].Off
			}
		}
	}
	if len(p.paramCasts) > 0 {
		made.Tasks[0].Casts = p.paramSegments()
	}
	made.Examples = p.findExamples(made.Tasks)
	for i, r := range p.code.Results {
		v := p.flow.Results[i]
		r.Ref.Off += p.values[v].Off/4 - p.flow.Values[v].Ref.Off
		made.Results = append(made.Results, r)
	}
	return made
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
		one := kernels.Segment{From: s.ref.Off, To: p.values[s.value].Off / p.element.Size(), N: s.ref.Len,
			C: s.columns, Padded: s.padded}
		switch s.columns {
		case s.padded: // no padding: one long row
			one.C, one.Padded = 1, 1
		case s.ref.Len: // a long row with a padding: the last number has it
			last := kernels.Segment{From: one.From + one.N - 1, To: one.To + one.N - 1, N: 1, C: 1,
				Padded: 1 + one.Padded - one.N}
			all = append(all, last)
			one.N, one.C, one.Padded = one.N-1, 1, 1
		}
		all = append(all, one.Split()...)
	}
	return all
}

func (p *planner) lifetimes() {
	use := func(v, at int) {
		if v >= 0 {
			p.values[v].Use(at)
		}
	}
	for i := range p.tasks {
		if m := p.tasks[i].Mask; m != nil {
			use(m.value, i)
		}
		for _, o := range p.tasks[i].operandPtrs() {
			use(o.value, i)
		}
	}
	for _, s := range p.paramCasts {
		use(s.value, 0)
	}
	// the examples may be in 16 bits before the first task: see Plan.Examples
	for i := range p.tasks {
		if t := &p.tasks[i]; t.Work == CastToHalf && t.In[0].Space == device.Input {
			use(t.Out[0].value, 0)
		}
	}
	for v := range p.values {
		if p.values[v].result {
			use(v, len(p.tasks))
		}
	}
}

// splitInPlace gives a value memory of its own if a later task reads the value that its call
// overwrites in place: a fusion reads its operands later than the code does.
func (p *planner) splitInPlace() {
	for v := range p.values {
		for o := p.values[v].inPlaceOf; o >= 0; o = p.values[o].inPlaceOf {
			if p.values[v].Used() && p.values[o].End > p.values[v].First+1 {
				p.values[v].inPlaceOf = -1
				break
			}
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
		return p.values[v].n * p.element.Size()
	case positionFormat:
		return p.values[v].n
	}
	return 4 * p.values[v].n
}

// pack allocates the values in the arena and returns its size in bytes.
func (p *planner) pack() int {
	align := AlignBytes
	if p.element == kernels.F32 {
		align = float32AlignBytes
	}
	blocks := make([]*plan.Block, len(p.values))
	for v := range p.values {
		p.values[v].Size = plan.Align(p.bytes(v), align)
		blocks[v] = &p.values[v].Block
		if o := p.storage(v); o != v {
			p.values[o].Extend(p.values[v].Lifetime)
			p.values[v].Lifetime = plan.Lifetime{}
		}
	}
	size := plan.Pack(blocks, align)
	for v := range p.values {
		p.values[v].Off = p.values[p.storage(v)].Off
	}
	return size
}

// AlignBytes is the alignment of values in the arena, enough for the widest loads.
const AlignBytes = 256

// float32AlignBytes is the alignment of values in the arena of a float32 program. It equals the
// alignment of addresses in code: with AlignBytes, numbers like losses would make the arena of a
// small network larger.
const float32AlignBytes = 64

// Align rounds a number of bytes up to a multiple of AlignBytes.
func Align(n int) int { return plan.Align(n, AlignBytes) }
