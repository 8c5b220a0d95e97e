package compiler

import (
	"fmt"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/signature"
)

// plan is code as a Program of this precision runs it: calls, conversions between them, and where
// everything lies.
type Plan struct {
	Tasks   []Task
	Arena   int // bytes of intermediate values
	Results []device.Result
	Scaling bool // the loss is multiplied by a scale

	Examples *examples // nil: calls read the examples as they come
}

// examples is where the examples lie in 16 bits, if nothing reads them otherwise: rows of columns
// numbers, with room for more. Whoever has them as bytes can make these numbers of them, and the
// task that does it from float32 then finds that there is nothing to do.
type examples struct {
	Operand
	Columns, Padded int
}

// takesBytes says whether bytes that stand for numbers by so many scales become numbers of 16 bits
// at once.
func (p *Plan) ConvertsToHalf(channels int) bool {
	x := p.Examples
	return x != nil && (x.Padded == x.Columns || channels == 1 || channels == x.Columns)
}

// work is what a task does.
type Work int

const (
	Compute       Work = iota // the call
	CastToHalf                // out = in, rounded to 16 bits, with room for more columns
	CastToFloat32             // out = in, as float32
	CastParams                // the parameters that calls want in 16 bits
	ScaleLoss                 // out, where a backward pass begins, times the loss scale
	// the gradients of parameters in their final form: widened, divided by the scale, with their
	// decay
	FinishGradient
	UpdateBuffers   // buffers, by the statistics of the batch
	AddPenalties    // out = in + the decay of parameters
	ZeroIfNotFinite // out, the whole gradient, is 0 if it is not finite
	UpdateScale     // the scale of the next run
)

// task is something to send to the GPU.
type Task struct {
	Work    Work
	Call    *device.Call // what it does or serves; nil for what serves all
	In, Out []Operand
	Columns int // narrow: numbers of a row
	// what there is room for in a row; of a convolution, channels; 0: no more than there are
	Padded        int
	Mask          *ReLUMask           // of ReLU, where there is room for one
	LacksScale    []bool              // of a sum where only one summand has the loss scale: who lacks it
	Casts         []kernels.Segment   // narrowStretches
	Finishes      []kernels.GradPiece // endGradient: of what lies at in
	BufferUpdates []kernels.Move      // moveBuffers: by what lies at in
	Penalties     []kernels.Penalty   // addPenalties

	Saved  *saved   // of a normalisation and its gradient: what the one keeps for the other
	Addend *Operand // of such a gradient: the second summand of what it reads

	Deferred  bool     // of a normalisation: whoever adds its output maps it
	PairSaved *saved   // of who adds it: the map
	PairMean  *Operand // with joined
}

