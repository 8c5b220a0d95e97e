package model

import (
	"strings"

	"fspda/device"
)

// fusion replaces two kernels by one that makes a single pass over the output: the first kernel,
// and a second that reads output 0 of the first as its input number at. The fused kernel has the
// inputs of the first and then the other inputs of the second, and output 0 of the second instead
// of output 0 of the first.
// With keep the intermediate value has other readers, and stays the first output of the fused
// kernel.
type fusion struct {
	first, second device.Kernel
	at            int
	one           device.Kernel
	keep          bool
}

var fusions = []fusion{
	{first: device.Linear, second: device.Sigmoid, one: device.LinearSigmoid},
	{first: device.Linear, second: device.ReLU, one: device.LinearReLU},
	{first: device.LinearGradX, second: device.SigmoidGrad, at: 1, one: device.LinearGradXSigmoid},
	{first: device.LinearGradX, second: device.ReLUGrad, at: 1, one: device.LinearGradXReLU},
	{first: device.LinearGradW, second: device.AddScaled, one: device.LinearGradWDecay},
	{first: device.Linear, second: device.GELUTanh, one: device.LinearGELUTanh, keep: true},
	{first: device.Linear, second: device.GELUErf, one: device.LinearGELUErf, keep: true},
	{first: device.Product, second: device.GELUTanh, one: device.ProductGELUTanh, keep: true},
	{first: device.Product, second: device.GELUErf, one: device.ProductGELUErf, keep: true},
	{first: device.LinearGradX, second: device.GELUTanhGrad, at: 1, one: device.LinearGradXGELUTanh},
	{first: device.LinearGradX, second: device.GELUErfGrad, at: 1, one: device.LinearGradXGELUErf},
	{first: device.Add, second: device.LayerNorm, one: device.AddLayerNorm, keep: true},
	{first: device.Add, second: device.LayerNormPlain, one: device.AddLayerNormPlain, keep: true},
	{first: device.LayerNormGrad, second: device.Add, one: device.LayerNormGradAdd},
	{first: device.LayerNormGrad, second: device.Add, at: 1, one: device.LayerNormGradAdd},
	{first: device.LayerNormPlainGrad, second: device.Add, one: device.LayerNormPlainGradAdd},
	{first: device.LayerNormPlainGrad, second: device.Add, at: 1, one: device.LayerNormPlainGradAdd},
	{first: device.EmbedGrad, second: device.Add, one: device.EmbedGradAdd},
	{first: device.EmbedGrad, second: device.Add, at: 1, one: device.EmbedGradAdd},
	{first: device.TokenEmbedGrad, second: device.Add, one: device.TokenEmbedGradAdd},
	{first: device.TokenEmbedGrad, second: device.Add, at: 1, one: device.TokenEmbedGradAdd},
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
				for _, v := range l.steps[i].out {
					maker[v] = i
				}
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
	if i < 0 || uses[between] != 1 && !f.keep || l.steps[i].call.Kernel != f.first || l.steps[i].out[0] != between ||
		l.steps[i].backward != second.backward {
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
	if dims := second.call.Dims; len(dims) > len(first.call.Dims) { // a sum has only a length
		first.call.Dims = dims
	}
	first.call.Name = joinNames(first.call.Name, second.call.Name)
	in := append([]int{}, first.in...)
	for k, v := range second.in {
		if k != f.at {
			in = append(in, v)
		}
	}
	if first.in = in; f.keep {
		first.out = append(first.out[:1:1], second.out...)
		return
	}
	first.out = append([]int{second.out[0]}, first.out[1:]...)
}

// joinNames names a call that serves two layers: fc1 and act1 become fc1+act1, fc1 and fc1.weight
// become fc1.weight.
func joinNames(a, b string) string {
	if a == b || strings.HasPrefix(b, a+".") {
		return b
	}
	return a + "+" + b
}

func (l *lowered) remove(gone []bool) {
	kept := l.steps[:0]
	for i, s := range l.steps {
		if !gone[i] {
			kept = append(kept, s)
		}
	}
	l.steps = kept
}
