package cpu

import (
	"errors"
	"math"
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// layer is a linear model of k features and n classes at batch m: fully connected layer, loss,
// gradient of the weights, and score.
func layer(m, n, k int) *device.Code {
	at := func(s device.Space, off, n int) device.Ref { return device.Ref{Space: s, Off: off, Len: n} }
	x, labels := at(device.Input, 0, m*k), at(device.Labels, 0, m)
	w, b := at(device.Params, 0, n*k), at(device.Params, n*k, n)
	logits, dlogits, loss, sums := at(device.Arena, 0, m*n), at(device.Arena, m*n, m*n), at(device.Arena, 2*m*n,
		1), at(device.Arena, 2*m*n+1, 3)
	dims := []int{m, n, k}
	return &device.Code{
		Name: "layer", Batch: m, Features: k, Dim: n*k + n, Arena: 2*m*n + 4, Gradient: true, FLOPs: 4 * float64(m*n*k),
		Calls: []device.Call{
			{Kernel: device.Linear, In: []device.Ref{x, w, b}, Out: []device.Ref{logits}, Dims: dims, Name: "fc"},
			{Kernel: device.SoftmaxCrossEntropy, In: []device.Ref{logits, labels}, Out: []device.Ref{loss, dlogits},
				Dims: []int{m, n}, Name: "loss"},
			{Kernel: device.LinearGradW, In: []device.Ref{x, dlogits}, Dims: dims, Name: "fc",
				Out: []device.Ref{at(device.Grads, 0, n*k), at(device.Grads, n*k, n)}},
			{Kernel: device.Score, In: []device.Ref{logits, labels}, Out: []device.Ref{sums}, Dims: []int{m, n},
				Name: "score"},
		},
		Results: []device.Result{{Name: "loss", Ref: loss}, {Name: "hits", Ref: at(device.Arena, 2*m*n+2, 1)}},
	}
}

// loaded returns a layer ready to run.
func loaded(t testing.TB, m, n, k int) (p *Program, params, grad *Vector, b device.Batch) {
	t.Helper()
	prog, err := New().Load(layer(m, n, k))
	if err != nil {
		t.Fatal(err)
	}
	b = device.Batch{X: kerneltest.Noise("x", m*k), Y: make([]int32, m)}
	for i := range b.Y {
		b.Y[i] = int32(i % n)
	}
	return prog.(*Program), &Vector{Data: kerneltest.Noise("params", n*k+n)}, &Vector{Data: make([]float32, n*k+n)}, b
}

// The gradient of a whole program agrees with central differences of its loss.
func TestProgramGradient(t *testing.T) {
	p, x, grad, b := loaded(t, 6, 4, 5)
	out := make([]float64, 2)
	if err := p.Run(x, grad, b, out); err != nil {
		t.Fatal(err)
	}
	want := append([]float32{}, grad.Data...)
	for i := range x.Data {
		const h = 1.0 / 64
		old, sum := x.Data[i], 0.0
		for _, sign := range []float32{1, -1} {
			x.Data[i] = old + sign*h
			if err := p.Run(x, grad, b, out); err != nil {
				t.Fatal(err)
			}
			sum += float64(sign) * out[0]
		}
		x.Data[i] = old
		if got := sum / (2 * h); math.Abs(got-float64(want[i])) > 1e-4 { // bounds: h²/6 and 2^-24/h
			t.Errorf("parameter %d: gradient %v, by differences %v", i, want[i], got)
		}
	}
}

// Gradient descent on the program brings the loss to zero and classifies every example.
func TestProgramLearns(t *testing.T) {
	const m, n, k = 8, 3, 20
	p, x, grad, b := loaded(t, m, n, k)
	d, out := New(), make([]float64, 2)
	for range 300 {
		if err := p.Run(x, grad, b, out); err != nil {
			t.Fatal(err)
		}
		d.Do(device.Combine(x, device.Term{A: 1, V: x}, device.Term{A: -1, V: grad}))
	}
	if out[0] > 0.05 || out[1] != m {
		t.Errorf("loss %v and %v hits of %d after 300 steps", out[0], out[1], m)
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	p, x, grad, b := loaded(t, 70, 10, 33)
	out := make([]float64, 2)
	if n := testing.AllocsPerRun(5, func() {
		if err := p.Run(x, grad, b, out); err != nil {
			t.Fatal(err)
		}
	}); n != 0 && !kerneltest.Race {
		t.Errorf("Run allocates %v times", n)
	}
}

// Run may be given other vectors and batches each time.
func TestRunMoves(t *testing.T) {
	p, x, grad, b := loaded(t, 4, 3, 5)
	out, again := make([]float64, 2), make([]float64, 2)
	if err := p.Run(x, grad, b, out); err != nil {
		t.Fatal(err)
	}
	other := &Vector{Data: make([]float32, len(x.Data))}
	if err := p.Run(other, &Vector{Data: make([]float32, len(x.Data))}, b, again); err != nil {
		t.Fatal(err)
	}
	if want := float64(float32(math.Log(3))); math.Abs(again[0]-want) > 1e-6 {
		t.Errorf("loss at zero is %v, want log 3 = %v", again[0], want)
	}
	copied := device.Batch{X: append([]float32{}, b.X...), Y: append([]int32{}, b.Y...)}
	if err := p.Run(&Vector{Data: append([]float32{}, x.Data...)}, grad, copied, again); err != nil {
		t.Fatal(err)
	}
	if again[0] != out[0] {
		t.Errorf("loss %v in other memory, %v before", again[0], out[0])
	}
}

func TestTimed(t *testing.T) {
	p, x, grad, b := loaded(t, 64, 10, 200)
	out, want := make([]float64, 2), make([]float64, 2)
	if err := p.Run(x, grad, b, want); err != nil {
		t.Fatal(err)
	}
	times, err := p.Timed(x, grad, b, out)
	if err != nil || len(times) != len(p.Code().Calls) || out[0] != want[0] || out[1] != want[1] {
		t.Fatalf("times %v, results %v, want %v, error %v", times, out, want, err)
	}
	total := times[0]
	for _, d := range times[1:] {
		if d < 0 {
			t.Errorf("a call took %v", d)
		}
		total += d
	}
	if total <= 0 {
		t.Errorf("all calls took %v", total)
	}
	b.Y[3] = 10
	if _, err := p.Timed(x, grad, b, out); err == nil {
		t.Error("label 10 of 10 classes is accepted")
	}
}

// A label that is not a class is found before anything is written.
func TestRunRefusesLabels(t *testing.T) {
	p, x, grad, b := loaded(t, 5, 3, 2)
	out := []float64{-7, -7}
	b.Y[2] = 1<<24 + 1 // not a float32
	err := p.Run(x, grad, b, out)
	if bad, ok := errors.AsType[*LabelError](err); !ok || bad.Row != 2 || bad.Value != 1<<24+1 || bad.Classes != 3 {
		t.Fatalf("error %v", err)
	}
	if want := "cpu: run layer: label of row 2 is 1.6777217e+07, want an integer from 0 to 2"; !strings.HasPrefix(
		err.Error(), want) {
		t.Errorf("error %q, want %q", err, want)
	}
	if out[0] != -7 || grad.Data[0] != 0 {
		t.Errorf("results %v and gradient %v were written", out, grad.Data)
	}
}

// Labels that do not come from the batch are checked by the kernel, and the error names the call.
func TestRunNamesTheCall(t *testing.T) {
	code := layer(2, 3, 4)
	code.Calls[3].In[1] = device.Ref{Space: device.Params, Off: 0, Len: 2}
	prog, err := New().Load(code)
	if err != nil {
		t.Fatal(err)
	}
	p, params := prog.(*Program), &Vector{Data: kerneltest.Noise("params", code.Dim)}
	b, out := device.Batch{X: make([]float32, 8), Y: make([]int32, 2)}, make([]float64, 2)
	err = p.Run(params, New().NewVector(code.Dim), b, out)
	if want := "cpu: run layer: call 3, score (score): label of row 0 is"; err == nil || !strings.HasPrefix(err.Error(),
		want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if _, timedErr := p.Timed(params, New().NewVector(code.Dim), b, out); timedErr == nil ||
		timedErr.Error() != err.Error() {
		t.Errorf("Timed gives %v", timedErr)
	}
}

func TestRunPanics(t *testing.T) {
	p, x, grad, b := loaded(t, 2, 3, 4)
	out := make([]float64, 2)
	plain := layer(2, 3, 4)
	plain.Gradient, plain.Calls = false, plain.Calls[:2]
	q, err := New().Load(plain)
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]func(){
		"cpu: Run: params has length 3, want 15": func() { _ = p.Run(&Vector{Data: make([]float32, 3)}, grad, b, out) },
		"cpu: Run: grad has length 0, want 15":   func() { _ = p.Run(x, &Vector{}, b, out) },
		"cpu: Run: out has length 1, want 2":     func() { _ = p.Run(x, grad, b, out[:1]) },
		"cpu: Run: <nil> is not a vector":        func() { _ = p.Run(x, nil, b, out) },
		"cpu: Run: grad is given for code":       func() { _ = q.Run(x, grad, b, out) },
	} {
		if got := kerneltest.Panic(t, f); !strings.HasPrefix(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
	if err := q.Run(x, nil, b, out); err != nil {
		t.Errorf("code without gradient: %v", err)
	}
}

// BenchmarkRunOverhead runs a program with almost no work: it measures the cost of Run itself.
func BenchmarkRunOverhead(b *testing.B) {
	code := &device.Code{Name: "overhead", Batch: 1, Features: 1, Arena: 100}
	for i := range 50 {
		r := device.Ref{Space: device.Arena, Off: i, Len: 1}
		code.Calls = append(code.Calls, device.Call{Kernel: device.Scale, In: []device.Ref{r}, Out: []device.Ref{r},
			Dims: []int{1}, Attr: 1})
	}
	p, err := New().Load(code)
	if err != nil {
		b.Fatal(err)
	}
	batch, params := device.Batch{X: []float32{1}, Y: []int32{0}}, &Vector{}
	for b.Loop() {
		if err := p.Run(params, nil, batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50, "ns/call")
}