// all lists the operands, by whose places a task can be told when they are known.
func (t *Task) operandPtrs() []*Operand {
	var all []*Operand
	for _, list := range [][]Operand{t.In, t.Out} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	for _, k := range []*saved{t.Saved, t.PairSaved} {
		if k != nil {
			for i := range k.Operands {
				all = append(all, &k.Operands[i])
			}
		}
	}
	for _, o := range []*Operand{t.Addend, t.PairMean} {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (t *Task) Title() string {
	if t.Call != nil {
		return signature.Title(t.Call)
	}
	return [...]string{CastParams: "rounding the parameters", FinishGradient: "finishing the gradient",
		UpdateBuffers: "moving the buffers", AddPenalties: "adding the decay to the loss", ZeroIfNotFinite: "checking the gradient",
		UpdateScale: "moving the loss scale", CastToHalf: "rounding", CastToFloat32: "widening", ScaleLoss: "scaling the loss"}[t.Work]
}

// element is the type of the numbers of output 0.
func (t *Task) Element() kernels.Element { return t.Out[0].Element }

// operand is where numbers lie, and how.
type Operand struct {
	Space   device.Space
	Offset  int // in bytes
	Len     int
	Element kernels.Element // of those that are no places
	value   int             // of the arena, while its place is not known; -1: none
}

// bytes is what the operand takes.
func (o Operand) Bytes() int { return o.Len * o.Element.Size() }

// Options are the choices of [Compile].
type Options struct {
	Precision Precision
	Epilogues bool // cuBLASLt adds biases, applies ReLU and sums the gradients of biases
	NoFusion  bool // every call is a task of its own, for tests that compare results
}

// Compile plans code for a precision.
func Compile(code *device.Code, o Options) (*Plan, error) {
	if e := o.Precision.Element(); e != kernels.F32 {
		return planHalf(code, e, o.Precision == FP16, o.Epilogues, o.NoFusion)
	}
	return planFloat32(code, o.Epilogues, o.NoFusion), nil
}

// planShort plans code with activations of 16 bits. With scaling, the gradient of the loss is
// multiplied by a scale and what comes out is divided by it. With epilogues, biases are wanted in
// the format of what they are added to.
func planHalf(code *device.Code, element kernels.Element, scaling, epilogues, literal bool) (*Plan, error) {
	t, err := newTrace(code)
	if err != nil {
		return nil, err
	}
	p := &planner{trace: t, code: code, element: element, scaling: scaling && code.Gradient, epilogues: epilogues,
		casts: map[castKey]int{}, fusions: &fusions{}, multiTensor: &multiTensor{}}
	if !literal {
		p.fusions, p.multiTensor = findFusions(t, element), findMultiTensor(t, false)
	}
	p.tasks = []Task{{Work: CastParams}} // filled by what is wanted
	for i := range t.calls {
		if err := p.add(&t.calls[i]); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, signature.Title(t.calls[i].call), err)
		}
	}
	p.finishGradients()
	if epilogues {
		addMasks(p.tasks, t.reluPairs(), func(bytes int) Operand { return p.operand(p.newValue(bytes, positionFormat)) })
	}
	return p.allocate()
}

// planner makes tasks of traced calls.
type planner struct {
	*trace
	*fusions
	*multiTensor
	code         *device.Code
	element      kernels.Element
	scaling      bool
	epilogues    bool
	tasks        []Task
	casts        map[castKey]int // what there is in another format, as a value
	paramCasts   []paramCast
	scaledGrads  []device.Ref // places of the gradient that hold scaled numbers
	finishInputs []Operand    // what is to be finished of the gradient, and how
	finishes     []kernels.GradPiece
}

// copyOf is a home in another format.
type castKey struct {
	source
	format          format
	columns, padded int
}

// shadow is parameters in 16 bits.
type paramCast struct {
	ref             device.Ref
	value           int
	columns, padded int
}

// add makes the tasks of a call: its operands in the formats that it wants, itself, and its outputs
// where they belong.
func (p *planner) add(c *tracedCall) error {
	if p.removed[c] {
		return nil
	}
	if done, err := p.addMultiTensor(c); done || err != nil {
		return err
	}
	form := kernelFormats[c.call.Kernel]
	t := Task{Call: c.call, Padded: paddedChannels(c), LacksScale: p.lacksScale(c)}
	elementwise := p.elementwiseFormat(c, t.LacksScale)
	if err := p.applyFusions(&t, c); err != nil {
		return err
	}
	for j, s := range c.in {
		if j == 1 && t.Saved != nil && forwardKernels[c.call.Kernel] != nil { // nobody looks at y
			t.In = append(t.In, Operand{value: -1})
			continue
		}
		want, ok := formatOfLetter(form.in[j])
		if !ok {
			want = elementwise
			if form.in[j] == 'b' {
				want = p.biasFormat(s, c.out[0])
			}
		}
		room := t.Padded
		if c.call.Kernel == device.ConvGradW && j == 1 { // dy has the filters' channels
			room = 0
		}
		o, err := p.input(c.call, s, want, room)
		if err != nil {
			return fmt.Errorf("input %d: %w", j, err)
		}
		t.In = append(t.In, o)
	}
	scaled := p.readsScaled(c)
	var after []Task
	if o, ok := p.filterOutput(c, t.Padded); ok {
		t.Out = []Operand{o}
		p.tasks = append(p.tasks, t)
		return nil
	}
	for j, s := range c.out {
		if j == 0 && t.Deferred {
			t.Out = append(t.Out, Operand{value: -1, Element: p.element})
			continue
		}
		made, ok := formatOfLetter(form.out[j])
		if !ok {
			made = elementwise
			if form.out[j] == 'o' {
				made = p.outputFormat(s)
			}
		}
		o, then, err := p.output(c.call, s, made)
		if err != nil {
			return fmt.Errorf("output %d: %w", j, err)
		}
		t.Out = append(t.Out, o)
		after = append(after, then...)
		if err := p.markScaled(s, scaled); err != nil {
			return fmt.Errorf("output %d: %w", j, err)
		}
	}
	p.tasks = append(append(p.tasks, t), after...)
	if p.scaling && c.call.Kernel == device.SoftmaxCrossEntropy {
		p.tasks = append(p.tasks, Task{Work: ScaleLoss, Call: c.call, Out: t.Out[1:]})
		return p.markScaled(c.out[1], true)
	}
	return nil
}

