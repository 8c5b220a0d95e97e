package devicetest

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"fspda/device"
)

var programChecks = []check{
	{"special values", checkSpecials},
	{"ties and NaN in score", checkScore},
	{"calls in place", checkInPlace},
	{"labels", checkLabels},
	{"batches", checkBatches},
	{"batches of bytes", checkBytes},
	{"windows of tokens", checkTokens},
	{"malformed code", checkMalformed},
	{"concurrent programs", checkPrograms},
	{"caller's bugs in Run", checkRunPanics},
	{"buffers", checkBuffers},
}

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// checkSpecials checks Inf, NaN and large arguments.
func checkSpecials(f *field) {
	for _, c := range []struct {
		kernel device.Kernel
		attr   float64
		in     [][]float32
		want   []float32
	}{
		{device.Sigmoid, 0, [][]float32{{-inf, -1e30, -200, 0, 200, 1e30, inf, nan}}, []float32{0, 0, 0, 0.5, 1, 1, 1,
			nan}},
		{device.SigmoidGrad, 0, [][]float32{{0, 1, 0.5, nan}, {inf, 3, inf, 1}}, []float32{nan, 0, inf, nan}},
		{device.ReLU, 0, [][]float32{specials}, []float32{0, 0, 1, 0, inf, 0, nan, specials[7], 0, specials[9],
			specials[10], specials[11], 0, math.MaxFloat32, 0, specials[15]}},
		{device.ReLUGrad, 0, [][]float32{{0, 1, nan, inf, specials[7]}, {nan, nan, 1, -inf, 2}},
			[]float32{0, nan, 0, -inf, 2}},
		{device.Scale, 2, [][]float32{{specials[7], specials[9], math.MaxFloat32, -inf, nan}},
			[]float32{2 * specials[7], 0x1.fffffcp-126, inf, -inf, nan}},
		{device.Scale, 0, [][]float32{{-1, inf}}, []float32{specials[1], nan}},
		{device.ScaleBy, 1e30, [][]float32{{0, 1, inf}, {1e30}}, []float32{nan, inf, inf}},
		{device.Add, 0, [][]float32{{inf, inf, specials[7], specials[1]}, {-inf, 1, specials[7], specials[1]}},
			[]float32{nan, inf, 2 * specials[7], specials[1]}},
		// a fused multiply-add would give 2^-24
		{device.AddScaled, 1 + 0x1p-12, [][]float32{{-1 - 0x1p-11}, {1 + 0x1p-12}}, []float32{0}},
	} {
		call := &device.Call{Kernel: c.kernel, Dims: []int{len(c.in[0])}, Attr: c.attr}
		for _, p := range placements(call, c.in) {
			got := p.run(f)
			equal(f, fmt.Sprintf("%s of special values, %s", c.kernel, p.name), got[0], widen(c.want))
		}
	}
	checkLossSpecials(f)
}

func checkLossSpecials(f *field) {
	for _, c := range []struct {
		logits []float32
		label  float32
		loss   float32
		grad   []float32
	}{
		{[]float32{nan, 0, 0}, 1, nan, []float32{nan, nan, nan}},
		{[]float32{0, 0, nan}, 1, nan, []float32{nan, nan, nan}},
		{[]float32{0, -inf, -inf}, 0, 0, []float32{0, 0, 0}},
		{[]float32{0, -inf, -inf}, 2, inf, []float32{1, 0, -1}},
		{[]float32{3e38, -3e38, 0}, 0, 0, []float32{0, 0, 0}},
		{[]float32{1000, 1000}, 1, float32(math.Ln2), []float32{0.5, -0.5}},
	} {
		call := &device.Call{Kernel: device.SoftmaxCrossEntropy, Dims: []int{1, len(c.logits)}}
		p := fromParams(call, [][]float32{c.logits, {c.label}})
		got := p.run(f)
		near := func(what string, got, want float32) {
			if !same(got, want) && !(math.Abs(float64(got-want)) <= 1e-6) {
				f.Errorf("%s of logits %v, label %v, is %v, want %v", what, c.logits, c.label, got, want)
			}
		}
		near("loss", got[0][0], c.loss)
		for j, g := range got[1] {
			near(fmt.Sprintf("element %d of the gradient", j), g, c.grad[j])
		}
	}
}

