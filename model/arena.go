package model

import (
	"slices"

	"fspda/device"
	"fspda/device/plan"
)

// arenaAlign is the alignment of arena buffers in float32 elements: 16 of them are 64 bytes, a
// cache line.
const arenaAlign = 16

// buffer is memory that holds one or several values in sequence, where each addition updates the
// previous value in place.
type buffer struct {
	plan.Block      // its size in float32 elements, its lifetime in steps
	gradientOf int  // the parameter whose gradient it holds, or -1
	fixed      bool // its address is ref, in the buffer vector
	ref        device.Ref
	isResult   bool // holds a result, which must outlive the last step
}

// allocation assigns a buffer to every value that is not a leaf, and an address to every buffer.
type allocation struct {
	*lowered
	// one per value; the entry of a value that shares another buffer is unused
	buffers      []buffer
	of           []int // the buffer of each value
	arena        int   // length of the arena
	unsharedSize int   // its length if no memory were used twice
}

// allocate assigns memory to the values. Gradients are written directly to the gradient vector, a
// sum overwrites a summand that is not read again, and all other values share an arena according to
// the steps in which they are live.
func allocate(l *lowered, dim func(param int) (offset int)) *allocation {
	p := &allocation{lowered: l}
	p.open(len(p.values))
	for _, v := range p.results {
		p.buffers[v].isResult = true
	}
	p.bindGradients()
	for _, u := range p.updates {
		p.buffers[u.value].fixed, p.buffers[u.value].ref = true, u.ref
	}
	p.reuseSummands()
	p.lifetimes()
	p.pack()
	for v := range p.values {
		if p.values[v].leaf {
			continue
		}
		switch b := p.buffers[p.of[v]]; {
		case b.fixed:
			p.values[v].ref = b.ref
		case b.gradientOf >= 0:
			p.values[v].ref.Space, p.values[v].ref.Off = device.Grads, dim(b.gradientOf)
		default:
			p.values[v].ref.Space, p.values[v].ref.Off = device.Arena, b.Off
		}
	}
	return p
}

// open adds buffers until there is one for each of n values.
func (p *allocation) open(n int) {
	for v := len(p.buffers); v < n; v++ {
		p.buffers = append(p.buffers, buffer{Block: plan.Block{Size: p.values[v].ref.Len}, gradientOf: -1})
		p.of = append(p.of, v)
	}
}

// bindGradients binds the value of each gradient to its address in the gradient vector. A value
// that cannot be computed there (a leaf, a result, the gradient of another parameter as well) is
// copied at the end, by a Scale of 1.
func (p *allocation) bindGradients() {
	for param, v := range p.grads {
		if p.values[v].leaf || p.buffers[v].isResult || p.buffers[v].gradientOf >= 0 {
			v = p.copyOf(v)
			p.grads[param] = v
		}
		p.buffers[v].gradientOf = param
	}
}

func (p *allocation) copyOf(v int) int {
	c := len(p.values)
	from := p.values[v]
	p.values = append(p.values, value{shape: from.shape, ref: device.Ref{Len: from.ref.Len}})
	p.open(c + 1)
	call := device.Call{Kernel: device.Scale, Attr: 1, Dims: []int{from.ref.Len}, Name: "gradient"}
	p.steps = append(p.steps, step{call: call, in: []int{v}, out: []int{c}})
	return c
}

// reuseSummands lets a sum overwrite a summand that is read there for the last time.
func (p *allocation) reuseSummands() {
	last := p.lastReads()
	for i, s := range p.steps {
		if s.call.Kernel != device.Add && s.call.Kernel != device.AddScaled {
			continue
		}
		for _, v := range s.in {
			if !p.values[v].leaf && last[v] == i {
				p.merge(v, s.out[0])
				break
			}
		}
	}
}

// lastReads returns the last step that reads each value. Results and gradients are read after all
// steps.
func (p *allocation) lastReads() []int {
	last := make([]int, len(p.values))
	for i, s := range p.steps {
		for _, v := range s.in {
			last[v] = i
		}
	}
	for _, v := range append(slices.Clone(p.results), p.grads...) {
		last[v] = len(p.steps)
	}
	return last
}

// merge puts the sum y into the buffer of the summand x. Since x is not read again, it is neither a
// gradient nor a result, so its buffer has no fixed address yet and can take the address of y.
func (p *allocation) merge(x, y int) {
	shared, own := &p.buffers[p.of[x]], p.buffers[p.of[y]]
	shared.gradientOf, shared.isResult = own.gradientOf, own.isResult
	p.of[y] = p.of[x]
}

// lifetimes computes the first and the last step of each buffer.
func (p *allocation) lifetimes() {
	use := func(v, at int) {
		if !p.values[v].leaf {
			p.buffers[p.of[v]].Use(at)
		}
	}
	for i, s := range p.steps {
		for _, v := range s.in {
			use(v, i)
		}
		for _, v := range s.out {
			use(v, i)
		}
	}
	for _, v := range p.results {
		use(v, len(p.steps))
	}
}

// pack assigns arena offsets to the blocks that have no fixed address.
func (p *allocation) pack() {
	var blocks []*plan.Block
	for i := range p.buffers {
		if b := &p.buffers[i]; b.Used() && b.gradientOf < 0 && !b.fixed {
			blocks = append(blocks, &b.Block)
			p.unsharedSize += plan.Align(b.Size, arenaAlign)
		}
	}
	p.arena = plan.Pack(blocks, arenaAlign)
}

// dataflow returns the values in the arena, numbered in the order of the steps that write them.
func (p *allocation) dataflow() (flow device.Dataflow) {
	index := slices.Repeat([]int{-1}, len(p.values))
	indices := func(values []int) []int {
		all := make([]int, len(values))
		for i, v := range values {
			all[i] = index[v]
		}
		return all
	}
	for _, s := range p.steps {
		flow.In = append(flow.In, indices(s.in))
		for _, y := range s.out {
			if p.values[y].ref.Space != device.Arena {
				continue
			}
			made := device.Value{Ref: p.values[y].ref, InPlaceOf: -1}
			for _, x := range s.in {
				if !p.values[x].leaf && p.of[x] == p.of[y] {
					made.InPlaceOf = index[x]
				}
			}
			index[y] = len(flow.Values)
			flow.Values = append(flow.Values, made)
		}
		flow.Out = append(flow.Out, indices(s.out))
	}
	flow.Results = indices(p.results)
	return flow
}
