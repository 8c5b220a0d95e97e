package cpu

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fspda/cpu/isa"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// Kernels by the way their calls are divided.
var (
	linearLayers = []device.Kernel{device.Linear, device.LinearGradX, device.LinearGradW, device.LinearSigmoid,
		device.LinearReLU, device.LinearGradXSigmoid, device.LinearGradXReLU, device.LinearGradWDecay}
	convolutions = []device.Kernel{device.Conv, device.ConvGradX, device.ConvGradW}
	norms        = []device.Kernel{device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU,
		device.BatchNormGrad, device.BatchNormReLUGrad, device.BatchNormAddReLUGrad, device.Normalize,
		device.NormalizeReLU, device.NormalizeAddReLU}
)

// divisible returns calls that are large enough to be divided, each in its own code.
func divisible() []*device.Code {
	var codes []*device.Code
	for _, k := range linearLayers {
		for _, dims := range [][]int{{256, 100, 784}, {130, 517, 64}, {33, 640, 200},
			// with a factor that all goroutines pack together: of rows of C, and of columns
			{768, 256, 128}, {768, 128, 416}} {
			codes = append(codes, codeOf(k, dims))
		}
	}
	for _, k := range []device.Kernel{device.Sigmoid, device.SigmoidGrad, device.ReLU, device.ReLUGrad, device.Scale,
		device.Add, device.AddScaled} {
		codes = append(codes, codeOf(k, []int{100003}))
	}
	for _, k := range convolutions {
		for _, dims := range [][]int{
			{7, 14, 14, 16, 48, 3, 3, 1, 1},  // by images
			{2, 40, 39, 24, 20, 3, 3, 2, 1},  // by rows if there are more threads
			{1, 40, 31, 64, 40, 1, 1, 1, 0},  // by rows of a product
			{3, 60, 50, 3, 32, 7, 7, 2, 3},   // the weight gradient by strips of the transpose
			{2, 3, 4, 160, 330, 3, 3, 1, 1},  // many weights, fewer rows than threads
			{1, 37, 40, 48, 64, 1, 1, 3, 0},  // pixels that no output reads
			{2, 3, 5, 128, 1024, 1, 1, 1, 0}, // rows of dy a page apart
		} {
			codes = append(codes, codeOf(k, dims))
		}
	}
	for _, k := range norms {
		for _, dims := range [][]int{{3000, 48}, {200, 1040}, {40000, 7}} {
			code := codeOf(k, dims)
			code.Calls[0].Attr = 2 // because the random variances may be as low as -1
			codes = append(codes, code)
		}
	}
	return codes
}

// codeOf returns code of one call that reads parameters and writes the gradient.
func codeOf(k device.Kernel, dims []int) *device.Code {
	e := signature.Of(k)
	call := device.Call{Kernel: k, Dims: dims, Attr: -0.3}
	code := &device.Code{Name: fmt.Sprint(k, dims), Batch: 1, Features: 1, Gradient: true}
	refsOf := func(shapes []string) (refs []device.Ref) {
		for _, s := range shapes {
			n := e.Size(s, dims)
			refs = append(refs, device.Ref{Space: device.Params, Off: code.Dim, Len: n})
			code.Dim += n
		}
		return refs
	}
	call.In, call.Out = refsOf(e.In), refsOf(e.Out)
	for i := range call.Out {
		call.Out[i].Space = device.Grads
	}
	code.Calls = []device.Call{call}
	return code
}

// runCode runs code on d and returns the gradient.
func runCode(t testing.TB, d *Device, code *device.Code) []float32 {
	t.Helper()
	p, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	grad := &Vector{Data: make([]float32, code.Dim)}
	batch := device.Batch{X: []float32{0}, Y: []int32{0}}
	if err := p.Run(&Vector{Data: kerneltest.Noise("params", code.Dim)}, grad, batch, nil); err != nil {
		t.Fatal(err)
	}
	return grad.Data
}

