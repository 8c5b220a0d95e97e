package compiler

import (
	"fmt"
	"slices"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/signature"
)

// Plan is code as a Program of one precision runs it.
type Plan struct {
	Tasks   []Task
	Arena   int // its size in bytes
	Results []device.Result
	Scaling bool // the loss is multiplied by a loss scale

	Examples *Examples // nil: calls read the examples in float32
}

// Examples is where the examples lie in 16 bits, if nothing reads them otherwise, as rows of
// Columns numbers padded to Padded. A caller that has the examples as bytes may write these numbers
// instead of float32; the task that casts them then has nothing to do.
type Examples struct {
	Operand
	Columns, Padded int
}

// ConvertsToHalf reports whether examples that are bytes, with a scale for each channel, can be
// written to Examples.
func (p *Plan) ConvertsToHalf(channels int) bool {
	x := p.Examples
	return x != nil && (x.Padded == x.Columns || channels == 1 || channels == x.Columns)
}

// Work is the kind of a task.
type Work int

const (
	Compute         Work = iota // Call is computed
	CastToHalf                  // Out = In, rounded to 16 bits, with padded columns
	CastToFloat32               // Out = In, in float32
	CastParams                  // parameters are copied and rounded to 16 bits
	ScaleLoss                   // Out, the gradient of the logits, is multiplied by the loss scale
	FinishGradient              // gradients of parameters become float32, unscaled, and get their decay
	UpdateBuffers               // buffers move by the statistics of the batch
	AddPenalties                // Out = In + weight penalties
	ZeroIfNotFinite             // Out, the whole gradient, becomes 0 if a number of it is not finite
	UpdateScale                 // the loss scale of the next run is computed
)

// Task is a piece of work for the GPU.
type Task struct {
	Work    Work
	Call    *device.Call // the call that it computes, or whose operand it casts; nil for other kinds
	In, Out []Operand
	Columns int // CastToHalf only: the numbers of a row
	// Padded is the length of a row after a CastToHalf, or the channels of a convolution, with
	// padding. 0 means that there is no padding.
	Padded int
	// Mask is nil unless the task is a dense layer with ReLU, or the gradient of one.
	Mask *ReLUMask
	// Vocabulary is set for the loss of a large vocabulary and for the products that make or read
	// its logits: the padded length of a row of logits. 0 means that logits are float32 and not
	// padded.
	Vocabulary int
	LossForm
	// LacksScale is set for a sum of which only one summand has the loss scale. It is true for the
	// summand without it.
	LacksScale    []bool
	Casts         []kernels.Segment   // CastParams only: the parameters to copy
	Finishes      []kernels.GradPiece // FinishGradient only: one piece for each operand In
	BufferUpdates []kernels.Move      // UpdateBuffers only: one for each operand In
	Penalties     []kernels.Penalty   // AddPenalties only: the penalties to add

	// Saved is shared by a normalisation, which writes it, and its gradient, which reads it.
	Saved *Saved
	RowNormOutputs
	// Addend is set for the gradient of a normalisation that computes a fused sum: In[2] + Addend
	// is the gradient that it reads.
	Addend *Operand

	// Deferred says that this normalisation stores mean, scale and shift only. The task whose
	// PairSaved is this task's Saved applies them: a normalisation that adds the result, or a
	// max-pool.
	Deferred  bool
	PairSaved *Saved   // scale and shift of the deferred normalisation that this task applies
	PairMean  *Operand // its mean
}

// LossForm is what a loss computes besides.
type LossForm struct {
	ScalesLoss bool        // its gradient is multiplied by the loss scale
	Pieces     *LossPieces // nil: the products around it are tasks of their own
}

// RowNormOutputs is what the gradient of a layer norm writes besides; nil is left out.
type RowNormOutputs struct {
	Rounded *Operand // output 0, rounded to 16 bits
	Sums    *Operand // the sums of the columns of output 0: the gradient of the bias of the layer before
}

