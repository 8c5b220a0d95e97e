package compiler

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// The gradient of a normalisation with ReLU reads the output y again, to see where y > 0, and the
// sum of the gradients of all readers of y. Three fusions move less memory; no bit of a result
// changes:
//
//   - The forward pass saves the batch norm's scale and shift, from which the gradient recomputes
//     y > 0 with x, which it reads anyway; or, where a residual was added, a mask of y > 0.
//   - A sum of two gradients that only such a gradient reads is computed while it reads them.
//   - A normalisation whose output is only the residual of another one, as in a block that changes
//     shape, computes its statistics, scale and shift; the other one applies them.
//   - So does one with ReLU whose output only a max-pool reads, which applies them.

// fusions lists the fusions that were found in traced code.
type fusions struct {
	saved     map[*tracedCall]*Saved      // the same value for a forward pass and its gradient
	fusedSums map[*tracedCall]*tracedCall // the sum that a gradient computes, by the gradient
	removed   map[*tracedCall]bool        // the fused sums, which need no tasks

	pairs map[*tracedCall]*normPair // the same value for both calls of a pair
}

// normPair is a normalisation whose output another one adds, or a max-pool reads. The other one
// applies its scale and shift.
type normPair struct {
	added *tracedCall
	saved *Saved // the scale and shift of added
}

// Saved is memory that a normalisation writes for a later task: a mask or scale and shift for its
// gradient, or scale and shift for the task that it is paired with.
type Saved struct {
	rows, columns int
	ByMask        bool
	Operands      []Operand // The mask, or scale and shift. They are nil until allocSaved makes them.
}

// sizes returns the lengths of the operands: bytes of the mask, or numbers of float32.
func (k *Saved) sizes(e kernels.Element) []int {
	if k.ByMask {
		n := kernels.Norm{Element: e, M: k.rows, C: k.columns}
		return []int{n.MaskBytes()}
	}
	return []int{k.columns, k.columns}
}

// forwardKernels lists the forward kernels of each gradient that may use a Saved.
var forwardKernels = map[device.Kernel][]device.Kernel{
	device.BatchNormReLUGrad:    {device.BatchNormReLU, device.NormalizeReLU},
	device.BatchNormAddReLUGrad: {device.BatchNormAddReLU, device.NormalizeAddReLU},
}

func findFusions(t *trace, e kernels.Element) *fusions {
	g := &fusions{saved: map[*tracedCall]*Saved{}, fusedSums: map[*tracedCall]*tracedCall{},
		removed: map[*tracedCall]bool{}, pairs: map[*tracedCall]*normPair{}}
	maker, uses := t.makers(), t.uses()
	for _, back := range t.calls {
		if plain, ok := addendKernels[back.call.Kernel]; ok {
			g.findPair(t, back, plain, maker, uses)
		}
		if forwardKernels[back.call.Kernel] == nil {
			continue
		}
		if c := back.call.Dims[1]; back.call.Kernel == device.BatchNormReLUGrad || c%e.Pack() == 0 {
			g.findSaved(back, maker)
		}
		if back.call.Kernel == device.BatchNormAddReLUGrad {
			g.findSum(t, back, maker, uses, e)
		}
	}
	for _, pool := range t.calls {
		if pool.call.Kernel == device.MaxPool {
			g.findPooled(t, pool, maker)
		}
	}
	return g
}

// findPooled pairs a max-pool with the normalisation with ReLU that makes its input, if nothing
// else reads that input, except gradients that recompute it.
func (g *fusions) findPooled(t *trace, pool *tracedCall, maker []*tracedCall) {
	y := pool.in[0]
	if y.value < 0 || t.values[y.value].result || maker[y.value] == nil {
		return
	}
	norm := maker[y.value]
	if norm.call.Kernel != device.BatchNormReLU && norm.call.Kernel != device.NormalizeReLU || norm.out[0] != y ||
		!t.isConstant(norm.in[0]) || !t.isConstant(norm.mean()) {
		return
	}
	for _, c := range t.calls {
		for j, s := range c.in {
			if s == y && c != pool && (j != 1 || g.saved[c] == nil || forwardKernels[c.call.Kernel] == nil) {
				return
			}
		}
	}
	k := g.saved[norm]
	if k == nil {
		k = &Saved{rows: norm.call.Dims[0], columns: norm.call.Dims[1]}
	}
	j := &normPair{norm, k}
	g.pairs[norm], g.pairs[pool] = j, j
}

// addendKernels lists the normalisations that add a residual, with the normalisation that may
// produce it.
var addendKernels = map[device.Kernel]device.Kernel{device.BatchNormAddReLU: device.BatchNorm,
	device.NormalizeAddReLU: device.Normalize}

// findPair pairs a normalisation with the one that produces its residual, if nothing else reads
// the residual.
func (g *fusions) findPair(t *trace, adds *tracedCall, plain device.Kernel, maker []*tracedCall, uses []int) {
	z := adds.in[len(adds.in)-1]
	if !t.readOnce(z, uses) || maker[z.value] == nil {
		return
	}
	added := maker[z.value]
	if added.call.Kernel == plain && added.out[0] == z && slices.Equal(added.call.Dims, adds.call.Dims) &&
		t.isConstant(added.in[0]) && t.isConstant(added.mean()) {
		j := &normPair{added, &Saved{rows: added.call.Dims[0], columns: added.call.Dims[1]}}
		g.pairs[added], g.pairs[adds] = j, j
	}
}

