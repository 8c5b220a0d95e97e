package compiler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"fspda/device"
	"fspda/model"
)

// linkedRun runs a plan of which some linked convolutions compute their normalisations. Instead of
// numbers, memory holds the names of what was written there.
type linkedRun struct {
	elsewhere map[*Task]*struct{ sums, apply, all bool }
	holds     []content
	bytes     map[int]bool      // the values whose numbers are bytes
	outside   map[string]string // by reader and operand outside of the arena: what it found there
	wrong     string            // the first mistake
}

// content is what a part of a space holds.
type content struct {
	space    device.Space
	from, to int
	name     string
}

func (c content) overlaps(o content) bool {
	return c.space == o.space && c.from < o.to && o.from < c.to
}

// place returns where an operand lies. Operands that are not read are nowhere.
func (r *linkedRun) place(o Operand) content {
	n := o.Bytes()
	if r.bytes[o.value] {
		n = o.Len
	}
	return content{o.Space, o.Offset, o.Offset + n, fmt.Sprint("value ", o.value)}
}

// find returns the names of all that a place holds.
func (r *linkedRun) find(at content) (all string) {
	for _, c := range r.holds {
		if c.overlaps(at) {
			all += c.name + ";"
		}
	}
	return all
}

// part is what a kernel reads and writes of a call: all of it, the sums of a normalisation, or its
// map.
type part struct {
	call          string
	reads, writes []Operand
}

// launch runs the parts of a kernel.
func (r *linkedRun) launch(parts ...part) {
	var read []content
	for _, p := range parts {
		for j, o := range p.reads {
			at := r.place(o)
			read = append(read, at)
			if found := r.find(at); o.value < 0 {
				r.outside[fmt.Sprintf("%s reads %d", p.call, j)] = found
			} else if found != at.name+";" && r.wrong == "" {
				r.wrong = fmt.Sprintf("%s reads %s and finds %q", p.call, at.name, found)
			}
		}
	}
	for _, p := range parts {
		for j, o := range p.writes {
			at := r.place(o)
			if len(parts) > 1 && slices.ContainsFunc(read, at.overlaps) && r.wrong == "" {
				r.wrong = fmt.Sprintf("%s writes output %d where its kernel reads", p.call, j)
			}
			if o.value < 0 {
				at.name = fmt.Sprint(p.call, " ", j)
			}
			r.holds = append(slices.DeleteFunc(r.holds, at.overlaps), at)
		}
	}
}

// normParts returns the two kernels of a normalisation, or of the gradient of one.
func normParts(t *Task, call string) (sums, apply part) {
	vectors := t.Vectors
	if t.Saved != nil && !t.Saved.ByMask {
		vectors = append(append([]Operand{}, vectors[:min(3, len(vectors))]...), t.Saved.Operands...)
	}
	factors, maps := vectors[:max(0, len(vectors)-2)], vectors[max(0, len(vectors)-2):]
	if normForwards[t.Call.Kernel] {
		sums = part{call + " sums", t.In[:3], slices.Concat(t.Out[1:], maps)}
		apply = part{call + " apply", slices.Concat(t.In[:1], t.In[3:], t.Out[1:2], maps, ptrsTo(t.PairMean)),
			t.Out[:1]}
		if t.PairSaved != nil {
			apply.reads = append(apply.reads, t.PairSaved.Operands...)
		}
		if t.Saved != nil && t.Saved.ByMask {
			apply.writes = slices.Concat(apply.writes, t.Saved.Operands)
		}
		return sums, apply
	}
	sums = part{call + " sums", slices.Concat(t.In, ptrsTo(t.Addend)), slices.Concat(t.Out[1:], factors)}
	apply = part{call + " apply", slices.Concat(t.In[:1], t.gradient(), factors), t.Out[:1]}
	if t.Saved != nil {
		sums.reads = append(sums.reads, t.Saved.Operands...)
	}
	if t.Call.Kernel != device.BatchNormAddReLUGrad && t.Saved != nil {
		apply.reads = append(apply.reads, t.Saved.Operands...)
	}
	return sums, apply
}

func callOf(t *Task) string { return fmt.Sprintf("%s of %p", t.Title(), t.Call) }

