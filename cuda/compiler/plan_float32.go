package compiler

import (
	"fspda/cuda/kernels"
	"fspda/device"
)

// planFloat32 plans code of float32: its calls and addresses stay, except for fusions, and with
// epilogues for masks of ReLU. What these save lies after the arena.
func planFloat32(code *device.Code, epilogues, noFusion bool) *Plan {
	p := &Plan{Arena: 4 * code.Arena, Results: code.Results}
	t, err := newTrace(code)
	if noFusion || err != nil { // code whose values cannot be traced runs as it is
		for i := range code.Calls {
			c := &code.Calls[i]
			p.Tasks = append(p.Tasks, Task{Call: c, In: float32Operands(c.In), Out: float32Operands(c.Out)})
		}
		return p
	}
	w := float32Planner{p, t, findFusions(t, kernels.F32), findMultiTensor(t, true), nil}
	for i := range t.calls {
		w.add(&t.calls[i])
	}
	if len(w.finishes) > 0 {
		from := make([]Operand, len(w.finishes)) // in place
		p.Tasks = append(p.Tasks, finishTask(from, w.finishes))
	}
	if epilogues {
		addMasks(p.Tasks, t.reluPairs(), p.appendToArena)
	}
	return p
}

// appendToArena returns an operand of so many bytes after the arena, which grows by it.
func (p *Plan) appendToArena(bytes int) Operand {
	o := Operand{Space: device.Arena, Offset: Align(p.Arena), value: -1}
	p.Arena = o.Offset + bytes
	return o
}

// float32Planner makes the tasks of planFloat32.
type float32Planner struct {
	*Plan
	*trace
	*fusions
	*multiTensor
	finishes []kernels.GradPiece
}

func (w *float32Planner) add(c *tracedCall) {
	made := Task{Call: c.call, In: float32Operands(c.call.In), Out: float32Operands(c.call.Out)}
	switch {
	case w.removed[c] && w.canFuseSum(c, w.fusions):
		return
	case w.last[c] == UpdateBuffers:
		var from []Operand
		for _, m := range w.bufferUpdates {
			from = append(from, float32Operands(m.call.In[:1])...)
		}
		made = bufferTask(w.bufferUpdates, from)
	case w.last[c] == AddPenalties:
		made = penaltyTask(w.penalties, float32Operands(w.penalties[1].call.In)[0], made.Out[0])
	case w.included[c]:
		return
	case w.decays[c] != nil:
		f := w.decays[c]
		w.finishes = append(w.finishes, kernels.GradPiece{Source: kernels.InPlace, From: f.to.Off, To: f.to.Off,
			Weights: f.weights.Off, N: f.to.Len, C: 1, Padded: 1, Decay: f.decay})
		return
	}
	if sum := w.fusedSums[c]; sum != nil && w.canFuseSum(sum, w.fusions) {
		both := float32Operands(sum.call.In)
		made.In[2], made.Addend = both[0], &both[1]
	}
	made.Saved = w.saved[c]
	if j := w.pairs[c]; j != nil && w.canFusePair(j, w.fusions) {
		if j.added == c {
			made.Saved, made.Deferred = j.saved, true
		} else {
			read := float32Operands([]device.Ref{j.added.call.In[0], j.added.mean().ref})
			made.In[len(made.In)-1], made.PairMean, made.PairSaved = read[0], &read[1], j.saved
		}
	}
	w.allocSaved(made.Saved)
	w.Tasks = append(w.Tasks, made)
}

// float32Operands returns float32 operands at the addresses of code.
func float32Operands(refs []device.Ref) []Operand {
	all := make([]Operand, len(refs))
	for i, r := range refs {
		all[i] = Operand{Space: r.Space, Offset: 4 * r.Off, Len: r.Len, value: -1}
	}
	return all
}

// allocSaved allocates what a task saves after the arena.
func (p *Plan) allocSaved(k *Saved) {
	if k == nil || k.Operands != nil {
		return
	}
	for _, n := range k.sizes(kernels.F32) {
		if !k.ByMask {
			n *= 4
		}
		k.Operands = append(k.Operands, p.appendToArena(n))
	}
}
