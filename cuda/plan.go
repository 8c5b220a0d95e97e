package cuda

import (
	"fmt"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/signature"
)

// plan is code as a Program of this precision runs it: calls, conversions between them, and where
// everything lies.
type plan struct {
	tasks   []task
	arena   int // bytes of intermediate values
	results []device.Result
	scaling bool // the loss is multiplied by a scale

	examples *examples // nil: calls read the examples as they come
}

// examples is where the examples lie in 16 bits, if nothing reads them otherwise: rows of columns
// numbers, with room for more. Whoever has them as bytes can make these numbers of them, and the
// task that does it from float32 then finds that there is nothing to do.
type examples struct {
	operand
	columns, room int
}

// takesBytes says whether bytes that stand for numbers by so many scales become numbers of 16 bits
// at once.
func (p *plan) takesBytes(channels int) bool {
	x := p.examples
	return x != nil && (x.room == x.columns || channels == 1 || channels == x.columns)
}

// work is what a task does.
type work int

const (
	compute         work = iota // the call
	narrow                      // out = in, rounded to 16 bits, with room for more columns
	widen                       // out = in, as float32
	narrowStretches             // the parameters that calls want in 16 bits
	scaleLoss                   // out, where a backward pass begins, times the loss scale
	// the gradients of parameters in their final form: widened, divided by the scale, with their
	// decay
	endGradient
	moveBuffers  // buffers, by the statistics of the batch
	addPenalties // out = in + the decay of parameters
	dropFound    // out, the whole gradient, is 0 if it is not finite
	stepScale    // the scale of the next run
)

// task is something to send to the GPU.
type task struct {
	work    work
	call    *device.Call // what it does or serves; nil for what serves all
	in, out []operand
	columns int // narrow: numbers of a row
	// what there is room for in a row; of a convolution, channels; 0: no more than there are
	room      int
	mask      *mask             // of ReLU, where there is room for one
	lacks     []bool            // of a sum where only one summand has the loss scale: who lacks it
	stretches []kernels.Stretch // narrowStretches
	endings   []kernels.Ending  // endGradient: of what lies at in
	moves     []kernels.Move    // moveBuffers: by what lies at in
	penalties []kernels.Penalty // addPenalties
	route     func() string     // of a convolution: what computes it

	kept  *kept    // of a normalisation and its gradient: what the one keeps for the other
	other *operand // of such a gradient: the second summand of what it reads

	unmapped bool     // of a normalisation: whoever adds its output maps it
	joined   *kept    // of who adds it: the map
	mean     *operand // with joined
}

// all lists the operands, by whose places a task can be told when they are known.
func (t *task) all() []*operand {
	var all []*operand
	for _, list := range [][]operand{t.in, t.out} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	for _, k := range []*kept{t.kept, t.joined} {
		if k != nil {
			for i := range k.operands {
				all = append(all, &k.operands[i])
			}
		}
	}
	for _, o := range []*operand{t.other, t.mean} {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (t *task) title() string {
	if t.call != nil {
		return signature.Title(t.call)
	}
	return [...]string{narrowStretches: "rounding the parameters", endGradient: "finishing the gradient",
		moveBuffers: "moving the buffers", addPenalties: "adding the decay to the loss", dropFound: "checking the gradient",
		stepScale: "moving the loss scale", narrow: "rounding", widen: "widening", scaleLoss: "scaling the loss"}[t.work]
}

// operand is where numbers lie, and how.
type operand struct {
	space   device.Space
	at      int // in bytes
	n       int
	element kernels.Element // of those that are no places
	value   int             // of the arena, while its place is not known; -1: none
}

// bytes is what the operand takes.
func (o operand) bytes() int { return o.n * o.element.Size() }

// planOf plans code for the device's precision.
func (d *Device) planOf(code *device.Code) (*plan, error) {
	if e := d.precision.element(); e != kernels.F32 {
		return planShort(code, e, d.precision == FP16, d.epilogues(), d.literal)
	}
	return planWhole(code, d.epilogues(), d.literal), nil
}

// planShort plans code with activations of 16 bits. With scaling, the gradient of the loss is
// multiplied by a scale and what comes out is divided by it. With epilogues, biases are wanted in
// the format of what they are added to.
func planShort(code *device.Code, element kernels.Element, scaling, epilogues, literal bool) (*plan, error) {
	t, err := traceOf(code)
	if err != nil {
		return nil, err
	}
	p := &planner{trace: t, code: code, element: element, scaling: scaling && code.Gradient, epilogues: epilogues,
		copies: map[copyOf]int{}, gates: &gates{}, lists: &lists{}}
	if !literal {
		p.gates, p.lists = gatesOf(t, element), listsOf(t, false)
	}
	p.tasks = []task{{work: narrowStretches}} // filled by what is wanted
	for i := range t.calls {
		if err := p.add(&t.calls[i]); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, signature.Title(t.calls[i].call), err)
		}
	}
	p.finish()
	if epilogues {
		addMasks(p.tasks, t.reluPairs(), func(bytes int) operand { return p.operand(p.newValue(bytes, places)) })
	}
	return p.place()
}