// Results are bit-identical for every number of threads.
func TestThreadsDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	devices := map[int]*Device{2: New(Threads(2)), 3: New(Threads(3)), 7: New(Threads(7))}
	for _, code := range divisible() {
		want := runCode(t, New(Threads(1)), code)
		for threads, d := range devices {
			if isa.Active == isa.Go && threads != 3 { // the loops in Go are slow
				continue
			}
			kerneltest.Compare(t, fmt.Sprintf("%s on %d threads", code.Name, threads), runCode(t, d, code), want)
		}
	}
	for _, d := range devices {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Programs of one Device run at the same time; those that find no idle team run on their own
// goroutine.
func TestTeamsAreShared(t *testing.T) {
	d := New(Threads(2))
	code := codeOf(device.LinearGradW, []int{64, 100, 256})
	want := runCode(t, New(), code)
	var wg sync.WaitGroup
	var wrong atomic.Int32
	for range 6 {
		wg.Go(func() {
			got := runCode(t, d, code)
			for i, w := range want {
				if !kerneltest.Same(got[i], w) {
					wrong.Add(1)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d of 6 programs gave other bits", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	kerneltest.Compare(t, "after Close", runCode(t, d, code), want)
}

// A program with workers allocates no more than one without.
func TestParallelAllocatesNothing(t *testing.T) {
	d := New(Threads(2))
	defer d.Close()
	code := codeOf(device.LinearSigmoid, []int{256, 100, 784})
	p, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	params, grad, batch := &Vector{Data: kerneltest.Noise("params", code.Dim)}, &Vector{Data: make([]float32,
		code.Dim)}, device.Batch{X: []float32{0}, Y: []int32{0}}
	n := testing.AllocsPerRun(20, func() {
		if err := p.Run(params, grad, batch, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 && !kerneltest.Race {
		t.Errorf("a run allocates %v times", n)
	}
}

// atRest returns the number of goroutines once those of earlier tests have ended.
func atRest() int {
	n := runtime.NumGoroutine()
	for same := 0; same < 5; same++ {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		if now := runtime.NumGoroutine(); now != n {
			n, same = now, 0
		}
	}
	return n
}

// settle waits until there are at most n goroutines.
func settle(n int) int {
	for range 200 {
		if runtime.NumGoroutine() <= n {
			break
		}
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	return runtime.NumGoroutine()
}

// Goroutines end with Close, and with the last use of a Device that is not closed.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := atRest()
	code := codeOf(device.Linear, []int{256, 100, 784})
	d := New(Threads(4))
	runCode(t, d, code)
	if n := settle(before + 3); n != before+3 { // the runtime may start one of its own for a moment
		t.Errorf("%d goroutines more, want 3", n-before)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if n := settle(before); n > before {
		t.Errorf("%d goroutines are left after Close", n-before)
	}
	runCode(t, New(Threads(4)), code)
	if n := settle(before); n > before {
		t.Errorf("%d goroutines are left of an unreachable device", n-before)
	}
}

func BenchmarkThreads(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, c := range []struct {
			k    device.Kernel
			dims []int
		}{{device.LinearSigmoid, []int{256, 100, 784}}, {device.LinearGradWDecay, []int{256, 100, 784}}, {device.Linear,
			[]int{1024, 1024, 1024}}} {
			b.Run(fmt.Sprintf("%s%v/%d", c.k, c.dims, threads), func(b *testing.B) {
				d := New(Threads(threads))
				defer d.Close()
				code := codeOf(c.k, c.dims)
				p, err := d.Load(code)
				if err != nil {
					b.Fatal(err)
				}
				params, grad, batch := &Vector{Data: kerneltest.Noise("params", code.Dim)},
					&Vector{Data: make([]float32, code.Dim)}, device.Batch{X: []float32{0}, Y: []int32{0}}
				fastest := time.Duration(1 << 62)
				for b.Loop() {
					begin := time.Now()
					if err := p.Run(params, grad, batch, nil); err != nil {
						b.Fatal(err)
					}
					fastest = min(fastest, time.Since(begin))
				}
				b.ReportMetric(2*float64(c.dims[0]*c.dims[1]*c.dims[2])/float64(fastest.Nanoseconds()), "best-GFLOP/s")
			})
		}
	}
}

// An image with fewer rows than threads leaves some threads without work, and the result is
// bit-identical.
func TestConvOfFewRows(t *testing.T) {
	for _, dims := range [][]int{{1, 1, 1, 1024, 4096, 1, 1, 1, 0}, {1, 2, 2, 512, 512, 3, 3, 1, 1}} {
		for _, k := range convolutions {
			serial := runCode(t, New(), codeOf(k, dims))
			d := New(Threads(5))
			if got := runCode(t, d, codeOf(k, dims)); !slices.Equal(got, serial) {
				t.Error(fmt.Sprint(k, dims), "gives other bits on five threads")
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Long vectors that several goroutines share have the bits of one goroutine.
func TestVectorsOfThreads(t *testing.T) {
	const n = 5*leastVector + 7
	a := device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01, Scale1: 0.1, Scale2: 2, Eps: 1e-8, Decay: 0.1}
	compute := func(threads int) (all []float32) {
		d := New(Threads(threads))
		defer d.Close()
		vectors := make([]*Vector, 4)
		for i, name := range []string{"g", "m", "v", "x"} {
			vectors[i] = &Vector{Data: kerneltest.Noise(name, n)}
		}
		for i, v := range vectors[2].Data {
			vectors[2].Data[i] = v * v
		}
		step := device.Combine(vectors[3], device.Term{A: 1, V: vectors[3]}, device.Term{A: -0.3, V: vectors[0]})
		d.Do(device.AdamW(a, vectors[0], vectors[1], vectors[2], vectors[3]), step)
		d.Do(step)
		d.Do(
			device.Combine(vectors[1], device.Term{A: 0.9, V: vectors[1]}, device.Term{A: 1, V: vectors[0]}),
			device.AddDiffs(device.Term{}, vectors[0], []device.Term{{A: 0.2, V: vectors[1]}},
				device.Term{A: 1, V: vectors[3]}),
			device.Gather(vectors[0], vectors[3], nil),
			device.Multiply(device.Rows(vectors[1], 0, 300, 700), 0.3, device.Rows(vectors[3], 5, 300, 70),
				device.Rows(vectors[0], 0, 70, 700), 1),
			device.Multiply(device.Rows(vectors[1], 0, 1, 70_000), 1, device.Rows(vectors[3], 0, 1, 3),
				device.Rows(vectors[0], 0, 70_000, 3).T(), 0),
			device.Multiply(device.Rows(vectors[1], 0, 70_000, 3).T(), 0.1, device.Rows(vectors[3], 9, 3, 4),
				device.Rows(vectors[0], 0, 70_000, 4).T(), 1))
		d.Do(device.Orthogonalize(vectors[1], device.Orthogonal{Block: device.Block{Offset: 7, Rows: 250, Cols: 300},
			Scale: 0.2}, device.Orthogonal{Block: device.Block{Offset: 75_100, Rows: 700, Cols: 200}, Scale: 3}),
			device.Combine(vectors[2], device.Term{A: 0.3, V: vectors[1]}).Within(
				[]device.Range{{From: 9, To: 200_000}}))
		many := slices.Repeat([]device.Term{{A: 0.3, V: vectors[3]}, {A: -0.7, V: vectors[1]}}, 5)
		d.Do(device.Combine(vectors[2], many...))
		dot := math.Float64bits(device.InnerProduct(d, vectors[3], vectors[0]))
		all = []float32{math.Float32frombits(uint32(dot)), math.Float32frombits(uint32(dot >> 32))}
		for _, v := range vectors {
			all = append(all, v.Data...)
		}
		return all
	}
	want := compute(1)
	for _, threads := range []int{2, 4} {
		kerneltest.Compare(t, fmt.Sprint(threads, " threads"), compute(threads), want)
	}
}
