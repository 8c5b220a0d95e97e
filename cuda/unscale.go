package cuda

import (
	"cmp"
	"fmt"
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

// isScaled says whether an operand is multiplied by the loss scale.
func (p *planner) isScaled(h home) bool {
	if h.value >= 0 {
		return p.values[h.value].scaled
	}
	for _, r := range p.scaled {
		if overlapping(r, h.ref) {
			return true
		}
	}
	return false
}

// readsScaled says whether an input of a call is scaled: then so are its outputs, for a backward
// pass is linear in the gradient that it begins with.
func (p *planner) readsScaled(c *traced) bool {
	for _, h := range c.in {
		if p.isScaled(h) {
			return true
		}
	}
	return false
}

// lacking says which summands of a call lack the loss scale that the other has: weight decay, where
// it is added to a gradient. Nil where it is none.
func (p *planner) lacking(c *traced) []bool {
	var summands []home
	switch c.call.Kernel {
	case device.Add, device.AddScaled:
		summands = c.in
	case device.LinearGradWDecay: // dyᵀ·x and W
		summands = c.in[1:]
	default:
		return nil
	}
	lacks := []bool{!p.isScaled(summands[0]), !p.isScaled(summands[1])}
	if lacks[0] == lacks[1] {
		return nil
	}
	return lacks
}

// mark notes that an output is scaled, or is not any more.
func (p *planner) mark(h home, scaled bool) error {
	if h.value >= 0 {
		if scaled && p.values[h.value].result {
			return fmt.Errorf("%s is a result and comes from the gradient of the loss, which fp16 scales: load it with precision bf16 or fp32", h.ref)
		}
		p.values[h.value].scaled = scaled
		return nil
	}
	kept := p.scaled[:0]
	for _, r := range p.scaled {
		if !overlapping(r, h.ref) {
			kept = append(kept, r)
		} else if r != h.ref {
			return fmt.Errorf("%s overwrites a part of %s: load it with precision bf16 or fp32", h.ref, r)
		}
	}
	p.scaled = kept
	if scaled && h.ref.Space != device.Grads {
		return fmt.Errorf("%s comes from the gradient of the loss, which fp16 scales: load it with precision bf16 or fp32", h.ref)
	}
	if scaled {
		p.scaled = append(p.scaled, h.ref)
	}
	return nil
}

// finish ends the tasks: gradients are unscaled and checked, and get their decay. All of the
// gradient is 0 if some number of it is not finite, decay too.
func (p *planner) finish() {
	if !p.scaling {
		p.scaled = nil
	}
	slices.SortFunc(p.scaled, func(a, b device.Ref) int { return cmp.Compare(a.Off, b.Off) })
	var joined []device.Ref
	for _, r := range p.scaled {
		if n := len(joined); n > 0 && joined[n-1].Off+joined[n-1].Len == r.Off {
			joined[n-1].Len += r.Len
		} else {
			joined = append(joined, r)
		}
	}
	gradient := func(r device.Ref) operand {
		return operand{space: device.Grads, at: 4 * r.Off, n: r.Len, value: -1}
	}
	for _, r := range joined {
		p.ends = append(p.ends, gradient(r))
		p.endings = append(p.endings, kernels.Ending{Source: kernels.InPlace, To: r.Off, Weights: -1, N: r.Len, C: 1,
			Room: 1, Scaled: true})
	}
	if len(p.endings) > 0 {
		p.tasks = append(p.tasks, end(p.ends, p.endings))
	}
	p.scaling = slices.ContainsFunc(p.endings, func(e kernels.Ending) bool { return e.Scaled })
	if p.scaling {
		p.tasks = append(p.tasks, task{work: dropFound, out: []operand{gradient(device.Ref{Len: p.code.Dim})}},
			task{work: stepScale})
	}
}