// planner makes tasks of traced calls.
type planner struct {
	*trace
	*gates
	*lists
	code      *device.Code
	element   kernels.Element
	scaling   bool
	epilogues bool
	tasks     []task
	copies    map[copyOf]int // what there is in another format, as a value
	shadows   []shadow
	scaled    []device.Ref // places of the gradient that hold scaled numbers
	ends      []operand    // what is to be finished of the gradient, and how
	endings   []kernels.Ending
}

// copyOf is a home in another format.
type copyOf struct {
	home
	format        format
	columns, room int
}

// shadow is parameters in 16 bits.
type shadow struct {
	ref           device.Ref
	value         int
	columns, room int
}

// add makes the tasks of a call: its operands in the formats that it wants, itself, and its outputs
// where they belong.
func (p *planner) add(c *traced) error {
	if p.gone[c] {
		return nil
	}
	if done, err := p.list(c); done || err != nil {
		return err
	}
	form := shortForms[c.call.Kernel]
	t := task{call: c.call, room: padding(c), lacks: p.lacking(c)}
	elementwise := p.formatOfAll(c, t.lacks)
	if err := p.gate(&t, c); err != nil {
		return err
	}
	for j, h := range c.in {
		if j == 1 && t.kept != nil && forwardOf[c.call.Kernel] != nil { // nobody looks at y
			t.in = append(t.in, operand{value: -1})
			continue
		}
		want, ok := formatOf(form.in[j])
		if !ok {
			want = elementwise
			if form.in[j] == 'b' {
				want = p.biasFormat(h, c.out[0])
			}
		}
		room := t.room
		if c.call.Kernel == device.ConvGradW && j == 1 { // dy has the filters' channels
			room = 0
		}
		o, err := p.in(c.call, h, want, room)
		if err != nil {
			return fmt.Errorf("input %d: %w", j, err)
		}
		t.in = append(t.in, o)
	}
	scaled := p.readsScaled(c)
	var after []task
	if o, ok := p.filter(c, t.room); ok {
		t.out = []operand{o}
		p.tasks = append(p.tasks, t)
		return nil
	}
	for j, h := range c.out {
		if j == 0 && t.unmapped {
			t.out = append(t.out, operand{value: -1, element: p.element})
			continue
		}
		made, ok := formatOf(form.out[j])
		if !ok {
			made = elementwise
			if form.out[j] == 'o' {
				made = p.wantedOf(h)
			}
		}
		o, then, err := p.out(c.call, h, made)
		if err != nil {
			return fmt.Errorf("output %d: %w", j, err)
		}
		t.out = append(t.out, o)
		after = append(after, then...)
		if err := p.mark(h, scaled); err != nil {
			return fmt.Errorf("output %d: %w", j, err)
		}
	}
	p.tasks = append(append(p.tasks, t), after...)
	if p.scaling && c.call.Kernel == device.SoftmaxCrossEntropy {
		p.tasks = append(p.tasks, task{work: scaleLoss, call: c.call, out: t.out[1:]})
		return p.mark(c.out[1], true)
	}
	return nil
}

// gate tells a task what gates have found: what it keeps, or is kept for it, the summands of its
// gradient, and whom it is joined with.
func (p *planner) gate(t *task, c *traced) error {
	if k := p.kept[c]; k != nil {
		p.keep(k)
		t.kept = k
	}
	if sum := p.sums[c]; sum != nil {
		other, err := p.in(c.call, sum.in[1], half, 0)
		if err != nil {
			return err
		}
		c.in[2], t.other = sum.in[0], &other
	}
	switch j := p.joins[c]; {
	case j == nil:
	case j.added == c:
		p.keep(j.affine)
		t.kept, t.unmapped = j.affine, true
	default:
		mean, err := p.in(c.call, j.added.mean(), whole, 0)
		if err != nil {
			return err
		}
		c.in[len(c.in)-1], t.joined, t.mean = j.added.in[0], j.affine, &mean
	}
	return nil
}

// keep makes values of what is kept.
func (p *planner) keep(k *kept) {
	if k.operands != nil {
		return
	}
	f := whole
	if k.byMask {
		f = places
	}
	for _, n := range k.sizes(p.element) {
		k.operands = append(k.operands, p.operand(p.newValue(n, f)))
	}
}

// biasFormat is that of the bias of a dense layer.
func (p *planner) biasFormat(bias, out home) format {
	if p.epilogues && bias.ref.Space == device.Params {
		return p.wantedOf(out)
	}
	return whole
}

