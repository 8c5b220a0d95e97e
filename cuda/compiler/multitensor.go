package compiler

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// Code has a call for each parameter in three places: a buffer moves by the statistics of a batch,
// the decay of a weight enters the loss, and it enters the gradient. On a GPU the launches of
// hundreds of small calls cost more than their work. lists finds them, and one task does them all,
// with the same bits: where the last of them stands, or, for gradients, at the end.
type multiTensor struct {
	bufferUpdates []*tracedCall        // what moves buffers
	penalties     []*tracedCall        // HalfSquare and Add by turns
	last          map[*tracedCall]Work // where a list is due
	included      map[*tracedCall]bool // what is in one

	decays  map[*tracedCall]*gradientPart // AddScaled calls that add a decay to a gradient in its place
	filters map[*tracedCall]*gradientPart // gradients of filters, with decay and without
}

// fold is a gradient of parameters that gets its decay with all others.
type gradientPart struct {
	to, weights device.Ref // weights are of no length where there is no decay
	decay       float32

	columns, padded int // of a filter's rows in 16 bits
}

func findMultiTensor(t *trace, placed bool) *multiTensor {
	l := &multiTensor{last: map[*tracedCall]Work{}, included: map[*tracedCall]bool{}, decays: map[*tracedCall]*gradientPart{},
		filters: map[*tracedCall]*gradientPart{}}
	maker, uses := t.makers(), t.uses()
	l.bufferUpdates, l.penalties = t.findBufferUpdates(placed), t.findPenalties(maker, uses, placed)
	l.schedule(UpdateBuffers, l.bufferUpdates)
	l.schedule(AddPenalties, l.penalties)
	l.findDecays(t)
	return l
}

// due notes where a list is done. One call is none.
func (l *multiTensor) schedule(w Work, calls []*tracedCall) {
	if len(calls) < 2 {
		return
	}
	for _, c := range calls {
		l.included[c] = true
	}
	l.last[calls[len(calls)-1]] = w
}

// moves are the calls that move a buffer, of which all but the last can wait for that.
func (t *trace) findBufferUpdates(placed bool) []*tracedCall {
	var all []*tracedCall
	for i := range t.calls {
		c := &t.calls[i]
		if c.call.Kernel == device.MoveAverage && c.in[0].value >= 0 && c.call.Out[0].Space == device.Buffers &&
			c.call.In[1] == c.call.Out[0] && c.call.In[2].Space == device.Momentum {
			all = append(all, c)
		}
	}
	return t.deferrable(all, placed)
}

// whoCanWait leaves out those of some calls that cannot be done as late as the last: what they read
// is written before, or what they write is read or written. The arena counts only where the places
// of values are given.
func (t *trace) deferrable(calls []*tracedCall, placed bool) []*tracedCall {
	var kept []*tracedCall
	for _, c := range calls {
		if c == calls[len(calls)-1] || t.canMoveTo(c, calls[len(calls)-1], calls, placed) {
			kept = append(kept, c)
		}
	}
	return kept
}

// canBeAt says whether c can be done where a later call stands, while others wait too.
func (t *trace) canMoveTo(c, later *tracedCall, others []*tracedCall, placed bool) bool {
	counts := func(r device.Ref) bool { return placed || r.Space != device.Arena }
	meets := func(all []device.Ref, r device.Ref) bool {
		return counts(r) && slices.ContainsFunc(all, func(o device.Ref) bool { return overlaps(o, r) })
	}
	passed := false
	for i := range t.calls {
		between := &t.calls[i]
		if between == later {
			return true
		}
		if passed && !slices.Contains(others, between) {
			for _, r := range c.call.In {
				if meets(between.call.Out, r) {
					return false
				}
			}
			for _, r := range c.call.Out {
				if meets(between.call.In, r) || meets(between.call.Out, r) {
					return false
				}
			}
		}
		passed = passed || between == c
	}
	return false
}

// penalties are the calls of the first chain of sums total + decay/2·Σw², by pairs of a HalfSquare
// and its Add.
func (t *trace) findPenalties(maker []*tracedCall, uses []int, placed bool) []*tracedCall {
	var all []*tracedCall
	for i := range t.calls {
		sum := &t.calls[i]
		if sum.call.Kernel != device.Add || sum.call.Dims[0] != 1 || sum.in[0].value < 0 || sum.in[1].value < 0 {
			continue
		}
		term := maker[sum.in[1].value]
		if term == nil || term.call.Kernel != device.HalfSquare || term.in[0].ref.Space != device.Params ||
			!t.readOnce(sum.in[1], uses) {
			continue
		}
		if n := len(all); n > 0 && (all[n-1].out[0] != sum.in[0] || !t.readOnce(sum.in[0], uses)) {
			break
		}
		all = append(all, term, sum)
	}
	if placed && len(all) > 0 { // the total that they begin with must still be there at the end
		start, found := all[1].call.In[0], false
		for i := range t.calls {
			c := &t.calls[i]
			if c == all[len(all)-1] {
				break
			}
			if found && !slices.Contains(all, c) && slices.ContainsFunc(c.call.Out,
				func(r device.Ref) bool { return overlaps(r, start) }) {
				return nil
			}
			found = found || c == maker[all[1].in[0].value]
		}
	}
	return all
}

