package cuda

import (
	"fspda/cuda/kernels"
	"fspda/device"
)

// planWhole plans code of float32: it is as it is, but for what gates and lists find, and with
// epilogues there is room for masks of ReLU. The arena grows by what they keep.
func planWhole(code *device.Code, epilogues, literal bool) *plan {
	p := &plan{arena: 4 * code.Arena, results: code.Results}
	t, err := traceOf(code)
	if literal || err != nil { // it does what no trace can follow, and runs as it is
		for i := range code.Calls {
			c := &code.Calls[i]
			p.tasks = append(p.tasks, task{call: c, in: operandsAt4(c.In), out: operandsAt4(c.Out)})
		}
		return p
	}
	w := wholePlanner{p, t, gatesOf(t, kernels.F32), listsOf(t, true), nil}
	for i := range t.calls {
		w.add(&t.calls[i])
	}
	if len(w.endings) > 0 {
		from := make([]operand, len(w.endings)) // they are in place
		p.tasks = append(p.tasks, end(from, w.endings))
	}
	if epilogues {
		addMasks(p.tasks, t.reluPairs(), p.behind)
	}
	return p
}

// behind is an operand of so many bytes behind the arena, which grows by it.
func (p *plan) behind(bytes int) operand {
	o := operand{space: device.Arena, at: alignedTo(p.arena), value: -1}
	p.arena = o.at + bytes
	return o
}

// wholePlanner makes the tasks of planWhole.
type wholePlanner struct {
	*plan
	*trace
	*gates
	*lists
	endings []kernels.Ending
}

func (w *wholePlanner) add(c *traced) {
	made := task{call: c.call, in: operandsAt4(c.call.In), out: operandsAt4(c.call.Out)}
	switch {
	case w.gone[c] && w.canWait(c, w.gates):
		return
	case w.last[c] == moveBuffers:
		var from []operand
		for _, m := range w.moved {
			from = append(from, operandsAt4(m.call.In[:1])...)
		}
		made = moving(w.moved, from)
	case w.last[c] == addPenalties:
		made = penalising(w.penalised, operandsAt4(w.penalised[1].call.In)[0], made.out[0])
	case w.listed[c]:
		return
	case w.folds[c] != nil:
		f := w.folds[c]
		w.endings = append(w.endings, kernels.Ending{Source: kernels.InPlace, From: f.to.Off, To: f.to.Off,
			Weights: f.weights.Off, N: f.to.Len, C: 1, Room: 1, Decay: f.decay})
		return
	}
	if sum := w.sums[c]; sum != nil && w.canWait(sum, w.gates) {
		both := operandsAt4(sum.call.In)
		made.in[2], made.other = both[0], &both[1]
	}
	made.kept = w.kept[c]
	if j := w.joins[c]; j != nil && w.canJoin(j, w.gates) {
		if j.added == c {
			made.kept, made.unmapped = j.affine, true
		} else {
			read := operandsAt4([]device.Ref{j.added.call.In[0], j.added.mean().ref})
			made.in[len(made.in)-1], made.mean, made.joined = read[0], &read[1], j.affine
		}
	}
	w.keep(made.kept)
	w.tasks = append(w.tasks, made)
}

// operandsAt4 are operands of float32 that lie where code says.
func operandsAt4(refs []device.Ref) []operand {
	all := make([]operand, len(refs))
	for i, r := range refs {
		all[i] = operand{space: r.Space, at: 4 * r.Off, n: r.Len, value: -1}
	}
	return all
}

// keep gives what a task keeps a place behind the arena.
func (p *plan) keep(k *kept) {
	if k == nil || k.operands != nil {
		return
	}
	for _, n := range k.sizes(kernels.F32) {
		if !k.byMask {
			n *= 4 // numbers
		}
		k.operands = append(k.operands, p.behind(n))
	}
}
