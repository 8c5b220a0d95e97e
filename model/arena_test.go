package model

import (
	"reflect"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/device"
	"fspda/device/plan"
)

// replay executes a plan on memory that records, for every element, the value stored there. It
// knows the calls and the value of each operand, but not how addresses were chosen.
type replay struct {
	t      *testing.T
	what   string
	memory map[device.Space][]int // the value stored at each address, from 1; 0: none
}

func checkPlaces(t *testing.T, what string, p *Plan) {
	t.Helper()
	checkDataflow(t, what, p)
	c := p.Code()
	r := replay{t, what, map[device.Space][]int{device.Arena: make([]int, c.Arena), device.Grads: make([]int, c.Dim),
		device.Buffers: make([]int, c.Buffers)}}
	for i, s := range p.lowered.steps {
		call := c.Calls[i]
		for k, v := range s.in {
			r.expect(call.In[k], v, p.lowered.values[v].leaf)
		}
		for k, v := range s.out {
			r.write(call, k, v)
		}
	}
	for i, res := range c.Results {
		if res.Ref.Space != device.Arena {
			t.Errorf("%s: result %s lies in %v", what, res.Name, res.Ref)
			continue
		}
		r.expect(res.Ref, p.lowered.results[i], false)
	}
	if c.Gradient {
		r.expectAllGradients(p)
	}
}

// checkDataflow checks that the values of a plan and their uses are those that follow from its
// addresses.
func checkDataflow(t *testing.T, what string, p *Plan) {
	t.Helper()
	code := *p.Code()
	want := code.Dataflow
	code.Dataflow = device.Dataflow{}
	got, err := plan.Dataflow(&code)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: values %v (%v) by addresses, want %v", what, got, err, want)
	}
}

// expect checks that an address still holds the value that a call is about to read there.
func (r replay) expect(ref device.Ref, v int, leaf bool) {
	r.t.Helper()
	if leaf {
		if ref.Space == device.Arena || ref.Space == device.Grads {
			r.t.Errorf("%s: leaf %d lies in %v, which is written", r.what, v, ref)
		}
		if ref.Space == device.Buffers && slices.Max(r.memory[ref.Space][ref.Off:ref.Off+ref.Len]) > 0 {
			r.t.Errorf("%s: buffer %v is read after it moved", r.what, ref)
		}
		return
	}
	for i, holds := range r.memory[ref.Space][ref.Off : ref.Off+ref.Len] {
		if holds != v+1 {
			r.t.Errorf("%s: value %d is read at %v, but element %d belongs to %d", r.what, v, ref, i, holds-1)
			return
		}
	}
}

// write checks that an output overlaps no live value, or equals an input where the kernel allows
// it.
func (r replay) write(call device.Call, k, v int) {
	r.t.Helper()
	out := call.Out[k]
	if out.Space == device.Arena && out.Off%arenaAlign != 0 {
		r.t.Errorf("%s: %v is not aligned to %d numbers", r.what, out, arenaAlign)
	}
	if out.Space != device.Arena && out.Space != device.Grads && out.Space != device.Buffers {
		r.t.Errorf("%s: %s writes %v", r.what, call.Kernel, out)
		return
	}
	inPlace := call.Kernel == device.Add || call.Kernel == device.AddScaled || call.Kernel == device.MoveAverage
	for _, in := range call.In {
		if in.Overlaps(out) && !(inPlace && in == out) {
			r.t.Errorf("%s: %s reads %v and writes %v", r.what, call.Kernel, in, out)
		}
	}
	for other, o := range call.Out {
		if other != k && o.Overlaps(out) {
			r.t.Errorf("%s: %s writes %v and %v", r.what, call.Kernel, o, out)
		}
	}
	for i := out.Off; i < out.Off+out.Len; i++ {
		r.memory[out.Space][i] = v + 1
	}
}

func (r replay) expectAllGradients(p *Plan) {
	r.t.Helper()
	holder := make([]int, p.code.Dim)
	for _, v := range p.lowered.grads {
		ref := p.lowered.values[v].ref
		for i := ref.Off; i < ref.Off+ref.Len; i++ {
			holder[i] = v + 1
		}
	}
	for i, v := range r.memory[device.Grads] {
		if v == 0 || v != holder[i] {
			r.t.Errorf("%s: element %d of the gradient ends with value %d, want %d", r.what, i, v-1, holder[i]-1)
			return
		}
	}
}

