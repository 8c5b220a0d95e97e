package compiler

import (
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// In code the gradient behind a normalisation and its ReLU reads the output y again, to see where
// the ReLU let something through, and the sum of the gradients of all that read y. Here is found
// out what can be done in its place, so that less memory is moved; no bit of a result changes:
//
//   - The forward pass keeps what tells where y > 0: the affine map, of which it follows from x, which the gradient reads in any case; or, where
//     something was added, a bit for each number.
//   - A sum of two gradients that only such a gradient reads is taken while it reads them.
//   - A normalisation whose output is only added by another one, as in a block that changes shape, computes its statistics and map; the other one maps
//     its input while it adds it.

// gates is what is found out of traced code.
type fusions struct {
	saved     map[*tracedCall]*saved      // forward and backward passes
	fusedSums map[*tracedCall]*tracedCall // of a backward pass, the sum that it takes itself
	removed   map[*tracedCall]bool        // those sums

	pairs map[*tracedCall]*normPair // two normalisations: the one that is added, and the one that adds it
}

// join is a normalisation that is mapped by the one that adds it.
type normPair struct {
	added *tracedCall
	saved *saved // its scale and shift
}

// kept is what a forward pass keeps for its gradient.
type saved struct {
	rows, columns int
	ByMask        bool
	Operands      []Operand // the mask; or scale and shift. Once they have a place, or are values
}

// sizes are the lengths of the operands: bytes of the mask, or numbers of float32.
func (k *saved) sizes(e kernels.Element) []int {
	if k.ByMask {
		n := kernels.Norm{Element: e, M: k.rows, C: k.columns}
		return []int{n.MaskBytes()}
	}
	return []int{k.columns, k.columns}
}

// forwardOf lists the passes whose output a gradient may ask for.
var forwardKernels = map[device.Kernel][]device.Kernel{
	device.BatchNormReLUGrad:    {device.BatchNormReLU, device.NormalizeReLU},
	device.BatchNormAddReLUGrad: {device.BatchNormAddReLU, device.NormalizeAddReLU},
}

func findFusions(t *trace, e kernels.Element) *fusions {
	g := &fusions{saved: map[*tracedCall]*saved{}, fusedSums: map[*tracedCall]*tracedCall{}, removed: map[*tracedCall]bool{},
		pairs: map[*tracedCall]*normPair{}}
	maker, uses := t.makers(), t.uses()
	for i := range t.calls {
		back := &t.calls[i]
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
	return g
}

// addedBy lists the normalisations that add the output of another, and which that must be.
var addendKernels = map[device.Kernel]device.Kernel{device.BatchNormAddReLU: device.BatchNorm,
	device.NormalizeAddReLU: device.Normalize}

// join joins a normalisation with the one whose output it adds, if nobody else wants that.
func (g *fusions) findPair(t *trace, adds *tracedCall, plain device.Kernel, maker []*tracedCall, uses []int) {
	z := adds.in[len(adds.in)-1]
	if !t.readOnce(z, uses) || maker[z.value] == nil {
		return
	}
	added := maker[z.value]
	if added.call.Kernel == plain && added.out[0] == z && slices.Equal(added.call.Dims, adds.call.Dims) {
		j := &normPair{added, &saved{rows: added.call.Dims[0], columns: added.call.Dims[1]}}
		g.pairs[added], g.pairs[adds] = j, j
	}
}

// canJoin says whether what a joined normalisation reads of the one that it adds is still there, in
// code that is placed.
func (t *trace) canFusePair(j *normPair, g *fusions) bool {
	needed := append([]device.Ref{j.added.call.In[0]}, j.added.mean().ref)
	after := false
	for i := range t.calls {
		c := &t.calls[i]
		if after {
			for _, out := range c.call.Out {
				if slices.ContainsFunc(needed, func(r device.Ref) bool { return overlaps(out, r) }) {
					return false
				}
			}
			if g.pairs[c] == j {
				return true
			}
		}
		after = after || c == j.added
	}
	return false
}

// makers is the call that makes each value.
func (t *trace) makers() []*tracedCall {
	all := make([]*tracedCall, len(t.values))
	for i := range t.calls {
		for _, s := range t.calls[i].out {
			if s.value >= 0 {
				all[s.value] = &t.calls[i]
			}
		}
	}
	return all
}

// uses is how often each value is read.
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

// pair lets the forward pass of a gradient keep something, if its output is at hand: the gradient
// is of the same x, by the same mean and gamma.
func (g *fusions) findSaved(back *tracedCall, maker []*tracedCall) {
	y := back.in[1]
	if y.value < 0 || maker[y.value] == nil {
		return
	}
	forward := maker[y.value]
	if !slices.Contains(forwardKernels[back.call.Kernel], forward.call.Kernel) || forward.out[0] != y ||
		forward.in[0] != back.in[0] ||
		forward.in[1] != back.in[3] || forward.mean() != back.in[4] || !slices.Equal(forward.call.Dims,
		back.call.Dims) {
		return
	}
	k := g.saved[forward]
	if k == nil {
		d := forward.call.Dims
		k = &saved{rows: d[0], columns: d[1], ByMask: back.call.Kernel == device.BatchNormAddReLUGrad}
		g.saved[forward] = k
	}
	g.saved[back] = k
}

// mean is that of a forward pass: made or given.
func (c *tracedCall) mean() source {
	if len(c.out) > 1 {
		return c.out[1]
	}
	return c.in[3]
}

// take lets a gradient take the sum that it reads, if nobody else does, and if its summands are as
// the sum would be.
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
	g.fusedSums[back], g.removed[sum] = sum, true
}

// makesHalf says whether a call of 16 bits makes an output in them whatever its readers want.
func (c *tracedCall) makesHalf(s source) bool {
	return c != nil && kernelFormats[c.call.Kernel].out[slices.Index(c.out, s)] == 'h'
}

// canWait says whether a sum of code that is placed already can be taken as late as by the gradient
// that reads it: nothing is written over its summands before; nor by the gradient while it reads
// them, which is when it writes dz, unless each number of dz takes the place of its own summand.
func (t *trace) canFuseSum(sum *tracedCall, g *fusions) bool {
	over := func(out device.Ref) bool {
		return slices.ContainsFunc(sum.call.In, func(in device.Ref) bool { return overlaps(out, in) })
	}
	waiting := false
	for i := range t.calls {
		c := &t.calls[i]
		switch {
		case c == sum:
			waiting = true
		case waiting && g.fusedSums[c] == sum:
			dz := c.call.Out[1]
			return !over(dz) || slices.Contains(sum.call.In, dz)
		case waiting && slices.ContainsFunc(c.call.Out, over):
			return false
		}
	}
	return false
}
