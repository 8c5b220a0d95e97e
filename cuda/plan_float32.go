package cuda

import (
	"fspda/cuda/kernels"
	"fspda/device"
)

// planWhole plans code of float32: it is as it is, but for what gates and lists find, and with
// epilogues there is room for masks of ReLU. The arena grows by what they keep.
func planFloat32(code *device.Code, epilogues, literal bool) *plan {
	p := &plan{arena: 4 * code.Arena, results: code.Results}
	t, err := newTrace(code)
	if literal || err != nil { // it does what no trace can follow, and runs as it is
		for i := range code.Calls {
			c := &code.Calls[i]
			p.tasks = append(p.tasks, task{call: c, in: float32Operands(c.In), out: float32Operands(c.Out)})
		}
		return p
	}
	w := float32Planner{p, t, findFusions(t, kernels.F32), findMultiTensor(t, true), nil}
	for i := range t.calls {
		w.add(&t.calls[i])
	}
	if len(w.finishes) > 0 {
		from := make([]operand, len(w.finishes)) // they are in place
		p.tasks = append(p.tasks, finishTask(from, w.finishes))
	}
	if epilogues {
		addMasks(p.tasks, t.reluPairs(), p.appendToArena)
	}
	return p
}

// behind is an operand of so many bytes behind the arena, which grows by it.
func (p *plan) appendToArena(bytes int) operand {
	o := operand{space: device.Arena, offset: align(p.arena), value: -1}
	p.arena = o.offset + bytes
	return o
}

// wholePlanner makes the tasks of planWhole.
type float32Planner struct {
	*plan
	*trace
	*fusions
	*multiTensor
	finishes []kernels.Ending
}

func (w *float32Planner) add(c *tracedCall) {
	made := task{call: c.call, in: float32Operands(c.call.In), out: float32Operands(c.call.Out)}
	switch {
	case w.removed[c] && w.canFuseSum(c, w.fusions):
		return
	case w.last[c] == updateBuffers:
		var from []operand
		for _, m := range w.bufferUpdates {
			from = append(from, float32Operands(m.call.In[:1])...)
		}
		made = bufferTask(w.bufferUpdates, from)
	case w.last[c] == addPenalties:
		made = penaltyTask(w.penalties, float32Operands(w.penalties[1].call.In)[0], made.out[0])
	case w.included[c]:
		return
	case w.decays[c] != nil:
		f := w.decays[c]
		w.finishes = append(w.finishes, kernels.Ending{Source: kernels.InPlace, From: f.to.Off, To: f.to.Off,
			Weights: f.weights.Off, N: f.to.Len, C: 1, Room: 1, Decay: f.decay})
		return
	}
	if sum := w.fusedSums[c]; sum != nil && w.canFuseSum(sum, w.fusions) {
		both := float32Operands(sum.call.In)
		made.in[2], made.addend = both[0], &both[1]
	}
	made.saved = w.saved[c]
	if j := w.pairs[c]; j != nil && w.canFusePair(j, w.fusions) {
		if j.added == c {
			made.saved, made.deferred = j.saved, true
		} else {
			read := float32Operands([]device.Ref{j.added.call.In[0], j.added.mean().ref})
			made.in[len(made.in)-1], made.pairMean, made.pairSaved = read[0], &read[1], j.saved
		}
	}
	w.allocSaved(made.saved)
	w.tasks = append(w.tasks, made)
}

// operandsAt4 are operands of float32 that lie where code says.
func float32Operands(refs []device.Ref) []operand {
	all := make([]operand, len(refs))
	for i, r := range refs {
		all[i] = operand{space: r.Space, offset: 4 * r.Off, n: r.Len, value: -1}
	}
	return all
}

// keep gives what a task keeps a place behind the arena.
func (p *plan) allocSaved(k *saved) {
	if k == nil || k.operands != nil {
		return
	}
	for _, n := range k.sizes(kernels.F32) {
		if !k.byMask {
			n *= 4 // numbers
		}
		k.operands = append(k.operands, p.appendToArena(n))
	}
}
