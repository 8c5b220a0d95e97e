package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"fspda/device"
	"fspda/train"
)

// StepOptions say what to measure.
type StepOptions struct {
	Setup  *train.Setup
	Device device.Device
	Model  train.Model
	FLOPs  float64 // of the matrix kernels of one gradient at the setup's batch
	// Products makes factors of its own and returns what does all matrix products of one gradient
	// once, on the calling goroutine, and nothing else: the limit. Where it is nil the limit is not
	// of interest.
	Products func() (run func())
	Each     time.Duration // how long to measure each thing
}

// StepReport is what a step costs. Times are per agent and iteration, on one core.
type StepReport struct {
	What       string        `json:"what"`
	Algo       string        `json:"algo"`
	Batch      int           `json:"batch"`
	Dim        int           `json:"dim"`
	Iterations int           `json:"iterations"` // measured
	Agents     int           `json:"agents"`
	Step       time.Duration `json:"step_ns"`     // all of it
	Gradient   time.Duration `json:"gradient_ns"` // forward and backward
	Vectors    time.Duration `json:"vectors_ns"`  // the algorithm's vector kernels
	Batches    time.Duration `json:"batches_ns"`  // pixels to normalised numbers; what the others leave of the step
	// what is no kernel: masks, exchange, scheduling; measured with empty kernels
	Rest      time.Duration `json:"rest_ns"`
	FLOPs     float64       `json:"flops"`
	Rate      float64       `json:"gflop_s"`      // FLOPs over Gradient
	GEMM      float64       `json:"gemm_gflop_s"` // of the matrix products alone, one after the other, in this run
	Fraction  float64       `json:"fraction_of_gemm"`
	RestShare float64       `json:"rest_share"`

	Cores     int           `json:"cores"`
	Iteration time.Duration `json:"iteration_ns"` // of all agents, on all cores, in the fastest stretch
	// as GEMM, on all cores at once, in the fastest stretch of the same length
	AllGEMM   float64 `json:"all_gemm_gflop_s"`
	OverLimit float64 `json:"iteration_over_limit"` // Iteration over what its FLOPs take at AllGEMM
}

// Step runs real training iterations on one core, once as they are and once with empty kernels:
// what the second run takes is what is no kernel.
func Step(ctx context.Context, o StepOptions) (StepReport, error) {
	if o.Each <= 0 {
		return StepReport{}, &train.ConfigError{Key: "time", Got: o.Each.String(),
			Want: "expected a time above 0, such as 3s"}
	}
	cores := runtime.GOMAXPROCS(1) // one core: what is not in a kernel has nothing to hide behind
	defer runtime.GOMAXPROCS(cores)
	c := o.Setup.Config
	r := StepReport{What: fmt.Sprintf("%s, %s, batch %d", c.Algo, c.Model, c.Batch), Algo: c.Algo, Batch: c.Batch,
		Dim: o.Setup.Dim, Agents: c.Agents, FLOPs: o.FLOPs}
	k := &clock{}
	m, err := o.iterate(ctx, o.Setup, timedDevice{o.Device, k}, timedModel{buffered(o.Model), k}, k.read)
	if err != nil {
		return r, err
	}
	r.Iterations, r.Step, r.Gradient, r.Vectors = int(
		m.steps)/c.Agents, m.fastest.at, m.fastest.gradient, m.fastest.vectors

	bare := *o.Setup
	bare.Config.Batch = 1 // preparing batches is a kernel, too
	if m, err = o.iterate(ctx, &bare, noopDevice{o.Device}, noopModel{buffered(o.Model)}, noKernels); err != nil {
		return r, err
	}
	r.Rest = m.fastest.at
	r.Batches = max(0, r.Step-r.Gradient-r.Vectors-r.Rest)
	r.RestShare = float64(r.Rest) / float64(r.Step)
	if r.Gradient > 0 { // else a step takes longer than a stretch, and none ended in it
		r.Rate = r.FLOPs / r.Gradient.Seconds() / 1e9
	}
	if o.Products == nil {
		return r, nil
	}
	r.GEMM = o.limit(1)
	r.Fraction = r.Rate / r.GEMM
	runtime.GOMAXPROCS(cores)
	r.Cores = cores
	if m, err = o.iterate(ctx, o.Setup, o.Device, o.Model, noKernels); err != nil {
		return r, err
	}
	r.Iteration = m.fastest.at * time.Duration(c.Agents)
	r.AllGEMM = o.limit(cores)
	r.OverLimit = m.fastest.at.Seconds() / m.gradients * r.AllGEMM * 1e9 / r.FLOPs
	return r, nil
}