// single says whether a value is read once and is no result.
func (t *trace) readOnce(s source, uses []int) bool {
	return s.value >= 0 && uses[s.value] == 1 && !t.values[s.value].result
}

// foldDecays finds the decays of gradients, and who makes those of filters. If the gradient is not
// made of parts that are written once and then get a decay or none, there is nothing to find:
// somebody wants to read it before it is finished.
func (l *multiTensor) findDecays(t *trace) {
	folds, filters := map[*tracedCall]*gradientPart{}, map[*tracedCall]*gradientPart{}
	parts := map[device.Ref]*gradientPart{} // what is written
	for i := range t.calls {
		c := &t.calls[i]
		if f := parts[c.call.Out[0]]; f != nil && addsDecay(c.call) && f.weights.Len == 0 {
			f.weights, f.decay = c.call.In[1], float32(c.call.Attr)
			folds[c] = f
			continue
		}
		for _, r := range c.call.In {
			if r.Space == device.Grads {
				return
			}
		}
		for _, r := range c.call.Out {
			if r.Space != device.Grads {
				continue
			}
			for other := range parts {
				if overlaps(other, r) {
					return
				}
			}
			parts[r] = &gradientPart{to: r}
		}
		if f := parts[c.call.Out[0]]; f != nil && c.call.Kernel == device.ConvGradW {
			filters[c] = f
		}
	}
	l.decays, l.filters = folds, filters
}

// decays says whether a call adds a multiple of parameters to what lies in the gradient.
func addsDecay(c *device.Call) bool {
	return c.Kernel == device.AddScaled && c.In[0] == c.Out[0] && c.In[0].Space == device.Grads &&
		c.In[1].Space == device.Params
}

// end is the task that finishes a gradient.
func finishTask(from []Operand, endings []kernels.GradPiece) Task {
	return Task{Work: FinishGradient, In: from, Finishes: endings}
}

// moving is the task of a list of moves, from where their numbers lie.
func bufferTask(calls []*tracedCall, from []Operand) Task {
	t := Task{Work: UpdateBuffers, In: from}
	for _, c := range calls {
		t.BufferUpdates = append(t.BufferUpdates, kernels.Move{Buffer: c.call.Out[0].Off, N: c.call.Dims[0], A: c.call.Attr})
	}
	return t
}

// penalising is the task of a list of penalties.
func penaltyTask(calls []*tracedCall, start, out Operand) Task {
	t := Task{Work: AddPenalties, In: []Operand{start}, Out: []Operand{out}}
	for i := 0; i < len(calls); i += 2 {
		term := calls[i].call
		t.Penalties = append(t.Penalties, kernels.Penalty{From: term.In[0].Off, N: term.Dims[0], Scale: term.Attr / 2})
	}
	return t
}

// list adds the task of a list where it is due. done says that nothing else is to be done for the
// call.
func (p *planner) addMultiTensor(c *tracedCall) (done bool, err error) {
	if f := p.decays[c]; f != nil {
		if f.padded > 0 { // a filter's, which has its ending
			return true, nil
		}
		p.finishFrom(f, Operand{Space: device.Grads, Offset: 4 * f.to.Off, Len: f.to.Len, value: -1}, p.isScaled(c.in[0]))
		return true, p.markScaled(c.out[0], false)
	}
	switch p.last[c] {
	case UpdateBuffers:
		var from []Operand
		for _, m := range p.bufferUpdates {
			x, err := p.input(m.call, m.in[0], float32Format, 0)
			if err != nil {
				return true, err
			}
			from = append(from, x)
		}
		p.tasks = append(p.tasks, bufferTask(p.bufferUpdates, from))
	case AddPenalties:
		start, err := p.input(c.call, p.penalties[1].in[0], float32Format, 0)
		if err != nil {
			return true, err
		}
		out, _, err := p.output(c.call, c.out[0], float32Format)
		if err != nil {
			return true, err
		}
		p.tasks = append(p.tasks, penaltyTask(p.penalties, start, out))
	}
	return p.included[c], nil
}

// endBy notes that a gradient is finished from where it is made.
func (p *planner) finishFrom(f *gradientPart, from Operand, scaled bool) {
	e := kernels.GradPiece{Source: kernels.InPlace, To: f.to.Off, Weights: f.weights.Off, N: f.to.Len, C: 1, Padded: 1,
		Scaled: p.scaling && scaled, Decay: f.decay}
	if f.weights.Len == 0 {
		e.Weights = -1
	}
	if f.columns < f.padded {
		e.C, e.Padded = f.columns, f.padded
	}
	if from.Element != kernels.F32 {
		e.Source = kernels.FromHalf
	}
	p.finishInputs, p.finishes = append(p.finishInputs, from), append(p.finishes, e)
}

// filter is where the gradient of a filter is written, if it is finished at the end: until then it
// keeps its 16 bits, and the channels that there is room for.
func (p *planner) filterOutput(c *tracedCall, room int) (o Operand, ok bool) {
	f := p.filters[c]
	if f == nil {
		return o, false
	}
	f.columns = c.call.Dims[3]
	f.padded = max(f.columns, room)
	o = p.operand(p.newValue(f.to.Len/f.columns*f.padded, halfFormat))
	p.finishFrom(f, o, p.readsScaled(c))
	return o, true
}