func checkScore(f *field) {
	row := func(v ...float32) []float32 { return v }
	for _, c := range []struct {
		logits      []float32
		label       int
		hits, hits5 float32
	}{
		{row(1, 1, 1, 1, 1, 1, 1), 0, 1, 1},
		{row(1, 1, 1, 1, 1, 1, 1), 1, 0, 1},
		{row(1, 1, 1, 1, 1, 1, 1), 4, 0, 1},
		{row(1, 1, 1, 1, 1, 1, 1), 5, 0, 0},
		{row(1, 2, 3, 4, 5, 6, 7), 6, 1, 1},
		{row(1, 2, 3, 4, 5, 6, 7), 2, 0, 1},
		{row(1, 2, 3, 4, 5, 6, 7), 1, 0, 0},
		{row(9, nan, 1, 1, 1, 1, 1), 0, 0, 0},
		{row(nan, 9, 1, 1, 1, 1, 1), 0, 0, 0},
		{row(9, 1, nan), 0, 0, 0},
		{row(9, -inf, -inf), 0, 1, 1},
		{row(9, 1, 1), 1, 0, 1},
		{row(0), 0, 1, 1},
	} {
		call := &device.Call{Kernel: device.Score, Dims: []int{1, len(c.logits)}}
		p := fromInput(call, [][]float32{c.logits, {float32(c.label)}})
		got := p.run(f)
		if got[0][1] != c.hits || got[0][2] != c.hits5 {
			f.Errorf("score of %v, label %d: %v hits and %v among five, want %v and %v", c.logits, c.label, got[0][1],
				got[0][2], c.hits, c.hits5)
		}
	}
}

// checkInPlace checks that Add and AddScaled may overwrite either input, and that calls run in
// order.
func checkInPlace(f *field) {
	const n = 37
	a, b := normal("a", n), normal("b", n)
	x, y, s, g := at(device.Params, 0, n), at(device.Params, n, n), at(device.Arena, 2, n), at(device.Grads, 0, n)
	code := &device.Code{Name: "in place", Batch: 1, Features: 1, Dim: 2 * n, Arena: n + 2, Gradient: true,
		Calls: []device.Call{
			{Kernel: device.Scale, In: []device.Ref{x}, Out: []device.Ref{s}, Dims: []int{n}, Attr: 2},
			{Kernel: device.Add, In: []device.Ref{s, y}, Out: []device.Ref{s}, Dims: []int{n}},
			{Kernel: device.Add, In: []device.Ref{x, s}, Out: []device.Ref{s}, Dims: []int{n}},
			{Kernel: device.AddScaled, In: []device.Ref{s, y}, Out: []device.Ref{s}, Dims: []int{n}, Attr: 0.5},
			{Kernel: device.AddScaled, In: []device.Ref{x, s}, Out: []device.Ref{s}, Dims: []int{n}, Attr: 0.1},
			{Kernel: device.Scale, In: []device.Ref{s}, Out: []device.Ref{g}, Dims: []int{n}, Attr: 1},
			{Kernel: device.Add, In: []device.Ref{g, g}, Out: []device.Ref{at(device.Grads, n, n)}, Dims: []int{n}},
		}}
	want := make([]float64, 2*n)
	for i := range a {
		v := a[i] * 2
		v += b[i]
		v = a[i] + v
		v += float32(0.5 * b[i])
		v = a[i] + float32(0.1*v)
		want[i], want[n+i] = float64(v), float64(v+v)
	}
	prog := f.load(code)
	params, grad := f.vector(append(a, b...)), f.vector(make([]float32, 2*n))
	f.must(prog.Run(params, grad, device.Batch{X: []float32{0}, Y: []int32{0}}, nil))
	equal(f, "calls in place", f.read(grad), want)
}