// mark is a moment of a measurement: when it was, and what time kernels had taken before it. As a
// difference it is a stretch.
type mark struct{ at, gradient, vectors time.Duration }

// noKernels is the time in kernels where none are clocked.
func noKernels() (gradient, vectors time.Duration) { return 0, 0 }

// measurement is what came of a measurement, in steps of single agents.
type measurement struct {
	took      time.Duration // all of it
	steps     float64       // in all of it
	gradients float64       // of a step
	fastest   mark          // what a step took in the fastest stretch
}

// iterate trains for o.Each after some iterations to warm up. The time in kernels is what kernels
// says. Agents run ahead of each other, by more iterations than there are in a short stretch, so it
// is the gradients of all that are counted.
func (o StepOptions) iterate(ctx context.Context, s *train.Setup, dev device.Device, m train.Model,
	kernels func() (gradient, vectors time.Duration)) (measurement, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	all, reached := &gradientCounter{kernels: kernels}, 0
	res, err := train.Run(running, s, train.Options{Device: dev, Model: counted(m, all), OnStep: func(t int) {
		if reached = t; t >= warmUp && all.measure(o.Each) {
			stop()
		}
	}})
	switch {
	case err != nil:
		return measurement{}, err
	case res.Diverged != nil:
		return measurement{}, res.Diverged
	case ctx.Err() != nil:
		return measurement{}, fmt.Errorf("bench: interrupted in iteration %d: %w", res.Iteration, ctx.Err())
	case !all.closed:
		return measurement{}, fmt.Errorf("bench: only %d iterations in the run, too few to measure %s of them after %d to warm up: give more iterations", res.Iteration, o.Each, warmUp)
	}
	// All agents end at the same iteration. The result's may be an earlier one, where an evaluation
	// was given up.
	gradients := float64(all.total) / float64(reached*s.Config.Agents)
	last := len(all.marks) - 1
	return measurement{all.marks[last].at, float64(last) / gradients, gradients,
		fastestWindow(all.marks, o.Each/windows).times(gradients)}, nil
}

// times is a multiple of a stretch.
func (m mark) times(n float64) mark {
	by := func(d time.Duration) time.Duration { return time.Duration(n * float64(d)) }
	return mark{by(m.at), by(m.gradient), by(m.vectors)}
}

// gradientCounter counts the gradients of all agents, and marks the end of each while it measures.
type gradientCounter struct {
	kernels func() (gradient, vectors time.Duration)

	mu     sync.Mutex
	total  int // of the whole run
	begin  time.Time
	marks  []mark // the first is the begin
	closed bool
}

// measure begins to measure, if it has not begun, and says whether it has now measured so long and
// something.
func (a *gradientCounter) measure(each time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begin.IsZero() {
		a.begin = time.Now()
		a.mark()
	}
	if last := len(a.marks) - 1; last > 0 && a.marks[last].at > each {
		a.closed = true
	}
	return a.closed
}

func (a *gradientCounter) mark() {
	m := mark{at: time.Since(a.begin)}
	m.gradient, m.vectors = a.kernels()
	a.marks = append(a.marks, m)
}

func (a *gradientCounter) count() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total++
	if !a.begin.IsZero() && !a.closed {
		a.mark()
	}
}

// countedModel is a model whose gradients are counted.
type countedModel struct {
	train.Buffered
	all *gradientCounter
}

func (m countedModel) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	defer m.all.count()
	return m.Buffered.Grad(dst, x, b)
}

func (m countedModel) Step(dst, x, buffers device.Vector, b device.Batch) (float64, error) {
	defer m.all.count()
	return m.Buffered.Step(dst, x, buffers, b)
}

