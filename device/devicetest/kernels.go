package devicetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// checkKernel compares a kernel with its float64 definition at many shapes, with operands in
// different spaces. If every rounding is specified, the bits must match.
func checkKernel(f *field, k device.Kernel) {
	if lacks(f.d, k) {
		return
	}
	all := calls(k)
	if f.few {
		all = fewer(all)
	}
	for i, c := range all {
		in := kernelInputs(c)
		want, limit := evaluate(c, in)
		if _, ok := f.d.(convolver); ok && isConvolution(k) {
			transformed(limit)
		}
		exact := rounded(c, in)
		places := placements(c, in)
		if f.few {
			places = places[i%2:][:1]
		}
		for _, p := range places {
			got, what := p.run(f), fmt.Sprintf("%s %v, %s", k, c.Dims, p.name)
			within(f, what, got, want, limit)
			if exact != nil {
				equal(f, what, got[0], widen(exact))
			}
		}
	}
}

// fewer leaves out four of five small shapes where there are more than thirty.
func fewer(all []*device.Call) (some []*device.Call) {
	for i, c := range all {
		if len(all) <= 30 || i%5 == 0 || slices.Max(c.Dims) > slices.Max(widths) {
			some = append(some, c)
		}
	}
	return some
}

// lacks reports whether a device says that it does not have a kernel.
func lacks(d device.Device, k device.Kernel) bool {
	c := calls(k)[0]
	_, err := d.Load(fromParams(c, kernelInputs(c)).code)
	return errors.Is(err, device.ErrNoKernel)
}

// convolver is a device that chooses among the convolutions of a library.
type convolver interface {
	TryConvolution(c *device.Call, in [][]float32, out int, then func(route string, out []float32, err error)) error
}

func isConvolution(k device.Kernel) bool {
	return k == device.Conv || k == device.ConvGradX || k == device.ConvGradW
}

// transforms is the factor by which a transform and its inverse round more than a sum. Winograd's
// with tiles of 4×4 pixels has the largest of those in use.
const transforms = 8

// transformed widens the bounds of a convolution for libraries that transform its operands
// (Winograd, FFT): an error comes from the numbers of the whole tile, so that an element of few or
// small products may be as far off as the largest.
func transformed(limit [][]float64) {
	for i := range limit {
		most := slices.Max(limit[i])
		for j := range limit[i] {
			limit[i][j] = transforms * most
		}
	}
}

// evaluate returns the float64 results of a call, and their bounds.
func evaluate(c *device.Call, in [][]float32) (want, limit [][]float64) {
	wide := make([][]float64, len(in))
	for i := range in {
		wide[i] = widen(in[i])
	}
	_, sizes := shape(c)
	want = zeros(sizes)
	Interpret(c, wide, want)
	return want, bounds(c, wide, want)
}

func zeros(sizes []int) [][]float64 {
	all := make([][]float64, len(sizes))
	for i, n := range sizes {
		all[i] = make([]float64, n)
	}
	return all
}

// within reports the first element of each output that differs from want by more than limit.
func within(t testing.TB, what string, got [][]float32, want, limit [][]float64) {
	t.Helper()
	for i := range want {
		for j, w := range want[i] {
			if g := float64(got[i][j]); !(math.Abs(g-w) <= limit[i][j]) {
				t.Errorf("%s: output %d, element %d is %v, want %v within %.3g", what, i, j, g, w, limit[i][j])
				break
			}
		}
	}
}

// kernelInputs returns inputs for c: ordinary numbers, labels or activations.
func kernelInputs(c *device.Call) [][]float32 {
	sizes, _ := shape(c)
	in := make([][]float32, len(sizes))
	for i, n := range sizes {
		in[i] = normal(fmt.Sprint(c.Kernel, i, c.Dims), n)
	}
	s := rng.New(4, string(c.Kernel))
	uniform := func(float32) float32 { return s.Float32() }
	switch k := c.Kernel; k {
	case device.LinearSigmoid:
		replace(in[1], func(x float32) float32 { return x / float32(c.Dims[2]) })
	case device.LinearGradXSigmoid:
		replace(in[2], uniform)
	case device.LinearGradXReLU:
		replace(in[2], positive)
	case device.SoftmaxCrossEntropy, device.SoftmaxCrossEntropyMixed, device.Score:
		replace(in[1], func(float32) float32 { return float32(s.IntN(c.Dims[1])) })
		if k == device.SoftmaxCrossEntropyMixed {
			for i := 2; i < len(in[1]); i += 3 {
				in[1][i] = []float32{0, s.Float32(), s.Float32(), 1}[s.IntN(4)]
			}
		}
		replace(in[0], func(x float32) float32 { // ties, and rows with one dominant logit
			if s.IntN(3) == 0 {
				return float32(s.IntN(3))
			}
			return x
		})
	case device.SigmoidGrad:
		replace(in[0], uniform)
	case device.ReLUGrad:
		replace(in[0], positive)
	case device.MoveAverage:
		in[2][0] = s.Float32()
	case device.MaxPool, device.MaxPoolGrad:
		poolInputs(c, in)
	case device.Sigmoid: // large arguments of both signs
		replace(in[0], func(x float32) float32 { return x * []float32{1, 1, 10, 100}[s.IntN(4)] })
	default:
		if isNorm(k) {
			normInputs(c, in)
		} else if l := languageKernels[k]; l.inputs != nil {
			l.inputs(c, in)
		}
	}
	return in
}

func replace(v []float32, f func(x float32) float32) {
	for i, x := range v {
		v[i] = f(x)
	}
}

func positive(x float32) float32 { return max(x, 0) }

// placement is a call as Code, with the values of its operands.
type placement struct {
	name   string
	code   *device.Code
	params []float32
	batch  device.Batch
}