// fusedParts returns the parts of a convolution with its links. without says that it does not store
// its input.
func fusedParts(t *Task, without bool) []part {
	own := part{callOf(t), t.In, t.Out}
	var parts []part
	if t.Reads != nil {
		_, apply := normParts(t.Reads, callOf(t.Reads))
		if own.reads = t.In[1:]; without {
			apply.writes = nil
		}
		parts = append(parts, apply)
	}
	if t.Feeds != nil {
		sums, _ := normParts(t.Feeds, callOf(t.Feeds))
		made := func(o Operand) bool { return o.value == t.Out[0].value }
		sums.reads = slices.DeleteFunc(slices.Clone(sums.reads), made)
		if t.Feeds.Call.Kernel == device.BatchNormAddReLUGrad { // which gets the sum instead
			own.writes = nil
		}
		parts = append(parts, sums)
	}
	return append(parts, own)
}

// run runs a task.
func (r *linkedRun) run(t *Task, fused bool) {
	done := r.elsewhere[t]
	switch {
	case t.Work == Compute && (normForwards[t.Call.Kernel] || normGradients[t.Call.Kernel]):
		sums, apply := normParts(t, callOf(t))
		if !done.sums {
			r.launch(sums)
		}
		if !done.apply && !t.Deferred {
			r.launch(apply)
		}
	case done.all:
	case fused && t.GradX != nil:
		r.launch(append(fusedParts(t.GradX, true), part{callOf(t), t.In[:1], t.Out})...)
	case fused && t.Reads != nil || fused && t.Feeds != nil:
		r.launch(fusedParts(t, false)...)
	default:
		p := part{callOf(t), slices.Concat(t.In, ptrsTo(t.Addend, t.PairMean)), t.Out}
		for _, k := range []*Saved{t.Saved, t.PairSaved} {
			if k != nil {
				p.reads = append(p.reads, k.Operands...)
			}
		}
		r.launch(p)
	}
}

// runLinked runs a plan in which fuse says which tasks with links are fused.
func runLinked(p *Plan, fuse func(i int) bool) *linkedRun {
	r := &linkedRun{elsewhere: map[*Task]*struct{ sums, apply, all bool }{}, bytes: map[int]bool{},
		outside: map[string]string{}}
	written := map[int]bool{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		r.elsewhere[t] = &struct{ sums, apply, all bool }{}
		for _, o := range t.Out {
			written[o.value] = true
		}
		if t.Saved != nil && t.Saved.ByMask {
			r.bytes[t.Saved.Operands[0].value] = true
		}
		if t.Work == Compute && t.Call.Kernel == device.MaxPool {
			r.bytes[t.Out[1].value] = true
		}
	}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		for _, o := range t.In {
			if !written[o.value] && o.value >= 0 { // a copy of parameters, made by the first task
				r.launch(part{"copies", nil, []Operand{o}})
			}
		}
		with := t
		if !fuse(i) {
			continue
		}
		if t.GradX != nil {
			with = t.GradX
			r.elsewhere[with].all = true
		}
		if with.Reads != nil {
			r.elsewhere[with.Reads].apply = true
		}
		if with.Feeds != nil {
			r.elsewhere[with.Feeds].sums = true
		}
	}
	for i := range p.Tasks {
		r.run(&p.Tasks[i], fuse(i))
	}
	return r
}

// checkLinked runs a plan with none, all and some of its links. Every kernel must find in memory
// what it finds in code without links. It returns how many links there are.
func checkLinked(t *testing.T, what string, code *device.Code) (links int) {
	t.Helper()
	none := func(int) bool { return false }
	options := Options{Precision: BF16}
	plain, err := Compile(code, options)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	want := runLinked(plain, none).outside
	options.Pointwise, options.BothBlocks = true, 1
	for seed := range 6 {
		p, err := Compile(code, options)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		fused := make([]bool, len(p.Tasks))
		for i := range fused {
			x := &p.Tasks[i]
			fused[i] = seed == 1 || seed > 1 && random.IntN(2) == 0
			if x.GradX == nil && x.Reads == nil && x.Feeds == nil {
				fused[i] = false
			} else if seed == 0 {
				links++
			}
		}
		got := runLinked(p, func(i int) bool { return fused[i] })
		if got.wrong != "" {
			t.Errorf("%s, fusion %d: %s", what, seed, got.wrong)
		}
		if seed == 0 && !maps.Equal(got.outside, want) {
			t.Errorf("%s: without fusion calls read other vectors than without links", what)
		}
		for reader, found := range got.outside {
			if found != want[reader] {
				t.Errorf("%s, fusion %d: %s and finds %q, want %q", what, seed, reader, found, want[reader])
			}
		}
	}
	return links
}

