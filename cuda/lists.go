package cuda

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// Code has a call for each parameter in three places: a buffer moves by the statistics of a batch,
// the decay of a weight enters the loss, and it enters the gradient. On a GPU the launches of
// hundreds of small calls cost more than their work. lists finds them, and one task does them all,
// with the same bits: where the last of them stands, or, for gradients, at the end.
type lists struct {
	moved     []*traced        // what moves buffers
	penalised []*traced        // HalfSquare and Add by turns
	last      map[*traced]work // where a list is due
	listed    map[*traced]bool // what is in one

	folds   map[*traced]*fold // AddScaled calls that add a decay to a gradient in its place
	filters map[*traced]*fold // gradients of filters, with decay and without
}

// fold is a gradient of parameters that gets its decay with all others.
type fold struct {
	to, weights device.Ref // weights are of no length where there is no decay
	decay       float32

	columns, room int // of a filter's rows in 16 bits
}

func listsOf(t *trace, placed bool) *lists {
	l := &lists{last: map[*traced]work{}, listed: map[*traced]bool{}, folds: map[*traced]*fold{},
		filters: map[*traced]*fold{}}
	maker, uses := t.makers(), t.uses()
	l.moved, l.penalised = t.moves(placed), t.penalties(maker, uses, placed)
	l.due(moveBuffers, l.moved)
	l.due(addPenalties, l.penalised)
	l.foldDecays(t)
	return l
}

// due notes where a list is done. One call is none.
func (l *lists) due(w work, calls []*traced) {
	if len(calls) < 2 {
		return
	}
	for _, c := range calls {
		l.listed[c] = true
	}
	l.last[calls[len(calls)-1]] = w
}

// moves are the calls that move a buffer, of which all but the last can wait for that.
func (t *trace) moves(placed bool) []*traced {
	var all []*traced
	for i := range t.calls {
		c := &t.calls[i]
		if c.call.Kernel == device.MoveAverage && c.in[0].value >= 0 && c.call.Out[0].Space == device.Buffers &&
			c.call.In[1] == c.call.Out[0] && c.call.In[2].Space == device.Momentum {
			all = append(all, c)
		}
	}
	return t.whoCanWait(all, placed)
}

// whoCanWait leaves out those of some calls that cannot be done as late as the last: what they read
// is written before, or what they write is read or written. The arena counts only where the places
// of values are given.
func (t *trace) whoCanWait(calls []*traced, placed bool) []*traced {
	var kept []*traced
	for _, c := range calls {
		if c == calls[len(calls)-1] || t.canBeAt(c, calls[len(calls)-1], calls, placed) {
			kept = append(kept, c)
		}
	}
	return kept
}

// canBeAt says whether c can be done where a later call stands, while others wait too.
func (t *trace) canBeAt(c, later *traced, others []*traced, placed bool) bool {
	counts := func(r device.Ref) bool { return placed || r.Space != device.Arena }
	meets := func(all []device.Ref, r device.Ref) bool {
		return counts(r) && slices.ContainsFunc(all, func(o device.Ref) bool { return overlapping(o, r) })
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
func (t *trace) penalties(maker []*traced, uses []int, placed bool) []*traced {
	var all []*traced
	for i := range t.calls {
		sum := &t.calls[i]
		if sum.call.Kernel != device.Add || sum.call.Dims[0] != 1 || sum.in[0].value < 0 || sum.in[1].value < 0 {
			continue
		}
		term := maker[sum.in[1].value]
		if term == nil || term.call.Kernel != device.HalfSquare || term.in[0].ref.Space != device.Params ||
			!t.single(sum.in[1], uses) {
			continue
		}
		if n := len(all); n > 0 && (all[n-1].out[0] != sum.in[0] || !t.single(sum.in[0], uses)) {
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
				func(r device.Ref) bool { return overlapping(r, start) }) {
				return nil
			}
			found = found || c == maker[all[1].in[0].value]
		}
	}
	return all
}

// single says whether a value is read once and is no result.
func (t *trace) single(h home, uses []int) bool {
	return h.value >= 0 && uses[h.value] == 1 && !t.values[h.value].result
}

// foldDecays finds the decays of gradients, and who makes those of filters. If the gradient is not
// made of parts that are written once and then get a decay or none, there is nothing to find:
// somebody wants to read it before it is finished.
func (l *lists) foldDecays(t *trace) {
	folds, filters := map[*traced]*fold{}, map[*traced]*fold{}
	parts := map[device.Ref]*fold{} // what is written
	for i := range t.calls {
		c := &t.calls[i]
		if f := parts[c.call.Out[0]]; f != nil && decays(c.call) && f.weights.Len == 0 {
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
				if overlapping(other, r) {
					return
				}
			}
			parts[r] = &fold{to: r}
		}
		if f := parts[c.call.Out[0]]; f != nil && c.call.Kernel == device.ConvGradW {
			filters[c] = f
		}
	}
	l.folds, l.filters = folds, filters
}