// takesLabels reports whether the second input of a kernel is the batch's labels.
func takesLabels(k device.Kernel) bool {
	return k == device.SoftmaxCrossEntropy || k == device.SoftmaxCrossEntropyMixed || k == device.Score
}

// placements returns code for a call with its operands in different spaces.
func placements(c *device.Call, in [][]float32) []placement {
	return []placement{fromParams(c, in), fromInput(c, in)}
}

// fromParams makes Code that reads its inputs from the parameters (labels from the labels) and
// writes its outputs to the gradient. Operands are separated by gaps of one to three words, so that
// no alignment is guaranteed.
func fromParams(c *device.Call, in [][]float32) placement {
	p := placement{name: "params to grads", code: &device.Code{Name: string(c.Kernel), Batch: 1, Features: 1,
		Gradient: true}}
	call := *c
	call.In, call.Out = nil, nil
	off := 1
	place := func(space device.Space, n int) device.Ref {
		r := device.Ref{Space: space, Off: off, Len: n}
		off += n + 1 + len(call.In)%3
		return r
	}
	for i, v := range in {
		if i == 1 && takesLabels(c.Kernel) {
			call.In = append(call.In, p.labels(v, c.Dims[0]))
			continue
		}
		r := place(device.Params, len(v))
		call.In = append(call.In, r)
		p.params = append(append(p.params, make([]float32, r.Off-len(p.params))...), v...)
	}
	_, sizes := shape(c)
	for _, n := range sizes {
		call.Out = append(call.Out, place(device.Grads, n))
	}
	p.params = append(p.params, make([]float32, off-len(p.params))...)
	p.code.Dim, p.code.Calls = off, []device.Call{call}
	p.fillBatch(nil)
	return p
}

// fromInput makes Code that reads its first input from the batch and writes its outputs to the
// arena. Each element of the outputs is a result.
func fromInput(c *device.Call, in [][]float32) placement {
	p := fromParams(c, in)
	p.name = "input to arena"
	p.code.Gradient = false
	call := &p.code.Calls[0]
	first := in[0]
	if takesLabels(c.Kernel) {
		p.code.Features = len(first) / p.code.Batch
	} else {
		p.code.Features = len(first)
	}
	call.In[0] = device.Ref{Space: device.Input, Len: len(first)}
	p.fillBatch(first)
	off := 3
	for i, r := range call.Out {
		call.Out[i] = device.Ref{Space: device.Arena, Off: off, Len: r.Len}
		for j := range r.Len {
			p.code.Results = append(p.code.Results, device.Result{Ref: device.Ref{Space: device.Arena, Off: off + j,
				Len: 1}})
		}
		off += r.Len + 1
	}
	p.code.Arena = off
	return p
}

// labels puts v into the batch and sets the batch size.
func (p *placement) labels(v []float32, rows int) device.Ref {
	p.code.Batch = rows
	p.code.Mixed = len(v) > rows
	each := len(v) / rows
	p.batch.Y = make([]int32, rows)
	for i := range p.batch.Y {
		row := v[i*each : (i+1)*each]
		p.batch.Y[i] = int32(row[0])
		if p.code.Mixed {
			p.batch.Mix = append(p.batch.Mix, device.Mix{Partner: int32(row[1]), Weight: row[2]})
		}
	}
	return device.Ref{Space: device.Labels, Len: len(v)}
}

// fillBatch sets the examples and completes the labels.
func (p *placement) fillBatch(x []float32) {
	if x == nil {
		x = make([]float32, p.code.Batch*p.code.Features)
	}
	p.batch.X = x
	if p.batch.Y == nil {
		p.batch.Y = make([]int32, p.code.Batch)
	}
}

// run executes the code twice on d and returns its outputs. It reports changes of the operands, of
// gradient words that no call writes, and differences between the two runs.
func (p *placement) run(f *field) [][]float32 {
	f.Helper()
	own := &field{TB: f.TB, d: f.d}
	prog := own.load(p.code)
	if prog.Code() != p.code {
		f.Errorf("Program.Code is not the loaded code")
	}
	params := own.vector(p.params)
	x := slices.Clone(p.batch.X)
	first := p.runOnce(own, prog, params)
	second := p.runOnce(own, prog, params)
	for i := range first {
		equal(f, fmt.Sprintf("%s %v, second run", p.code.Name, p.code.Calls[0].Dims), second[i], widen(first[i]))
	}
	equal(f, "params after Run", own.read(params), widen(p.params))
	equal(f, "the batch after Run", p.batch.X, widen(x))
	own.done()
	return first
}

func (p *placement) runOnce(f *field, prog device.Program, params device.Vector) [][]float32 {
	f.Helper()
	out := make([]float64, len(p.code.Results))
	var grad device.Vector
	if p.code.Gradient {
		grad = f.vector(slices.Repeat([]float32{guardWord}, p.code.Dim))
	}
	f.must(prog.Run(params, grad, p.batch, out))
	var got [][]float32
	for _, r := range p.code.Calls[0].Out {
		v := make([]float32, r.Len)
		got = append(got, v)
		if r.Space == device.Arena {
			for j := range v {
				v[j] = float32(out[j])
			}
			out = out[r.Len:]
		}
	}
	if grad == nil {
		return got
	}
	words := f.read(grad)
	for i, r := range p.code.Calls[0].Out {
		copy(got[i], words[r.Off:])
		for j := range r.Len {
			words[r.Off+j] = guardWord
		}
	}
	if i := slices.IndexFunc(words, func(w float32) bool { return w != guardWord }); i >= 0 {
		f.Errorf("%s %v: word %d of the gradient, which no call writes, is %v", p.code.Name, p.code.Calls[0].Dims, i,
			words[i])
	}
	return got
}