// operandPtrs returns all operands, to set their offsets when values are allocated.
func (t *Task) operandPtrs() []*Operand {
	var all []*Operand
	for _, list := range [][]Operand{t.In, t.Out} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	for _, k := range []*Saved{t.Saved, t.PairSaved} {
		if k != nil {
			for i := range k.Operands {
				all = append(all, &k.Operands[i])
			}
		}
	}
	for _, o := range []*Operand{t.Addend, t.PairMean, t.Rounded, t.Sums} {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// Title names the task in errors.
func (t *Task) Title() string {
	if t.Call != nil {
		return signature.Title(t.Call)
	}
	return [...]string{CastParams: "rounding the parameters", FinishGradient: "finishing the gradient",
		UpdateBuffers: "moving the buffers", AddPenalties: "adding the decay to the loss",
		ZeroIfNotFinite: "checking the gradient", UpdateScale: "moving the loss scale", CastToHalf: "rounding",
		CastToFloat32: "widening", ScaleLoss: "scaling the loss"}[t.Work]
}

func (t *Task) Element() kernels.Element { return t.Out[0].Element }

// Operand is numbers in a space of the run.
type Operand struct {
	Space   device.Space
	Offset  int // bytes from the start of the space
	Len     int
	Element kernels.Element // the number type, unless the operand is positions of maxima or a mask
	value   int             // the index of a value of the arena; -1 for operands outside of it
}

func (o Operand) Bytes() int { return o.Len * o.Element.Size() }

// Options are the settings of [Compile].
type Options struct {
	Precision Precision
	Epilogues bool // cuBLASLt adds biases, applies ReLU and sums the gradients of biases
	NoFusion  bool // every call is a task of its own, for tests that compare results
	LossPiece int  // the most bytes of the logits of a piece; 0: 2 GiB
}

// Compile plans code for a precision. The error names a call that 16-bit precisions do not support.
func Compile(code *device.Code, o Options) (*Plan, error) {
	t, err := newTrace(code)
	if err != nil {
		if o.Precision.Element() == kernels.F32 {
			return planAsWritten(code), nil
		}
		return nil, fmt.Errorf("%w: load it with precision fp32", err)
	}
	p := &planner{trace: t, code: code, element: o.Precision.Element(), scaling: o.Precision == FP16 && code.Gradient,
		epilogues: o.Epilogues, lossPiece: o.LossPiece, casts: map[castKey]int{}, fusions: &fusions{},
		multiTensor: &multiTensor{}}
	if !o.NoFusion {
		p.fusions, p.multiTensor = findFusions(t, p.element), findMultiTensor(t)
	}
	return p.plan()
}

// planAsWritten plans float32 code whose values cannot be traced: its calls and addresses stay.
func planAsWritten(code *device.Code) *Plan {
	p := &Plan{Arena: 4 * code.Arena, Results: code.Results}
	operands := func(refs []device.Ref) []Operand {
		all := make([]Operand, len(refs))
		for i, r := range refs {
			all[i] = vectorOperand(r)
		}
		return all
	}
	for i := range code.Calls {
		c := &code.Calls[i]
		p.Tasks = append(p.Tasks, Task{Call: c, In: operands(c.In), Out: operands(c.Out)})
	}
	return p
}

// vectorOperand returns float32 numbers at an address that is given.
func vectorOperand(r device.Ref) Operand {
	return Operand{Space: r.Space, Offset: 4 * r.Off, Len: r.Len, value: -1}
}

// plan makes the tasks of all calls and allocates their operands.
func (p *planner) plan() (*Plan, error) {
	p.wide = p.findWide()
	p.tasks = []Task{{Work: CastParams}} // allocate fills in the segments
	for i, c := range p.calls {
		if err := p.add(c); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, signature.Title(c.call), err)
		}
	}
	p.finishGradients()
	p.splitLosses()
	p.roundInNorms()
	if p.epilogues {
		addMasks(p.tasks, p.reluPairs(),
			func(bytes int) Operand { return p.operand(p.newValue(bytes, positionFormat)) })
	}
	return p.allocate(), nil
}

// planner makes the tasks of traced calls.
type planner struct {
	*trace
	*fusions
	*multiTensor
	code         *device.Code
	element      kernels.Element
	scaling      bool
	epilogues    bool
	lossPiece    int
	tasks        []Task
	casts        map[castKey]int // values in another format
	paramCasts   []paramCast
	wide         map[*tracedCall]int // calls on the logits of a large vocabulary, see findWide
	scaledGrads  []device.Ref        // parts of the gradient that have the loss scale
	finishInputs []Operand           // parts of the gradient to finish, and how
	finishes     []kernels.GradPiece
}

// castKey is a source in another format.
type castKey struct {
	source
	format          format
	columns, padded int
}

// paramCast is a 16-bit copy of parameters.
type paramCast struct {
	ref             device.Ref
	value           int
	columns, padded int
}