// isConstant reports whether an operand keeps its numbers: a value does, for its memory is
// allocated until its last use, and so does a part of a vector that no call writes.
func (t *trace) isConstant(s source) bool {
	writes := func(c *tracedCall) bool { return s.ref.OverlapsAny(c.call.Out) }
	return s.value >= 0 || !slices.ContainsFunc(t.calls, writes)
}

// makers returns the call that writes each value.
func (t *trace) makers() []*tracedCall {
	all := make([]*tracedCall, len(t.values))
	for _, c := range t.calls {
		for _, s := range c.out {
			if s.value >= 0 {
				all[s.value] = c
			}
		}
	}
	return all
}

func (t *trace) uses() []int {
	n := make([]int, len(t.values))
	for _, c := range t.calls {
		for _, s := range c.in {
			if s.value >= 0 {
				n[s.value]++
			}
		}
	}
	return n
}

// findSaved has the forward pass of a gradient save a mask, or scale and shift, if the forward pass
// has the same x, mean and gamma.
func (g *fusions) findSaved(back *tracedCall, maker []*tracedCall) {
	y := back.in[1]
	if y.value < 0 || maker[y.value] == nil {
		return
	}
	forward := maker[y.value]
	if !slices.Contains(forwardKernels[back.call.Kernel], forward.call.Kernel) || forward.out[0] != y ||
		forward.in[0] != back.in[0] || forward.in[1] != back.in[3] || forward.mean() != back.in[4] ||
		!slices.Equal(forward.call.Dims, back.call.Dims) {
		return
	}
	k := g.saved[forward]
	if k == nil {
		d := forward.call.Dims
		k = &Saved{rows: d[0], columns: d[1], ByMask: back.call.Kernel == device.BatchNormAddReLUGrad}
		g.saved[forward] = k
	}
	g.saved[back] = k
}

// mean returns the mean of a forward pass: an output, or an input.
func (c *tracedCall) mean() source {
	if len(c.out) > 1 {
		return c.out[1]
	}
	return c.in[3]
}

// findSum fuses the sum that a gradient reads, if nothing else reads it and its summands have the
// sum's format. Both summands keep their memory until the gradient reads them. That enlarges the
// arena if a block is recomputed in between; in float32 no call between may therefore write a
// value.
func (g *fusions) findSum(t *trace, back *tracedCall, maker []*tracedCall, uses []int, e kernels.Element) {
	dy := back.in[2]
	if dy.value < 0 || uses[dy.value] != 1 || t.values[dy.value].result || maker[dy.value].call.Kernel != device.Add {
		return
	}
	sum := maker[dy.value]
	for _, s := range sum.in {
		if s.value < 0 || e != kernels.F32 && !maker[s.value].makesHalf(s) {
			return
		}
	}
	if e == kernels.F32 && t.writesBetween(sum, back) {
		return
	}
	g.fusedSums[back], g.removed[sum] = sum, true
}

// writesBetween reports whether a call between two others writes a value.
func (t *trace) writesBetween(from, to *tracedCall) bool {
	between := false
	for _, c := range t.calls {
		if c == to {
			return false
		}
		if between && slices.ContainsFunc(c.out, func(s source) bool { return s.value >= 0 }) {
			return true
		}
		between = between || c == from
	}
	return false
}

// makesHalf reports whether a call writes an output in 16 bits, whatever its readers want.
func (c *tracedCall) makesHalf(s source) bool {
	return c != nil && kernelFormats[c.call.Kernel].out[slices.Index(c.out, s)] == 'h'
}

// roundInNorms has the gradients of layer norms write their result rounded too, where a task after
// them rounds it, and the sums of its columns, where they are the gradient of a bias. Products read
// it rounded, and the gradient of the norm before in float32.
func (p *planner) roundInNorms() {
	// The keys of norms are the values of output 0, and the keys of rounded are the values of Rounded.
	norms, rounded := map[int]*Task{}, map[int]*Task{}
	kept := p.tasks[:0]
	for i := range p.tasks {
		t := p.tasks[i]
		if t.Work == CastToHalf && t.Columns == t.Padded {
			if norm := norms[t.In[0].value]; norm != nil && norm.Rounded == nil {
				norm.Rounded = &t.Out[0]
				rounded[t.Out[0].value] = norm
				continue
			}
		}
		if t.Work == Compute && t.Call.Kernel == device.LinearGradW && t.Out[1].Space == device.Grads {
			if norm := rounded[t.In[1].value]; norm != nil && norm.Sums == nil {
				norm.Sums, t.Out = &t.Out[1], t.Out[:1]
			}
		}
		kept = append(kept, t)
		if t.Work != Compute || t.Out[0].value < 0 {
			continue
		}
		switch t.Call.Kernel {
		case device.LayerNormGrad, device.LayerNormPlainGrad, device.LayerNormGradAdd, device.LayerNormPlainGradAdd,
			device.RMSNormGrad:
			norms[t.Out[0].value] = &kept[len(kept)-1]
		}
	}
	p.tasks = kept
}
