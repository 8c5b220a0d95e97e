package compiler

import (
	"slices"
	"testing"

	"fspda/device"
	"fspda/model"
)

// In a residual network every normalisation with ReLU saves for its gradient, every sum of
// gradients between blocks is fused with the gradient that reads it, the normalisation of a
// shortcut is paired with the one that adds it, and the normalisation of the stem with the
// max-pool.
func TestFusionsOfResNets(t *testing.T) {
	for _, c := range []struct{ depth, side, norms, sums, joins int }{{50, 64, 49, 15, 5}, {20, 8, 19, 8, 2},
		{18, 64, 17, 7, 4}} {
		net, err := model.ResNet(model.ResNetOptions{Depth: c.depth, Height: c.side, Width: c.side, Classes: 4})
		if err != nil {
			t.Fatal(err)
		}
		made, err := net.Plan(4, model.Step)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Precision{FP32, FP16} {
			plan, err := Compile(made.Code(), Options{Precision: p})
			if err != nil {
				t.Fatal(err)
			}
			norms, sums, joins := 0, 0, 0
			for i := range plan.Tasks {
				x := &plan.Tasks[i]
				if x.Call != nil && forwardKernels[x.Call.Kernel] != nil && x.Saved != nil {
					norms++
				}
				if x.Addend != nil {
					sums++
				}
				if x.PairSaved != nil {
					joins++
				}
			}
			if norms != c.norms || sums != c.sums || joins != c.joins {
				t.Errorf("resnet%d, %s: %d gradients use saved masks, want %d; %d sums are fused, want %d; %d "+
					"normalisations "+
					"are paired, want %d", c.depth, p, norms, c.norms, sums, c.sums, joins, c.joins)
			}
		}
	}
}

// Calls that do not fit together are not fused.
func TestFusionsThatDoNotApply(t *testing.T) {
	at := func(off, n int) device.Ref { return device.Ref{Space: device.Arena, Off: off, Len: n} }
	params := func(off int) device.Ref { return device.Ref{Space: device.Params, Off: off, Len: 8} }
	x := device.Ref{Space: device.Input, Off: 0, Len: 32}
	forward := device.Call{Kernel: device.BatchNormAddReLU, In: []device.Ref{x, params(0), params(8), x},
		Out: []device.Ref{at(0, 32), at(32, 8), at(40, 8)}, Dims: []int{4, 8}}
	back := device.Call{Kernel: device.BatchNormAddReLUGrad, In: []device.Ref{x, at(0, 32), at(64, 32), params(0),
		at(32, 8), at(40, 8)}, Out: []device.Ref{at(96, 32), at(128, 32), {Space: device.Grads, Off: 0, Len: 8},
		{Space: device.Grads, Off: 8, Len: 8}}, Dims: []int{4, 8}}
	sum := device.Call{Kernel: device.Add, In: []device.Ref{at(64, 32), at(160, 32)}, Out: []device.Ref{at(64, 32)},
		Dims: []int{32}}
	fill := device.Call{Kernel: device.Scale, In: []device.Ref{x}, Out: []device.Ref{at(64, 32)}, Dims: []int{32},
		Attr: 1}
	other := fill
	other.Out = []device.Ref{at(160, 32)}
	for what, c := range map[string]struct {
		spoil      func(forward, back, sum, between *device.Call)
		kept, sums bool
	}{
		"all fits":      {func(_, _, _, _ *device.Call) {}, true, true},
		"another gamma": {func(_, b, _, _ *device.Call) { b.In[3] = params(8) }, false, true},
		"another x":     {func(_, b, _, _ *device.Call) { b.In[0] = at(160, 32) }, false, true},
		"another mean":  {func(_, b, _, _ *device.Call) { b.In[4] = at(40, 8) }, false, true},
		"no ReLU after it": {func(f, _, _, _ *device.Call) { f.Kernel, f.In = device.BatchNorm, f.In[:3] }, false,
			true},
		"y is overwritten":     {func(_, _, _, o *device.Call) { o.Out = []device.Ref{at(0, 32)} }, false, false},
		"a summand is too":     {func(_, _, _, o *device.Call) { o.Out = []device.Ref{at(160, 32)} }, true, false},
		"dz overwrites it":     {func(_, b, _, _ *device.Call) { b.Out[1] = at(160, 32) }, true, true},
		"dz takes half of one": {func(_, b, _, _ *device.Call) { b.Out[1] = at(176, 32) }, true, true},
		"a value between":      {func(_, _, _, o *device.Call) { o.Out = []device.Ref{at(224, 32)} }, true, false},
		"somebody else reads the sum": {func(_, _, _, o *device.Call) {
			o.In = []device.Ref{at(64, 32)}
		}, true, false},
	} {
		f, b, s, between := forward, back, sum, fill
		f.In, b.In, s.In = slices.Clone(f.In), slices.Clone(b.In), slices.Clone(s.In)
		f.Out, b.Out, between.In = slices.Clone(f.Out), slices.Clone(b.Out), slices.Clone(between.In)
		between.Out = []device.Ref{{Space: device.Grads, Off: 16, Len: 32}}
		c.spoil(&f, &b, &s, &between)
		code := &device.Code{Name: what, Batch: 4, Features: 8, Dim: 48, Arena: 256, Gradient: true,
			Calls: []device.Call{f, fill, other, s, between, b}}
		p, err := Compile(code, Options{Precision: FP32})
		if err != nil {
			t.Fatal(err)
		}
		last := p.Tasks[len(p.Tasks)-1]
		if kept, sums := last.Saved != nil, last.Addend != nil; kept != c.kept || sums != c.sums ||
			(len(p.Tasks) == len(code.Calls)) == sums {
			t.Errorf("%s: saved: %v, want %v; sum fused: %v, want %v; %d tasks", what, kept, c.kept, sums, c.sums,
				len(p.Tasks))
		}
	}
}
