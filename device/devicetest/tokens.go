package devicetest

import (
	"errors"
	"strings"

	"fspda/device"
)

// A network over windows of tokens: two dense layers of one feature, and the loss of each token.
const (
	tokenWindows, tokenLength, tokenHidden, vocabulary = 3, 4, 5, 7
	tokenRows                                          = tokenWindows * tokenLength
)

// tokenNetwork returns a multilayer perceptron that predicts each token from the one before it.
func tokenNetwork() *device.Code {
	const m, h, v = tokenRows, tokenHidden, vocabulary
	params := func(off, n int) device.Ref { return at(device.Params, off, n) }
	grads := func(off, n int) device.Ref { return at(device.Grads, off, n) }
	arena := func(off, n int) device.Ref { return at(device.Arena, off, n) }
	x, labels := at(device.Input, 0, m), at(device.Labels, 0, m)
	y, logits, loss, slope, back := arena(0, m*h), arena(m*h, m*v), arena(m*h+m*v, 1), arena(m*h+m*v+1, m*v),
		arena(m*h+2*m*v+1, m*h)
	return &device.Code{Name: "tokens", Batch: tokenWindows, Features: tokenLength, Labels: tokenLength, Gradient: true,
		Dim: 2*h + v*h + v, Arena: 2*m*h + 2*m*v + 1, Results: []device.Result{{Name: "loss", Ref: loss}},
		Calls: []device.Call{
			{Kernel: device.LinearSigmoid, In: []device.Ref{x, params(0, h), params(h, h)}, Out: []device.Ref{y},
				Dims: []int{m, h, 1}},
			{Kernel: device.Linear, In: []device.Ref{y, params(2*h, v*h), params(2*h+v*h, v)},
				Out: []device.Ref{logits}, Dims: []int{m, v, h}},
			{Kernel: device.SoftmaxCrossEntropy, In: []device.Ref{logits, labels}, Out: []device.Ref{loss, slope},
				Dims: []int{m, v}},
			{Kernel: device.LinearGradW, In: []device.Ref{y, slope}, Out: []device.Ref{grads(2*h, v*h),
				grads(2*h+v*h, v)}, Dims: []int{m, v, h}},
			{Kernel: device.LinearGradXSigmoid, In: []device.Ref{slope, params(2*h, v*h), y},
				Out: []device.Ref{back}, Dims: []int{m, v, h}},
			{Kernel: device.LinearGradW, In: []device.Ref{x, back}, Out: []device.Ref{grads(0, h), grads(h, h)},
				Dims: []int{m, h, 1}},
		}}
}

// tokenBatch returns windows that overlap, at the start, inside and at the end of a stream.
func tokenBatch() device.Batch {
	return device.Batch{Tokens: []uint16{0, 6, 5, 1, 1, 3, 2, 4, 0, 6}, At: []int64{5, 0, 3}, Length: tokenLength}
}

// checkTokens checks that windows of tokens give the bits of the same numbers, and that malformed
// windows are errors.
func checkTokens(f *field) {
	code := tokenNetwork()
	prog := f.load(code)
	params := f.vector(normal("tokens", code.Dim))
	run := func(b device.Batch) ([]float32, error) {
		grad, out := f.d.NewVector(code.Dim), make([]float64, 1)
		err := prog.Run(params, grad, b, out)
		return append(f.read(grad), float32(out[0])), err
	}
	of := tokenBatch()
	numbers := device.Batch{X: of.Numbers(nil, tokenLength), Y: make([]int32, tokenRows), Length: tokenLength}
	labels := make([]float32, of.Targets())
	of.Labels(labels)
	for i, y := range labels {
		numbers.Y[i] = int32(y)
	}
	want, err := run(numbers)
	f.must(err)
	got, err := run(of)
	f.must(err)
	equal(f, "gradient and loss of windows of tokens", got, widen(want))
	for what, change := range map[string]func(b *device.Batch){
		"begins at token -1":           func(b *device.Batch) { b.At = []int64{5, -1, 3} },
		"begins at token 6":            func(b *device.Batch) { b.At = []int64{5, 6, 3} },
		"batch of 2 examples, want 3":  func(b *device.Batch) { b.At = b.At[:2] },
		"3 labels an example, want 4":  func(b *device.Batch) { b.Length = 3 },
		"values in X":                  func(b *device.Batch) { b.X = numbers.X },
		"labels in Y":                  func(b *device.Batch) { b.Y = numbers.Y },
		"token 2 of window 1, at plac": func(b *device.Batch) { b.Tokens = []uint16{0, 6, 7, 1, 1, 3, 2, 4, 0, 6} },
		"1 labels an example, want 4":  func(b *device.Batch) { *b = device.Batch{X: numbers.X, Y: numbers.Y} },
	} {
		b := tokenBatch()
		change(&b)
		_, err := run(b)
		if err == nil || !strings.Contains(err.Error(), what) {
			f.Errorf("windows of tokens: error %v, want it to say %q", err, what)
		}
		if wrong := (*device.TokenError)(nil); errors.As(err, &wrong) &&
			(wrong.Token != vocabulary || wrong.Place != 2) {
			f.Errorf("the error names token %d at place %d, want %d at 2", wrong.Token, wrong.Place, vocabulary)
		}
	}
	got, err = run(of)
	f.must(err)
	equal(f, "windows of tokens after malformed ones", got, widen(want))
}