// padding is what a convolution has room for in each pixel: tensor cores want 4 channels at least,
// and pictures have 3. Only of pictures, and of parameters, is there a copy that can have room.
func padding(c *traced) int {
	switch c.call.Kernel {
	case device.Conv:
		if c.in[1].ref.Space != device.Params {
			return 0
		}
	case device.ConvGradW:
	default:
		return 0
	}
	if c.call.Dims[3] < 4 && c.in[0].ref.Space == device.Input {
		return 4
	}
	return 0
}

// formatOfAll is the format of what a call computes number by number.
func (p *planner) formatOfAll(c *traced, lacks []bool) format {
	if lacks != nil {
		return whole
	}
	for _, h := range append(append([]home{}, c.in...), c.out...) {
		if h.value < 0 {
			return whole
		}
	}
	for _, h := range c.in {
		if p.values[h.value].format != half {
			return whole
		}
	}
	return p.wantedOf(c.out[0])
}

// wantedOf is the format of an output that can be of either.
func (p *planner) wantedOf(h home) format {
	if h.value < 0 || p.values[h.value].result {
		return whole
	}
	for _, letter := range p.values[h.value].wanted {
		if letter == 'w' {
			return whole
		}
	}
	return half
}

// in is an input in the format that a call wants.
func (p *planner) in(c *device.Call, h home, want format, room int) (operand, error) {
	have := whole
	if h.value >= 0 {
		have = p.values[h.value].format
	}
	if have == want && h.value >= 0 {
		return p.operand(h.value), nil
	}
	if have == want {
		return operand{space: h.ref.Space, at: 4 * h.ref.Off, n: h.ref.Len, value: -1}, nil
	}
	if have == places || want == places {
		return operand{}, fmt.Errorf("%s holds no places of maxima, want those of a max-pool of the same code: load it with precision fp32", h.ref)
	}
	columns := h.ref.Len
	if room > 0 {
		columns = c.Dims[3]
	}
	return p.operand(p.copy(c, h, want, columns, max(room, columns))), nil
}

// copy is a value in another format, made where it is first wanted.
func (p *planner) copy(c *device.Call, h home, want format, columns, room int) int {
	key := copyOf{h, want, columns, room}
	if v, ok := p.copies[key]; ok {
		return v
	}
	v := p.newValue(h.ref.Len/columns*room, want)
	p.copies[key] = v
	if h.ref.Space == device.Params && h.value < 0 {
		p.shadows = append(p.shadows, shadow{h.ref, v, columns, room})
		return v
	}
	from := operand{space: h.ref.Space, at: 4 * h.ref.Off, n: h.ref.Len, value: -1}
	if h.value >= 0 {
		from = p.operand(h.value)
		p.values[v].scaled = p.values[h.value].scaled
	}
	w := narrow
	if want == whole {
		w = widen
	}
	p.tasks = append(p.tasks, task{work: w, call: c, in: []operand{from}, out: []operand{p.operand(v)},
		columns: columns, room: room})
	return v
}

func (p *planner) newValue(n int, f format) int {
	p.values = append(p.values, value{n: n, format: f, over: -1})
	return len(p.values) - 1
}

// operand is a value of the arena, whose place comes later.
func (p *planner) operand(v int) operand {
	o := operand{space: device.Arena, n: p.values[v].n, value: v}
	if p.values[v].format == half {
		o.element = p.element
	}
	return o
}

// out is where a call writes an output that it makes in a format. Where that must be float32 and is
// not, a value of its own comes first.
func (p *planner) out(c *device.Call, h home, made format) (o operand, after []task, err error) {
	if h.value >= 0 && (made == whole || !p.values[h.value].result) {
		v := &p.values[h.value]
		v.format = made
		if v.over >= 0 && p.values[v.over].format != made {
			v.over = -1 // it cannot take over memory of another size
		}
		return p.operand(h.value), nil, nil
	}
	p.forget(h.ref)
	to := operand{space: h.ref.Space, at: 4 * h.ref.Off, n: h.ref.Len, value: -1}
	if h.value >= 0 {
		p.values[h.value].over = -1
		to = p.operand(h.value)
	}
	switch made {
	case whole:
		return to, nil, nil
	case places:
		return o, nil, fmt.Errorf("the places of maxima go to %s, want a part of the arena that is no result: load it with precision fp32", h.ref)
	}
	o = p.operand(p.newValue(h.ref.Len, half))
	return o, []task{{work: widen, call: c, in: []operand{o}, out: []operand{to}, columns: h.ref.Len,
		room: h.ref.Len}}, nil
}

// forget drops copies of what is overwritten outside of the arena.
func (p *planner) forget(r device.Ref) {
	for k := range p.copies {
		if k.value < 0 && k.ref.Space == r.Space && overlapping(k.ref, r) {
			delete(p.copies, k)
		}
	}
}

func overlapping(a, b device.Ref) bool {
	return a.Space == b.Space && a.Off < b.Off+b.Len && b.Off < a.Off+a.Len
}
