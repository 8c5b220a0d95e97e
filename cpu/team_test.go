package cpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fspda/device"
	"fspda/device/signature"
)

// Each part of each job runs once, whether helpers are awake, asleep or in between.
func TestTeamRunsEveryPartOnce(t *testing.T) {
	team := newTeam(3)
	defer team.stop()
	o := &operands{out: [][]float32{make([]float32, 40)}, lent: &lent{team}}
	for job := range 3000 {
		parts := job%40 + 1
		clear(o.out[0])
		o.parallel(parts, func(o *operands, part, of int) { o.out[0][part] += float32(of) })
		for i, v := range o.out[0] {
			if i < parts && v != float32(parts) || i >= parts && v != 0 {
				t.Fatalf("job %d of %d parts: part %d was done %v/%d times", job, parts, i, v, parts)
			}
		}
		if job%500 == 0 {
			time.Sleep(2 * watch) // they fall asleep
		}
	}
}

// Helpers do take part: parts that wait for one another end only if they run at the same time.
func TestHelpersHelp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	team := newTeam(2)
	defer team.stop()
	o := &operands{lent: &lent{team}}
	meeting = &sync.WaitGroup{}
	meeting.Add(3)
	o.parallel(3, func(*operands, int, int) { meeting.Done(); meeting.Wait() })
	if n := o.threads(); n != 3 {
		t.Errorf("%d threads, want 3", n)
	}
}

var meeting *sync.WaitGroup

func TestPortion(t *testing.T) {
	for _, unit := range []int{1, 32} {
		for n := range 200 {
			for of := 1; of < 9; of++ {
				next := 0
				for part := range of {
					from, to := portion(part, of, n, unit)
					if from != next || to < from || from%unit != 0 && from != n {
						t.Fatalf("part %d of %d of %d in units of %d is %d to %d, want it to begin at %d", part, of, n,
							unit, from, to, next)
					}
					next = to
				}
				if next != n {
					t.Fatalf("%d parts cover %d of %d", of, next, n)
				}
			}
		}
	}
}

// divisible is calls that are large enough to be divided, each in code of its own.
func divisible() []*device.Code {
	var codes []*device.Code
	for _, k := range append([]device.Kernel{device.Linear, device.LinearGradX, device.LinearGradW}, fusedLayers...) {
		for _, dims := range [][]int{{256, 100, 784}, {130, 517, 64}, {33, 640, 200}} {
			codes = append(codes, codeOf(k, dims))
		}
	}
	for _, k := range []device.Kernel{device.Sigmoid, device.SigmoidGrad, device.ReLU, device.ReLUGrad, device.Scale,
		device.Add, device.AddScaled} {
		codes = append(codes, codeOf(k, []int{100003}))
	}
	for _, k := range directions {
		for _, dims := range [][]int{
			{7, 14, 14, 16, 48, 3, 3, 1, 1}, // by images
			{2, 40, 39, 24, 20, 3, 3, 2, 1}, // by rows where the threads are more
			{1, 40, 31, 64, 40, 1, 1, 1, 0}, // by rows of a product
			{3, 60, 50, 3, 32, 7, 7, 2, 3},  // its weight gradient by strips of the transpose
			{2, 3, 4, 160, 330, 3, 3, 1, 1}, // many weights, fewer rows than some have threads
			{1, 37, 40, 48, 64, 1, 1, 3, 0}, // pixels that nobody reads
		} {
			codes = append(codes, codeOf(k, dims))
		}
	}
	for _, k := range slices.Concat(forwardNorms, backwardNorms, givenNorms) {
		for _, dims := range [][]int{{3000, 48}, {200, 1040}, {40000, 7}} {
			code := codeOf(k, dims)
			code.Calls[0].Attr = 2 // a variance among the numbers may be as low as -1
			codes = append(codes, code)
		}
	}
	return codes
}

// codeOf is one call that reads parameters and writes the gradient.
func codeOf(k device.Kernel, dims []int) *device.Code {
	e := signature.Of(k)
	call := device.Call{Kernel: k, Dims: dims, Attr: -0.3}
	code := &device.Code{Name: fmt.Sprint(k, dims), Batch: 1, Features: 1, Gradient: true}
	place := func(shapes []string) (refs []device.Ref) {
		for _, s := range shapes {
			n := e.Size(s, dims)
			refs = append(refs, device.Ref{Space: device.Params, Off: code.Dim, Len: n})
			code.Dim += n
		}
		return refs
	}
	call.In, call.Out = place(e.In), place(e.Out)
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
	if err := p.Run(&Vector{Data: noise("params", code.Dim)}, grad, batch, nil); err != nil {
		t.Fatal(err)
	}
	return grad.Data
}

// No bit depends on the number of threads.
func TestThreadsDoNotMatter(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	devices := map[int]*Device{2: New(Threads(2)), 3: New(Threads(3)), 7: New(Threads(7))}
	for _, code := range divisible() {
		want := runCode(t, New(Threads(1)), code)
		for threads, d := range devices {
			if len(implementations()) == 0 && threads != 3 { // the Go twin takes its time
				continue
			}
			compareWords(t, fmt.Sprintf("%s on %d threads", code.Name, threads), runCode(t, d, code), want, 0, code.Dim)
		}
	}
	for _, d := range devices {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Programs of one Device run at the same time; those that find no team idle run alone.
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
				if !same(got[i], w) {
					wrong.Add(1)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d of 6 programs got other bits", n)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	compareWords(t, "after Close", runCode(t, d, code), want, 0, code.Dim)
}

// A program with helpers allocates no more than one without.
func TestParallelAllocatesNothing(t *testing.T) {
	d := New(Threads(2))
	defer d.Close()
	code := codeOf(device.LinearSigmoid, []int{256, 100, 784})
	p, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	params, grad, batch := &Vector{Data: noise("params", code.Dim)}, &Vector{Data: make([]float32,
		code.Dim)}, device.Batch{X: []float32{0}, Y: []int32{0}}
	n := testing.AllocsPerRun(20, func() {
		if err := p.Run(params, grad, batch, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 && !raceDetector {
		t.Errorf("a run allocates %v times", n)
	}
}

// atRest is how many goroutines there are once those of earlier tests are gone.
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

// settle waits until there are no more than n goroutines.
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

// Goroutines end with Close, and with the last use of a Device that nobody closes; one at rest
// costs no time.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := atRest()
	code := codeOf(device.Linear, []int{256, 100, 784})
	d := New(Threads(4))
	runCode(t, d, code)
	if n := settle(before + 3); n != before+3 { // the runtime may have one of its own for a moment
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
		t.Errorf("%d goroutines are left of a device that is gone", n-before)
	}
}

// Helpers that have nothing to do sleep.
func TestHelpersSleep(t *testing.T) {
	team := newTeam(2)
	defer team.stop()
	for range 1000 {
		time.Sleep(watch)
		asleep := 0
		for _, h := range team.helpers {
			if h.asleep.Load() {
				asleep++
			}
		}
		if asleep == len(team.helpers) {
			return
		}
	}
	t.Error("helpers without work are awake")
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
				params, grad, batch := &Vector{Data: noise("params", code.Dim)}, &Vector{Data: make([]float32,
					code.Dim)}, device.Batch{X: []float32{0}, Y: []int32{0}}
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