// gate tells a task what gates have found: what it keeps, or is kept for it, the summands of its
// gradient, and whom it is joined with.
func (p *planner) applyFusions(t *Task, c *tracedCall) error {
	if k := p.saved[c]; k != nil {
		p.allocSaved(k)
		t.Saved = k
	}
	if sum := p.fusedSums[c]; sum != nil {
		other, err := p.input(c.call, sum.in[1], halfFormat, 0)
		if err != nil {
			return err
		}
		c.in[2], t.Addend = sum.in[0], &other
	}
	switch j := p.pairs[c]; {
	case j == nil:
	case j.added == c:
		p.allocSaved(j.saved)
		t.Saved, t.Deferred = j.saved, true
	default:
		mean, err := p.input(c.call, j.added.mean(), float32Format, 0)
		if err != nil {
			return err
		}
		c.in[len(c.in)-1], t.PairSaved, t.PairMean = j.added.in[0], j.saved, &mean
	}
	return nil
}

// keep makes values of what is kept.
func (p *planner) allocSaved(k *saved) {
	if k.Operands != nil {
		return
	}
	f := float32Format
	if k.ByMask {
		f = positionFormat
	}
	for _, n := range k.sizes(p.element) {
		k.Operands = append(k.Operands, p.operand(p.newValue(n, f)))
	}
}

// biasFormat is that of the bias of a dense layer.
func (p *planner) biasFormat(bias, out source) format {
	if p.epilogues && bias.ref.Space == device.Params {
		return p.outputFormat(out)
	}
	return float32Format
}