// countedAsyncModel is an asynchronous model whose gradients are counted when their losses are read.
type countedAsyncModel struct {
	countedModel
	async train.AsyncModel
}

var _ train.AsyncModel = countedAsyncModel{}

func (m countedAsyncModel) Async() bool { return m.async.Async() }

func (m countedAsyncModel) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	wait := m.async.StartGrad(dst, x, buffers, b)
	return func() (float64, error) {
		defer m.all.count()
		return wait()
	}
}

// counted is a model whose gradients are counted, and which is asynchronous if m is.
func counted(m train.Model, all *gradientCounter) train.Model {
	c := countedModel{buffered(m), all}
	if e, ok := m.(train.AsyncModel); ok {
		return countedAsyncModel{c, e}
	}
	return c
}

// windows is how many the time of a measurement is divided into, of which the fastest counts.
const windows = 5

// fastestWindow is the way from one mark to the next in the fastest stretch of at least that
// length.
func fastestWindow(marks []mark, length time.Duration) mark {
	per := func(i, j int) mark {
		a, b, n := marks[i], marks[j], time.Duration(j-i)
		return mark{(b.at - a.at) / n, (b.gradient - a.gradient) / n, (b.vectors - a.vectors) / n}
	}
	fastest := per(0, len(marks)-1)
	for i, j := 0, 1; j < len(marks); j++ {
		for i+1 < j && marks[j].at-marks[i+1].at >= length {
			i++
		}
		if m := per(i, j); marks[j].at-marks[i].at >= length && m.at < fastest.at {
			fastest = m
		}
	}
	return fastest
}

// warmUp iterations come before the measurement: plans are compiled, buffers made, caches warm.
const warmUp = 20

// limit is the rate at which so many cores at once do a gradient's matrix products over and over,
// in the fastest of some stretches.
func (o StepOptions) limit(cores int) (best float64) {
	runs := make([]func(), cores)
	for i := range runs {
		runs[i] = o.Products()
	}
	for range windows {
		rates := make([]float64, cores)
		var all sync.WaitGroup
		for i, run := range runs {
			all.Go(func() { rates[i] = o.FLOPs / repeated(run, o.Each/windows).Seconds() / 1e9 })
		}
		all.Wait()
		sum := 0.0
		for _, r := range rates {
			sum += r
		}
		best = max(best, sum)
	}
	return best
}

// repeated is the mean time of a run that is repeated for so long.
func repeated(run func(), d time.Duration) time.Duration {
	for begin, n := time.Now(), time.Duration(1); ; n++ {
		run()
		if took := time.Since(begin); took >= d && took > n {
			return took / n
		}
	}
}

// WriteTo prints the report for people.
func (r StepReport) WriteTo(w io.Writer) (int64, error) {
	text := fmt.Sprintf(`%s: d = %d, %d agents, one core, %d iterations measured
  agent step       %10.1f µs
    gradient       %10.1f µs   %.1f MFLOP at %.1f GFLOP/s
    vector kernels %10.1f µs
    batches        %10.1f µs   pixels to numbers
    rest           %10.1f µs   %.2f %% of the step (masks, exchange, scheduling; target under 3 %%)
  matrix products  %10.1f GFLOP/s alone, one after the other, in this run
  fraction         %10.1f %%   of that rate reached by the gradient
`, r.What, r.Dim, r.Agents, r.Iterations, us(r.Step), us(r.Gradient), r.FLOPs/1e6, r.Rate, us(r.Vectors), us(r.Batches), us(r.Rest), 100*r.RestShare, r.GEMM, 100*r.Fraction)
	if r.Cores > 0 {
		text += fmt.Sprintf(`  iteration        %10.1f µs   all agents on %d cores
    over the limit %10.2f     times what its matrix products alone take on them, at %.1f GFLOP/s
`, us(r.Iteration), r.Cores, r.OverLimit, r.AllGEMM)
	}
	n, err := io.WriteString(w, text)
	return int64(n), err
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// clock adds up kernel time. Only one kernel runs at a time, so that an agent that is preempted
// inside one does not count another's work as its own.
type clock struct {
	mu                sync.Mutex
	gradient, vectors time.Duration
}

func (k *clock) read() (gradient, vectors time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gradient, k.vectors
}

// timedDevice is a device that clocks the vector kernels.
type timedDevice struct {
	device.Device
	k *clock
}

func (d timedDevice) clocked(f func()) {
	d.k.mu.Lock()
	defer d.k.mu.Unlock()
	begin := time.Now()
	f()
	d.k.vectors += time.Since(begin)
}

func (d timedDevice) Combine(dst device.Vector, terms ...device.Term) {
	d.clocked(func() { d.Device.Combine(dst, terms...) })
}

func (d timedDevice) Gather(dst, src device.Vector, idx device.Index) {
	d.clocked(func() { d.Device.Gather(dst, src, idx) })
}

func (d timedDevice) AddDiff(own, other device.Vector, idx device.Index, to ...device.Term) {
	d.clocked(func() { d.Device.AddDiff(own, other, idx, to...) })
}

func (d timedDevice) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	d.clocked(func() { d.Device.AddDiffs(start, own, others, to...) })
}