// Whatever convolutions are fused, every kernel reads what it would read without links.
func TestLinksKeepOperands(t *testing.T) {
	for _, recompute := range []model.Recompute{model.RecomputeNone, model.RecomputeBlocks} {
		net, err := model.ResNet(model.ResNetOptions{Depth: 50, Height: 64, Width: 64, Classes: 4,
			Recompute: recompute})
		if err != nil {
			t.Fatal(err)
		}
		made, err := net.Plan(4, model.Step)
		if err != nil {
			t.Fatal(err)
		}
		if checkLinked(t, "resnet50, recompute "+string(recompute), made.Code()) < 60 {
			t.Errorf("resnet50, recompute %s: too few links", recompute)
		}
	}
	links := 0
	for seed := range uint64(200) {
		links += checkLinked(t, fmt.Sprintf("code %d", seed), randomCode(rand.New(rand.NewPCG(seed, 1))))
	}
	if links < 300 {
		t.Errorf("200 random codes have %d links: too few to test them", links)
	}
}

// randomCode returns calls of convolutions of 1×1, normalisations, gradients and sums, whose
// operands are any of what other calls have made, as no network has them.
func randomCode(random *rand.Rand) *device.Code {
	const side, channels, vectors = 16, 64, 6
	const m, weights = 2 * side * side, channels * channels
	code := &device.Code{Name: "random", Batch: 2, Features: m / 2 * channels, Dim: vectors * (weights + channels),
		Gradient: true}
	ref := func(s device.Space, off, n int) device.Ref { return device.Ref{Space: s, Off: off, Len: n} }
	made := []device.Ref{ref(device.Input, 0, m*channels)}
	value := func(n int) device.Ref {
		code.Arena += n
		return ref(device.Arena, code.Arena-n, n)
	}
	old := func() device.Ref { return made[max(0, len(made)-1-random.IntN(4)*random.IntN(2))] }
	statistics := []device.Ref{}
	vector := func() device.Ref { // of parameters, or now and then of the arena
		if n := len(statistics); n > 0 && random.IntN(8) == 0 {
			return statistics[n-1]
		}
		return ref(device.Params, vectors*weights+random.IntN(vectors)*channels, channels)
	}
	gradient := func() device.Ref { return ref(device.Grads, vectors*weights+random.IntN(vectors)*channels, channels) }
	filters := func(s device.Space) device.Ref { return ref(s, random.IntN(vectors)*weights, weights) }
	var forwards []*device.Call
	add := func(k device.Kernel, dims []int, in []device.Ref, out ...device.Ref) {
		code.Calls = append(code.Calls, device.Call{Kernel: k, Dims: dims, In: in, Out: out, Attr: 1e-5})
	}
	conv, norm := []int{2, side, side, channels, channels, 1, 1, 1, 0}, []int{m, channels}
	for range 30 {
		y, x := value(m*channels), old()
		switch kind := random.IntN(10); {
		case kind < 3:
			add(device.Conv, conv, []device.Ref{x, filters(device.Params)}, y)
		case kind < 5:
			add(device.ConvGradX, conv, []device.Ref{x, filters(device.Params)}, y)
			add(device.ConvGradW, conv, []device.Ref{old(), x}, filters(device.Grads))
		case kind < 7:
			mean, variance := value(channels), value(channels)
			in := []device.Ref{x, vector(), vector()}
			statistics = append(statistics, mean)
			k := []device.Kernel{device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU}[random.IntN(3)]
			if k == device.BatchNormAddReLU {
				in = append(in, old())
			}
			add(k, norm, in, y, mean, variance)
			forward := code.Calls[len(code.Calls)-1]
			forwards = append(forwards, &forward)
		case kind < 9 && len(forwards) > 0:
			f := forwards[max(0, len(forwards)-1-random.IntN(3))]
			in := []device.Ref{f.In[0], f.Out[0], x, f.In[1], f.Out[1], f.Out[2]}
			if random.IntN(4) == 0 {
				in[0] = old()
			}
			switch f.Kernel {
			case device.BatchNorm:
				add(device.BatchNormGrad, norm, append(in[:1], in[2:]...), y, gradient(), gradient())
			case device.BatchNormReLU:
				add(device.BatchNormReLUGrad, norm, in, y, gradient(), gradient())
			default:
				dz := value(m * channels)
				add(device.BatchNormAddReLUGrad, norm, in, y, dz, gradient(), gradient())
				made = append(made, dz)
			}
		default:
			add(device.Add, []int{m * channels}, []device.Ref{x, old()}, y)
		}
		made = append(made, y)
	}
	return code
}