// padding is what a convolution has room for in each pixel: tensor cores want 4 channels at least,
// and pictures have 3. Only of pictures, and of parameters, is there a copy that can have room.
func paddedChannels(c *tracedCall) int {
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
func (p *planner) elementwiseFormat(c *tracedCall, lacks []bool) format {
	if lacks != nil {
		return float32Format
	}
	for _, s := range append(append([]source{}, c.in...), c.out...) {
		if s.value < 0 {
			return float32Format
		}
	}
	for _, s := range c.in {
		if p.values[s.value].format != halfFormat {
			return float32Format
		}
	}
	return p.outputFormat(c.out[0])
}

// wantedOf is the format of an output that can be of either.
func (p *planner) outputFormat(s source) format {
	if s.value < 0 || p.values[s.value].result {
		return float32Format
	}
	for _, letter := range p.values[s.value].wanted {
		if letter == 'w' {
			return float32Format
		}
	}
	return halfFormat
}

// in is an input in the format that a call wants.
func (p *planner) input(c *device.Call, s source, want format, room int) (Operand, error) {
	have := float32Format
	if s.value >= 0 {
		have = p.values[s.value].format
	}
	if have == want && s.value >= 0 {
		return p.operand(s.value), nil
	}
	if have == want {
		return Operand{Space: s.ref.Space, Offset: 4 * s.ref.Off, Len: s.ref.Len, value: -1}, nil
	}
	if have == positionFormat || want == positionFormat {
		return Operand{}, fmt.Errorf("%s holds no places of maxima, want those of a max-pool of the same code: load it with precision fp32", s.ref)
	}
	columns := s.ref.Len
	if room > 0 {
		columns = c.Dims[3]
	}
	return p.operand(p.cast(c, s, want, columns, max(room, columns))), nil
}

// copy is a value in another format, made where it is first wanted.
func (p *planner) cast(c *device.Call, s source, want format, columns, room int) int {
	key := castKey{s, want, columns, room}
	if v, ok := p.casts[key]; ok {
		return v
	}
	v := p.newValue(s.ref.Len/columns*room, want)
	p.casts[key] = v
	if s.ref.Space == device.Params && s.value < 0 {
		p.paramCasts = append(p.paramCasts, paramCast{s.ref, v, columns, room})
		return v
	}
	from := Operand{Space: s.ref.Space, Offset: 4 * s.ref.Off, Len: s.ref.Len, value: -1}
	if s.value >= 0 {
		from = p.operand(s.value)
		p.values[v].scaled = p.values[s.value].scaled
	}
	w := CastToHalf
	if want == float32Format {
		w = CastToFloat32
	}
	p.tasks = append(p.tasks, Task{Work: w, Call: c, In: []Operand{from}, Out: []Operand{p.operand(v)},
		Columns: columns, Padded: room})
	return v
}

func (p *planner) newValue(n int, f format) int {
	p.values = append(p.values, value{n: n, format: f, inPlaceOf: -1})
	return len(p.values) - 1
}

// operand is a value of the arena, whose place comes later.
func (p *planner) operand(v int) Operand {
	o := Operand{Space: device.Arena, Len: p.values[v].n, value: v}
	if p.values[v].format == halfFormat {
		o.Element = p.element
	}
	return o
}

// out is where a call writes an output that it makes in a format. Where that must be float32 and is
// not, a value of its own comes first.
func (p *planner) output(c *device.Call, s source, made format) (o Operand, after []Task, err error) {
	if s.value >= 0 && (made == float32Format || !p.values[s.value].result) {
		v := &p.values[s.value]
		v.format = made
		if v.inPlaceOf >= 0 && p.values[v.inPlaceOf].format != made {
			v.inPlaceOf = -1 // it cannot take over memory of another size
		}
		return p.operand(s.value), nil, nil
	}
	p.dropCasts(s.ref)
	to := Operand{Space: s.ref.Space, Offset: 4 * s.ref.Off, Len: s.ref.Len, value: -1}
	if s.value >= 0 {
		p.values[s.value].inPlaceOf = -1
		to = p.operand(s.value)
	}
	switch made {
	case float32Format:
		return to, nil, nil
	case positionFormat:
		return o, nil, fmt.Errorf("the places of maxima go to %s, want a part of the arena that is no result: load it with precision fp32", s.ref)
	}
	o = p.operand(p.newValue(s.ref.Len, halfFormat))
	return o, []Task{{Work: CastToFloat32, Call: c, In: []Operand{o}, Out: []Operand{to}, Columns: s.ref.Len,
		Padded: s.ref.Len}}, nil
}

// forget drops copies of what is overwritten outside of the arena.
func (p *planner) dropCasts(r device.Ref) {
	for k := range p.casts {
		if k.value < 0 && k.ref.Space == r.Space && overlaps(k.ref, r) {
			delete(p.casts, k)
		}
	}
}

func overlaps(a, b device.Ref) bool {
	return a.Space == b.Space && a.Off < b.Off+b.Len && b.Off < a.Off+a.Len
}
