package compiler

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// multiTensor is the calls that are replaced by one task for many parameters. Code has a call for
// each parameter in three places: the update of a buffer by batch statistics, the decay of a weight
// in the loss, and the decay in its gradient. The launches of hundreds of small calls cost more
// than their work. The task stands at the last of the calls, and the task of gradients at the end.
// Results keep their bits.
type multiTensor struct {
	bufferUpdates []*tracedCall        // MoveAverage calls
	penalties     []*tracedCall        // pairs of a HalfSquare and an Add
	last          map[*tracedCall]Work // the last call of a list, where its task stands
	included      map[*tracedCall]bool // the calls in a list

	decays  map[*tracedCall]*gradientPart // keys are AddScaled calls that add the decay in place
	filters map[*tracedCall]*gradientPart // keys are ConvGradW calls
}

// gradientPart is the gradient of one parameter, whose decay is added together with all others.
type gradientPart struct {
	to, weights device.Ref // weights has length 0 where there is no decay
	decay       float32

	columns, padded int // lengths of a row of a filter in 16 bits, without and with padding
}

func findMultiTensor(t *trace) *multiTensor {
	l := &multiTensor{last: map[*tracedCall]Work{}, included: map[*tracedCall]bool{},
		decays: map[*tracedCall]*gradientPart{}, filters: map[*tracedCall]*gradientPart{}}
	maker, uses := t.makers(), t.uses()
	l.bufferUpdates, l.penalties = t.findBufferUpdates(), t.findPenalties(maker, uses)
	l.schedule(UpdateBuffers, l.bufferUpdates)
	l.schedule(AddPenalties, l.penalties)
	l.findDecays(t)
	return l
}

// schedule notes the task of a list of calls. A single call stays as it is.
func (l *multiTensor) schedule(w Work, calls []*tracedCall) {
	if len(calls) < 2 {
		return
	}
	for _, c := range calls {
		l.included[c] = true
	}
	l.last[calls[len(calls)-1]] = w
}

// findBufferUpdates returns the calls that update a buffer and can move to the last of them.
func (t *trace) findBufferUpdates() []*tracedCall {
	var all []*tracedCall
	for _, c := range t.calls {
		if c.call.Kernel == device.MoveAverage && c.in[0].value >= 0 && c.call.Out[0].Space == device.Buffers &&
			c.call.In[1] == c.call.Out[0] && c.call.In[2].Space == device.Momentum {
			all = append(all, c)
		}
	}
	return t.deferrable(all)
}

// deferrable returns the calls that can move to the last one: nothing overwrites their inputs
// before, and nothing reads or writes their outputs. Values in the arena get their addresses later.
func (t *trace) deferrable(calls []*tracedCall) []*tracedCall {
	var kept []*tracedCall
	for _, c := range calls {
		if c == calls[len(calls)-1] || t.canMoveTo(c, calls[len(calls)-1], calls) {
			kept = append(kept, c)
		}
	}
	return kept
}

// canMoveTo reports whether c can move to a later call, while others move too.
func (t *trace) canMoveTo(c, later *tracedCall, others []*tracedCall) bool {
	meets := func(all []device.Ref, r device.Ref) bool {
		return r.Space != device.Arena && r.OverlapsAny(all)
	}
	passed := false
	for _, between := range t.calls {
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

// findPenalties returns the first chain of sums total + decay/2·Σw², as pairs of a HalfSquare and
// its Add.
func (t *trace) findPenalties(maker []*tracedCall, uses []int) []*tracedCall {
	var all []*tracedCall
	for _, sum := range t.calls {
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
	return all
}

// readOnce reports whether a value is read once and is no result.
func (t *trace) readOnce(s source, uses []int) bool {
	return s.value >= 0 && uses[s.value] == 1 && !t.values[s.value].result
}

// findDecays finds the decays of gradients and the calls that make the gradients of filters. There
// are none unless every part of the gradient is written once, then gets at most one decay, and is
// not read before the end.
func (l *multiTensor) findDecays(t *trace) {
	folds, filters := map[*tracedCall]*gradientPart{}, map[*tracedCall]*gradientPart{}
	parts := map[device.Ref]*gradientPart{} // keys are their places in the gradient
	for _, c := range t.calls {
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
				if other.Overlaps(r) {
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

// addsDecay reports whether a call adds a multiple of parameters to a gradient in place.
func addsDecay(c *device.Call) bool {
	return c.Kernel == device.AddScaled && c.In[0] == c.Out[0] && c.In[0].Space == device.Grads &&
		c.In[1].Space == device.Params
}

func finishTask(from []Operand, finishes []kernels.GradPiece) Task {
	return Task{Work: FinishGradient, In: from, Finishes: finishes}
}

// bufferTask returns the task of a list of buffer updates, whose batch statistics are from.
func bufferTask(calls []*tracedCall, from []Operand) Task {
	t := Task{Work: UpdateBuffers, In: from}
	for _, c := range calls {
		t.BufferUpdates = append(t.BufferUpdates, kernels.Move{Buffer: c.call.Out[0].Off, N: c.call.Dims[0],
			A: c.call.Attr})
	}
	return t
}

func penaltyTask(calls []*tracedCall, start, out Operand) Task {
	t := Task{Work: AddPenalties, In: []Operand{start}, Out: []Operand{out}}
	for i := 0; i < len(calls); i += 2 {
		term := calls[i].call
		t.Penalties = append(t.Penalties, kernels.Penalty{From: term.In[0].Off, N: term.Dims[0], Scale: term.Attr / 2})
	}
	return t
}

// addMultiTensor adds the task of a list at its last call. done says that the call needs no task of
// its own.
func (p *planner) addMultiTensor(c *tracedCall) (done bool, err error) {
	if f := p.decays[c]; f != nil {
		if f.padded > 0 { // filterOutput has the gradient of this filter finished
			return true, nil
		}
		p.finishFrom(f, vectorOperand(f.to), p.isScaled(c.in[0]))
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

// finishFrom notes that a gradient is finished at the end, from where it was written.
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

// filterOutput returns where the gradient of a filter is written, if it is finished at the end:
// until then it has 16 bits and padded channels.
func (p *planner) filterOutput(c *tracedCall, padded int) (o Operand, ok bool) {
	f := p.filters[c]
	if f == nil || p.element == kernels.F32 {
		return o, false
	}
	f.columns = c.call.Dims[3]
	f.padded = max(f.columns, padded)
	o = p.operand(p.newValue(f.to.Len/f.columns*f.padded, halfFormat))
	p.finishFrom(f, o, p.readsScaled(c))
	return o, true
}