func (d timedDevice) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector,
	others []device.Term, to ...device.Term) {
	d.clocked(func() { d.Device.CombineDiffs(dst, base, start, own, others, to...) })
}

func (d timedDevice) ScatterAdd(dst device.Vector, parts ...device.SparseTerm) {
	d.clocked(func() { d.Device.ScatterAdd(dst, parts...) })
}

// timedModel is a model that clocks the gradient.
type timedModel struct {
	train.Buffered
	k *clock
}

func (m timedModel) clocked(gradient func() (float64, error)) (float64, error) {
	m.k.mu.Lock()
	defer m.k.mu.Unlock()
	begin := time.Now()
	loss, err := gradient()
	m.k.gradient += time.Since(begin)
	return loss, err
}

func (m timedModel) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	return m.clocked(func() (float64, error) { return m.Buffered.Grad(dst, x, b) })
}

func (m timedModel) Step(dst, x, buffers device.Vector, b device.Batch) (float64, error) {
	return m.clocked(func() (float64, error) { return m.Buffered.Step(dst, x, buffers, b) })
}

// noopDevice is a device whose vector kernels do nothing.
type noopDevice struct{ device.Device }

func (noopDevice) Combine(device.Vector, ...device.Term)                              {}
func (noopDevice) Gather(_, _ device.Vector, _ device.Index)                          {}
func (noopDevice) AddDiff(_, _ device.Vector, _ device.Index, _ ...device.Term)       {}
func (noopDevice) AddDiffs(device.Term, device.Vector, []device.Term, ...device.Term) {}
func (noopDevice) CombineDiffs(device.Term, []device.Term, device.Term, device.Vector, []device.Term, ...device.Term) {
}
func (noopDevice) ScatterAdd(device.Vector, ...device.SparseTerm) {}

// noopModel is a model whose gradient costs nothing.
type noopModel struct{ train.Buffered }

func (noopModel) Grad(_, _ device.Vector, _ device.Batch) (float64, error)    { return 0, nil }
func (noopModel) Step(_, _, _ device.Vector, _ device.Batch) (float64, error) { return 0, nil }

// withoutBuffers is a model without batch norm as one with.
type withoutBuffers struct{ train.Model }

func (withoutBuffers) BufferSizes() []int     { return nil }
func (withoutBuffers) InitBuffers() []float32 { return nil }
func (m withoutBuffers) Step(dst, x, _ device.Vector, b device.Batch) (float64, error) {
	return m.Grad(dst, x, b)
}
func (m withoutBuffers) ScoreWith(x, _ device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return m.Score(x, b)
}
func (withoutBuffers) Observe(_, _ device.Vector, _ device.Batch, _ float64) error { return nil }

// buffered is the model as one that may have batch norm: what stands before it must not hide that.
func buffered(m train.Model) train.Buffered {
	if b, ok := m.(train.Buffered); ok {
		return b
	}
	return withoutBuffers{m}
}