// lossCode returns a batch of m rows of n logits and its loss.
func lossCode(m, n int) placement {
	call := &device.Call{Kernel: device.SoftmaxCrossEntropy, Dims: []int{m, n}, Name: "loss"}
	return fromInput(call, kernelInputs(call))
}

// checkLabels checks that an invalid label is an error that names the row.
func checkLabels(f *field) {
	for _, label := range []int32{-1, 5, 6, math.MaxInt32, math.MinInt32} {
		p := lossCode(4, 5)
		prog := f.load(p.code)
		out := make([]float64, len(p.code.Results))
		params := f.d.NewVector(p.code.Dim)
		p.batch.Y[2] = label
		if err := prog.Run(params, nil, p.batch, out); err == nil {
			f.Errorf("label %d of 5 classes: no error", label)
		} else if text := err.Error(); !strings.Contains(text, "row 2") {
			f.Errorf("the error of label %d in row 2 does not name the row: %s", label, text)
		}
		p.batch.Y[2] = 4
		if err := prog.Run(params, nil, p.batch, out); err != nil {
			f.Errorf("a good batch after a malformed one: %v", err)
		}
	}
}

// checkBatches checks that a batch of the wrong size is an error.
func checkBatches(f *field) {
	p := lossCode(4, 5)
	prog := f.load(p.code)
	params, out := f.d.NewVector(p.code.Dim), make([]float64, len(p.code.Results))
	x, y := p.batch.X, p.batch.Y
	for what, b := range map[string]device.Batch{
		"no batch":           {},
		"three labels":       {X: x, Y: y[:3]},
		"three examples":     {X: x[:15], Y: y[:3]},
		"five examples":      {X: append(x[:20:20], x[:5]...), Y: append(y[:4:4], 0)},
		"one number short":   {X: x[:19], Y: y},
		"one number more":    {X: append(x[:20:20], 1), Y: y},
		"one byte short":     {Bytes: make([]uint8, 19), Scale: x[:1], Shift: x[:1], Y: y},
		"two forms":          {X: x, Bytes: make([]uint8, 20), Scale: x[:1], Shift: x[:1], Y: y},
		"row out of range":   {Bytes: make([]uint8, 20), Rows: []int32{0, 1, 4, 2}, Scale: x[:1], Shift: x[:1], Y: y},
		"no scale and shift": {Bytes: make([]uint8, 20), Y: y},
	} {
		if err := prog.Run(params, nil, b, out); err == nil {
			f.Errorf("%s for code of 4 examples of 5 features: no error", what)
		}
	}
	if err := prog.Run(params, nil, p.batch, out); err != nil {
		f.Errorf("a good batch after malformed ones: %v", err)
	}
}