func TestNoTwoLiveValuesShareMemory(t *testing.T) {
	for _, net := range nets(t) {
		for _, batch := range batches {
			for _, kind := range []Kind{Train, Score} {
				checkPlaces(t, label(net, batch), mustPlan(t, net, batch, kind))
			}
		}
	}
	for name, c := range opCases {
		g, err := testGraph(3, 1, nil, func(b *builder) *gorgonia.Node {
			return b.apply(device.HalfSquare, 1.5, c.build(b))
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, fuse := range []bool{false, true} {
			p, err := g.compile(fuse)
			if err != nil {
				t.Fatal(err)
			}
			checkPlaces(t, name, p)
		}
	}
}

// A value that is the gradient of several parameters, a parameter itself, or a result, is copied.
func TestGradientsThatAreCopied(t *testing.T) {
	for name, c := range map[string]struct {
		copies int
		loss   func(b *builder) *gorgonia.Node
	}{
		"one gradient of two parameters": {1, func(b *builder) *gorgonia.Node {
			sum := b.apply(device.Add, 0, b.param("x", 1, 5), b.param("y", 1, 5))
			return b.apply(device.HalfSquare, 1, b.apply(device.Sigmoid, 0, sum))
		}},
		"a gradient that is the parameter": {1, func(b *builder) *gorgonia.Node {
			return b.apply(device.HalfSquare, 1, b.param("x", 1, 5))
		}},
		"both": {2, func(b *builder) *gorgonia.Node {
			return b.apply(device.HalfSquare, 1, b.apply(device.Add, 0, b.param("x", 1, 5), b.param("y", 1, 5)))
		}},
	} {
		g, err := testGraph(1, 1, nil, c.loss)
		if err != nil {
			t.Fatal(err)
		}
		if name == "both" { // the sum is the gradient of x and y, and now a result too
			g.results = append(g.results, result{"sum", g.grads[0], 3})
		}
		p, err := g.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := count(p, device.Scale); got != c.copies {
			t.Errorf("%s: %d copies, want %d:\n%v", name, got, c.copies, p)
		}
		checkPlaces(t, name, p)
		checkGradient(t, p.Code(), random(p.Code().Dim, 19), nil, nil)
	}
}

// Memory reuse must reduce the arena, more so for deeper networks.
func TestReuseBeatsNoReuse(t *testing.T) {
	deep, err := MLP(MLPOptions{Inputs: 50, Classes: 10, Hidden: []int{40, 40, 40, 40, 40, 40}, WeightDecay: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		net   *Network
		kind  Kind
		bound float64 // of arena over demand
	}{
		// six activations stay for the backward pass, plus one gradient: of twelve layer-sized
		// values, seven are live
		{deep, Train, 0.60},
		{deep, Score, 0.35}, // two of six
	} {
		p := mustPlan(t, c.net, 64, c.kind)
		t.Logf("%s %v: arena %d, %d without reuse, %d alive at "+
			"once", c.net.name, c.kind, p.Code().Arena, p.unsharedSize,
			mostAlive(p))
		if ratio := float64(p.Code().Arena) / float64(p.unsharedSize); ratio > c.bound {
			t.Errorf("%s %v: arena %d of %d without reuse, %.2f, want at most %.2f", c.net.name, c.kind, p.Code().Arena,
				p.unsharedSize, ratio, c.bound)
		}
	}
}

// The arena cannot be smaller than the peak of live values; for these networks it has exactly that
// size.
func TestArenaIsAsSmallAsItCanBe(t *testing.T) {
	for _, net := range nets(t) {
		for _, kind := range []Kind{Train, Score} {
			p := mustPlan(t, net, 64, kind)
			if alive := mostAlive(p); p.Code().Arena != alive {
				t.Errorf("%s %v: arena %d, but %d numbers are alive at once", label(net, 64), kind, p.Code().Arena,
					alive)
			}
		}
	}
}

// mostAlive returns the largest sum of arena values that are live at one call.
func mostAlive(p *Plan) int {
	steps := p.lowered.steps
	// by arena offset range: a place is alive from a write to its last read
	first, last := map[int]int{}, map[int]int{}
	for v := range p.lowered.values {
		first[v] = -1
	}
	for i, s := range steps {
		for _, v := range append(append([]int(nil), s.in...), s.out...) {
			if first[v] < 0 {
				first[v] = i
			}
			last[v] = i
		}
	}
	for _, v := range p.lowered.results {
		last[v] = len(steps)
	}
	most := 0
	for i := range steps {
		alive, seen := 0, map[device.Ref]bool{} // a sum in place counts once
		for v, val := range p.lowered.values {
			if val.ref.Space == device.Arena && first[v] >= 0 && first[v] <= i && i <= last[v] && !seen[val.ref] {
				seen[val.ref] = true
				alive += plan.Align(val.ref.Len, arenaAlign)
			}
		}
		most = max(most, alive)
	}
	return most
}