// decays says whether a call adds a multiple of parameters to what lies in the gradient.
func decays(c *device.Call) bool {
	return c.Kernel == device.AddScaled && c.In[0] == c.Out[0] && c.In[0].Space == device.Grads &&
		c.In[1].Space == device.Params
}

// end is the task that finishes a gradient.
func end(from []operand, endings []kernels.Ending) task {
	return task{work: endGradient, in: from, endings: endings}
}

// moving is the task of a list of moves, from where their numbers lie.
func moving(calls []*traced, from []operand) task {
	t := task{work: moveBuffers, in: from}
	for _, c := range calls {
		t.moves = append(t.moves, kernels.Move{Buffer: c.call.Out[0].Off, N: c.call.Dims[0], A: c.call.Attr})
	}
	return t
}

// penalising is the task of a list of penalties.
func penalising(calls []*traced, start, out operand) task {
	t := task{work: addPenalties, in: []operand{start}, out: []operand{out}}
	for i := 0; i < len(calls); i += 2 {
		term := calls[i].call
		t.penalties = append(t.penalties, kernels.Penalty{From: term.In[0].Off, N: term.Dims[0], Scale: term.Attr / 2})
	}
	return t
}

// list adds the task of a list where it is due. done says that nothing else is to be done for the
// call.
func (p *planner) list(c *traced) (done bool, err error) {
	if f := p.folds[c]; f != nil {
		if f.room > 0 { // a filter's, which has its ending
			return true, nil
		}
		p.endBy(f, operand{space: device.Grads, at: 4 * f.to.Off, n: f.to.Len, value: -1}, p.isScaled(c.in[0]))
		return true, p.mark(c.out[0], false)
	}
	switch p.last[c] {
	case moveBuffers:
		var from []operand
		for _, m := range p.moved {
			x, err := p.in(m.call, m.in[0], whole, 0)
			if err != nil {
				return true, err
			}
			from = append(from, x)
		}
		p.tasks = append(p.tasks, moving(p.moved, from))
	case addPenalties:
		start, err := p.in(c.call, p.penalised[1].in[0], whole, 0)
		if err != nil {
			return true, err
		}
		out, _, err := p.out(c.call, c.out[0], whole)
		if err != nil {
			return true, err
		}
		p.tasks = append(p.tasks, penalising(p.penalised, start, out))
	}
	return p.listed[c], nil
}

// endBy notes that a gradient is finished from where it is made.
func (p *planner) endBy(f *fold, from operand, scaled bool) {
	e := kernels.Ending{Source: kernels.InPlace, To: f.to.Off, Weights: f.weights.Off, N: f.to.Len, C: 1, Room: 1,
		Scaled: p.scaling && scaled, Decay: f.decay}
	if f.weights.Len == 0 {
		e.Weights = -1
	}
	if f.columns < f.room {
		e.C, e.Room = f.columns, f.room
	}
	if from.element != kernels.F32 {
		e.Source = kernels.Short
	}
	p.ends, p.endings = append(p.ends, from), append(p.endings, e)
}

// filter is where the gradient of a filter is written, if it is finished at the end: until then it
// keeps its 16 bits, and the channels that there is room for.
func (p *planner) filter(c *traced, room int) (o operand, ok bool) {
	f := p.filters[c]
	if f == nil {
		return o, false
	}
	f.columns = c.call.Dims[3]
	f.room = max(f.columns, room)
	o = p.operand(p.newValue(f.to.Len/f.columns*f.room, half))
	p.endBy(f, o, p.readsScaled(c))
	return o, true
}
