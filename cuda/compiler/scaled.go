package compiler

import (
	"cmp"
	"fmt"
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
)

func (p *planner) isScaled(s source) bool {
	if s.value >= 0 {
		return p.values[s.value].scaled
	}
	return s.ref.OverlapsAny(p.scaledGrads)
}

// readsScaled reports whether an input of a call has the loss scale. Then its outputs have it too,
// for a backward pass is linear in the gradient of the loss.
func (p *planner) readsScaled(c *tracedCall) bool { return slices.ContainsFunc(c.in, p.isScaled) }

// lacksScale reports which summand of a call lacks the loss scale that the other one has: weight
// decay that is added to a gradient. It is nil where both or none have it.
func (p *planner) lacksScale(c *tracedCall) []bool {
	var summands []source
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

// markScaled notes that an output has the loss scale, or has it no longer.
func (p *planner) markScaled(s source, scaled bool) error {
	if s.value >= 0 {
		if scaled && p.values[s.value].result {
			return fmt.Errorf("%s is a result and comes from the gradient of the loss, which fp16 scales: load it "+
				"with precision bf16 or fp32", s.ref)
		}
		p.values[s.value].scaled = scaled
		return nil
	}
	kept := p.scaledGrads[:0]
	for _, r := range p.scaledGrads {
		if !r.Overlaps(s.ref) {
			kept = append(kept, r)
		} else if r != s.ref {
			return fmt.Errorf("%s overwrites a part of %s: load it with precision bf16 or fp32", s.ref, r)
		}
	}
	p.scaledGrads = kept
	if scaled && s.ref.Space != device.Grads {
		return fmt.Errorf("%s comes from the gradient of the loss, which fp16 scales: load it with precision bf16 "+
			"or fp32", s.ref)
	}
	if scaled {
		p.scaledGrads = append(p.scaledGrads, s.ref)
	}
	return nil
}

// finishGradients adds the tasks at the end: gradients are divided by the loss scale and get their
// decay. All of the gradient becomes 0 if a number of it is not finite, its decay too.
func (p *planner) finishGradients() {
	if !p.scaling {
		p.scaledGrads = nil
	}
	slices.SortFunc(p.scaledGrads, func(a, b device.Ref) int { return cmp.Compare(a.Off, b.Off) })
	var joined []device.Ref
	for _, r := range p.scaledGrads {
		if n := len(joined); n > 0 && joined[n-1].Off+joined[n-1].Len == r.Off {
			joined[n-1].Len += r.Len
		} else {
			joined = append(joined, r)
		}
	}
	for _, r := range joined {
		p.finishInputs = append(p.finishInputs, vectorOperand(r))
		p.finishes = append(p.finishes, kernels.GradPiece{Source: kernels.InPlace, To: r.Off, Weights: -1, N: r.Len,
			C: 1, Padded: 1, Scaled: true})
	}
	if len(p.finishes) > 0 {
		p.tasks = append(p.tasks, finishTask(p.finishInputs, p.finishes))
	}
	p.scaling = slices.ContainsFunc(p.finishes, func(e kernels.GradPiece) bool { return e.Scaled })
	if p.scaling {
		all := vectorOperand(device.Ref{Space: device.Grads, Len: p.code.Dim})
		p.tasks = append(p.tasks, Task{Work: ZeroIfNotFinite, Out: []Operand{all}}, Task{Work: UpdateScale})
	}
}
