package model

import (
	"strings"

	"fspda/device"
)

// fusion replaces two kernels by one that makes a single pass over the output: the first kernel,
// and a second that reads output 0 of the first as its input number at. The fused kernel has the
// inputs of the first and then the other inputs of the second, and output 0 of the second instead
// of that of the first.
type fusion struct {
	first, second device.Kernel
	at            int
	one           device.Kernel
}

var fusions = []fusion{
	{device.Linear, device.Sigmoid, 0, device.LinearSigmoid},
	{device.Linear, device.ReLU, 0, device.LinearReLU},
	{device.LinearGradX, device.SigmoidGrad, 1, device.LinearGradXSigmoid},
	{device.LinearGradX, device.ReLUGrad, 1, device.LinearGradXReLU},
	{device.LinearGradW, device.AddScaled, 0, device.LinearGradWDecay},
}

// fuseLayers replaces two steps by one wherever a fusion applies and the intermediate value has no
// other reader. A fused kernel rounds like the two that it replaces, so results are bit-identical.
func (l *lowered) fuseLayers() {
	uses := l.uses()
	maker := make([]int, len(l.values)) // the step that computes a value; -1 for a leaf
	for v := range maker {
		maker[v] = -1
	}
	for i, s := range l.steps {
		for _, v := range s.out {
			maker[v] = i
		}
	}
	gone := make([]bool, len(l.steps))
	for j := range l.steps {
		for _, f := range fusions {
			if i, ok := l.fits(f, j, uses, maker); ok {
				l.merge(f, i, j)
				gone[j] = true
				maker[l.steps[i].out[0]] = i
				break
			}
		}
	}
	l.remove(gone)
}

// fits reports whether step j is the second of a fusion, and which step is the first.
func (l *lowered) fits(f fusion, j int, uses, maker []int) (i int, ok bool) {
	second := l.steps[j]
	if second.call.Kernel != f.second {
		return 0, false
	}
	between := second.in[f.at]
	i = maker[between]
	if i < 0 || uses[between] != 1 || l.steps[i].call.Kernel != f.first || l.steps[i].out[0] != between {
		return 0, false
	}
	for k, v := range second.in {
		if k != f.at && maker[v] >= i { // not computed yet when the first runs
			return 0, false
		}
	}
	return i, true
}

// merge makes step i also compute the outputs of step j.
func (l *lowered) merge(f fusion, i, j int) {
	first, second := &l.steps[i], l.steps[j]
	first.call.Kernel, first.call.Attr = f.one, second.call.Attr
	first.call.Name = joinNames(first.call.Name, second.call.Name)
	in := append([]int{}, first.in...)
	for k, v := range second.in {
		if k != f.at {
			in = append(in, v)
		}
	}
	first.in, first.out = in, append([]int{second.out[0]}, first.out[1:]...)
}

// joinNames names a call that serves two layers: fc1 and act1 become fc1+act1, fc1 and fc1.weight
// become fc1.weight.
func joinNames(a, b string) string {
	if a == b || strings.HasPrefix(b, a+".") {
		return b
	}
	return a + "+" + b
}

// remove deletes steps.
func (l *lowered) remove(gone []bool) {
	kept := l.steps[:0]
	for i, s := range l.steps {
		if !gone[i] {
			kept = append(kept, s)
		}
	}
	l.steps = kept
}