// add makes the tasks of a call: casts of its inputs, the call, and casts of its outputs.
func (p *planner) add(c *tracedCall) error {
	if p.removed[c] {
		return nil
	}
	if done, err := p.addMultiTensor(c); done || err != nil {
		return err
	}
	t := Task{Call: c.call, Padded: p.paddedChannels(c), Vocabulary: p.wide[c], LacksScale: p.lacksScale(c)}
	elementwise := p.elementwiseFormat(c, t.LacksScale)
	if err := p.applyFusions(&t, c); err != nil {
		return err
	}
	if err := p.addInputs(&t, c, elementwise); err != nil {
		return err
	}
	if o, ok := p.filterOutput(c, t.Padded); ok {
		t.Out = []Operand{o}
		p.tasks = append(p.tasks, t)
		return nil
	}
	after, err := p.addOutputs(&t, c, elementwise)
	if err != nil {
		return err
	}
	t.ScalesLoss = p.scaling && t.Vocabulary > 0 && c.call.Kernel == device.SoftmaxCrossEntropy
	p.tasks = append(append(p.tasks, t), after...)
	if t.ScalesLoss {
		return p.markScaled(c.out[1], true)
	}
	if p.scaling && isLoss(c.call.Kernel) {
		p.tasks = append(p.tasks, Task{Work: ScaleLoss, Call: c.call, Out: t.Out[1:]})
		return p.markScaled(c.out[1], true)
	}
	return nil
}

// isLoss reports whether the gradients of a network begin at a kernel.
func isLoss(k device.Kernel) bool {
	return k == device.SoftmaxCrossEntropy || k == device.SoftmaxCrossEntropyMixed
}

func (p *planner) addInputs(t *Task, c *tracedCall, elementwise format) error {
	letters := kernelFormats[c.call.Kernel].in
	for j, s := range c.in {
		// the gradient does not read y
		if j == 1 && t.Saved != nil && forwardKernels[c.call.Kernel] != nil {
			t.In = append(t.In, Operand{value: -1})
			continue
		}
		if t.Vocabulary > 0 && isParameter(s) {
			t.In = append(t.In, p.wideWeights(c, s))
			continue
		}
		want, ok := p.formatOf(letters[j])
		if !ok {
			want = elementwise
			if letters[j] == 'b' {
				want = p.biasFormat(s, c.out[0])
			}
		}
		if t.Vocabulary > 0 && c.call.Kernel == device.SoftmaxCrossEntropy && j == 0 {
			want = halfFormat
		}
		padded := t.Padded
		if c.call.Kernel == device.ConvGradW && j == 1 { // dy has the channels of the output
			padded = 0
		}
		o, err := p.input(c.call, s, want, padded)
		if err != nil {
			return fmt.Errorf("input %d: %w", j, err)
		}
		t.In = append(t.In, o)
	}
	return nil
}

func (p *planner) addOutputs(t *Task, c *tracedCall, elementwise format) (after []Task, err error) {
	letters, scaled := kernelFormats[c.call.Kernel].out, p.readsScaled(c)
	for j, s := range c.out {
		if j == 0 && t.Deferred {
			t.Out = append(t.Out, Operand{value: -1, Element: p.element})
			continue
		}
		made, ok := p.formatOf(letters[j])
		if !ok {
			made = elementwise
			if letters[j] == 'o' {
				made = p.outputFormat(s)
			}
		}
		if p.isWideOutput(c, j) && c.call.Kernel != device.ProductGradW {
			made = halfFormat
		}
		o, then, err := p.output(c.call, s, made)
		if err != nil {
			return nil, fmt.Errorf("output %d: %w", j, err)
		}
		t.Out = append(t.Out, o)
		after = append(after, then...)
		if err := p.markScaled(s, scaled); err != nil {
			return nil, fmt.Errorf("output %d: %w", j, err)
		}
	}
	return after, nil
}