// checkMalformed checks that Load rejects invalid code.
func checkMalformed(f *field) {
	for what, mutate := range map[string]func(*device.Code, *device.Call){
		"unknown kernel":            func(_ *device.Code, c *device.Call) { c.Kernel = "linear-ish" },
		"dimension missing":         func(_ *device.Code, c *device.Call) { c.Dims = c.Dims[:2] },
		"dimension too many":        func(_ *device.Code, c *device.Call) { c.Dims = append(c.Dims[:3:3], 1) },
		"dimension zero":            func(_ *device.Code, c *device.Call) { c.Dims = []int{0, 2, 3} },
		"input missing":             func(_ *device.Code, c *device.Call) { c.In = c.In[:2] },
		"output too many":           func(_ *device.Code, c *device.Call) { c.Out = append(c.Out[:1:1], c.Out[0]) },
		"input of the wrong length": func(_ *device.Code, c *device.Call) { c.In[2].Len++ },
		"input before its space":    func(_ *device.Code, c *device.Call) { c.In[0].Off = -1 },
		"input beyond its space":    func(k *device.Code, _ *device.Call) { k.Features-- },
		"output beyond its space":   func(k *device.Code, _ *device.Call) { k.Arena = 4 },
		"output to the parameters":  func(_ *device.Code, c *device.Call) { c.Out[0] = at(device.Params, 0, 2) },
		"output to the input":       func(_ *device.Code, c *device.Call) { c.Out[0] = at(device.Input, 0, 2) },
		"output over an input":      func(_ *device.Code, c *device.Call) { c.In[0] = at(device.Arena, 5, 3) },
		"buffer beyond its space":   func(_ *device.Code, c *device.Call) { c.In[2].Space = device.Buffers },
		"output to the momentum":    func(_ *device.Code, c *device.Call) { c.Out[0] = at(device.Momentum, 0, 2) },
		"unknown space":             func(_ *device.Code, c *device.Call) { c.In[0].Space = 17 },
		"gradient of none":          func(_ *device.Code, c *device.Call) { c.Out[0].Space = device.Grads },
		"no batch":                  func(k *device.Code, _ *device.Call) { k.Batch = 0 },
		"result outside the arena":  func(k *device.Code, _ *device.Call) { k.Results[0].Ref.Off = k.Arena },
		"result in the parameters":  func(k *device.Code, _ *device.Call) { k.Results[0].Ref.Space = device.Params },
	} {
		call := &device.Call{Kernel: device.Linear, Dims: []int{1, 2, 3}}
		p := fromInput(call, kernelInputs(call))
		if _, err := f.d.Load(p.code); err != nil {
			f.Errorf("valid code: %v", err)
		}
		mutate(p.code, &p.code.Calls[0])
		if _, err := f.d.Load(p.code); err == nil {
			f.Errorf("Load of code with %s: no error", what)
		} else if err.Error() == "" {
			f.Errorf("Load of code with %s: error without a message", what)
		}
	}
}

// checkPrograms loads one code several times and runs the programs concurrently.
func checkPrograms(f *field) {
	const workers = 6
	call := &device.Call{Kernel: device.LinearGradW, Dims: []int{33, 70, 65}}
	p := fromParams(call, kernelInputs(call))
	want := p.run(f)
	params := f.d.NewVector(p.code.Dim)
	f.d.Write(params, p.params)
	var wg sync.WaitGroup
	var got [workers][]float32
	for w := range workers {
		prog := f.load(p.code)
		wg.Go(func() {
			grad := f.d.NewVector(p.code.Dim)
			for range 3 {
				if err := prog.Run(params, grad, p.batch, nil); err != nil {
					f.Errorf("%v", err)
				}
			}
			got[w] = make([]float32, p.code.Dim)
			f.d.Read(got[w], grad)
		})
	}
	wg.Wait()
	for w := range workers {
		for i, r := range p.code.Calls[0].Out {
			equal(f, fmt.Sprintf("program %d concurrently and serially", w), got[w][r.Off:r.Off+r.Len], widen(want[i]))
		}
	}
}

func checkRunPanics(f *field) {
	call := &device.Call{Kernel: device.Scale, Dims: []int{4}, Attr: 1}
	p, q := fromParams(call, kernelInputs(call)), lossCode(1, 2)
	prog, loss := f.load(p.code), f.load(q.code)
	n, v := p.code.Dim, f.d.NewVector
	for what, run := range map[string]func(){
		"short parameters":   func() { _ = prog.Run(v(n-1), v(n), p.batch, nil) },
		"long gradient":      func() { _ = prog.Run(v(n), v(n+1), p.batch, nil) },
		"no gradient":        func() { _ = prog.Run(v(n), nil, p.batch, nil) },
		"foreign parameters": func() { _ = prog.Run(foreign{}, v(n), p.batch, nil) },
		"out too short":      func() { _ = loss.Run(v(q.code.Dim), nil, q.batch, nil) },
	} {
		panics(f, "Run with "+what, run)
	}
}