// applyFusions sets the fused operands of a task: Saved, the summands of the gradient that it
// reads, and the operands of its pair.
func (p *planner) applyFusions(t *Task, c *tracedCall) error {
	if k := p.saved[c]; k != nil {
		p.allocSaved(k)
		t.Saved = k
	}
	if sum := p.fusedSums[c]; sum != nil {
		other, err := p.input(c.call, sum.in[1], p.activations(), 0)
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

// allocSaved makes the values of a Saved.
func (p *planner) allocSaved(k *Saved) {
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

// biasFormat returns the format of a dense layer's bias.
func (p *planner) biasFormat(bias, out source) format {
	if p.epilogues && bias.ref.Space == device.Params {
		return p.outputFormat(out)
	}
	return float32Format
}

// paddedChannels returns the padded channels of a convolution, 0 for none: tensor cores want at
// least 4 channels, and images have 3. Only images and parameters are copied, so only they are
// padded.
func (p *planner) paddedChannels(c *tracedCall) int {
	k := c.call.Kernel
	pads := k == device.ConvGradW || k == device.Conv && c.in[1].ref.Space == device.Params
	if p.element != kernels.F32 && pads && c.call.Dims[3] < 4 && c.in[0].ref.Space == device.Input {
		return 4
	}
	return 0
}

func (p *planner) elementwiseFormat(c *tracedCall, lacks []bool) format {
	if lacks != nil {
		return float32Format
	}
	outside := func(s source) bool { return s.value < 0 }
	isFloat32 := func(s source) bool { return p.values[s.value].format != halfFormat }
	if slices.ContainsFunc(slices.Concat(c.in, c.out), outside) || slices.ContainsFunc(c.in, isFloat32) {
		return float32Format
	}
	return p.outputFormat(c.out[0])
}

func (p *planner) outputFormat(s source) format {
	if s.value < 0 || p.values[s.value].result || slices.Contains(p.values[s.value].wanted, 'w') {
		return float32Format
	}
	return halfFormat
}

// input returns an input in the format that a call reads.
func (p *planner) input(c *device.Call, s source, want format, padded int) (Operand, error) {
	have := float32Format
	if s.value >= 0 {
		have = p.values[s.value].format
	}
	if have == want && s.value >= 0 {
		return p.operand(s.value), nil
	}
	if have == want {
		return vectorOperand(s.ref), nil
	}
	if have == positionFormat || want == positionFormat {
		return Operand{}, fmt.Errorf("%s holds no positions of maxima, want those of a max-pool of the same code: "+
			"load it with precision fp32", s.ref)
	}
	columns := s.ref.Len
	if padded > 0 {
		columns = c.Dims[3]
	}
	return p.operand(p.cast(c, s, want, columns, max(padded, columns))), nil
}

// cast returns a value in another format, which is made where it is first wanted.
func (p *planner) cast(c *device.Call, s source, want format, columns, padded int) int {
	key := castKey{s, want, columns, padded}
	if v, ok := p.casts[key]; ok {
		return v
	}
	v := p.newValue(s.ref.Len/columns*padded, want)
	p.casts[key] = v
	if s.ref.Space == device.Params && s.value < 0 {
		p.paramCasts = append(p.paramCasts, paramCast{s.ref, v, columns, padded})
		return v
	}
	from := vectorOperand(s.ref)
	if s.value >= 0 {
		from = p.operand(s.value)
		p.values[v].scaled = p.values[s.value].scaled
	}
	w := CastToHalf
	if want == float32Format {
		w = CastToFloat32
	}
	p.tasks = append(p.tasks, Task{Work: w, Call: c, In: []Operand{from}, Out: []Operand{p.operand(v)},
		Columns: columns, Padded: padded})
	return v
}

func (p *planner) newValue(n int, f format) int {
	p.values = append(p.values, value{n: n, format: f, inPlaceOf: -1})
	return len(p.values) - 1
}

// operand returns a value of the arena, whose offset is set by allocate.
func (p *planner) operand(v int) Operand {
	o := Operand{Space: device.Arena, Len: p.values[v].n, value: v}
	if p.values[v].format == halfFormat {
		o.Element = p.element
	}
	return o
}

// output returns where a call writes an output that it makes in a format. Where the output must be
// float32 and the call makes 16 bits, it writes a value of its own, and the task after casts it.
func (p *planner) output(c *device.Call, s source, made format) (o Operand, after []Task, err error) {
	if s.value >= 0 && (made == float32Format || !p.values[s.value].result) {
		v := &p.values[s.value]
		v.format = made
		if v.inPlaceOf >= 0 && p.values[v.inPlaceOf].format != made {
			v.inPlaceOf = -1 // its size is another
		}
		return p.operand(s.value), nil, nil
	}
	p.dropCasts(s.ref)
	to := vectorOperand(s.ref)
	if s.value >= 0 {
		p.values[s.value].inPlaceOf = -1
		to = p.operand(s.value)
	}
	switch made {
	case float32Format:
		return to, nil, nil
	case positionFormat:
		return o, nil, fmt.Errorf("the positions of maxima go to %s, want a part of the arena that is no result: "+
			"load it with precision fp32", s.ref)
	}
	o = p.operand(p.newValue(s.ref.Len, halfFormat))
	return o, []Task{{Work: CastToFloat32, Call: c, In: []Operand{o}, Out: []Operand{to}, Columns: s.ref.Len,
		Padded: s.ref.Len}}, nil
}

// dropCasts drops the casts of memory outside of the arena that is overwritten.
func (p *planner) dropCasts(r device.Ref) {
	for k := range p.casts {
		if k.value < 0 && k.ref.Overlaps(r) {
			delete(p.casts, k)
		}
	}
}
