package measure

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"fspda/device"
	"fspda/train"
)

// StepOptions configures [Step].
type StepOptions struct {
	Setup  *train.Setup
	Device device.Device
	Model  train.Model
	FLOPs  float64 // operations of the matrix kernels of one gradient at the setup's batch
	// Products allocates operands and returns a function that computes the matrix products of one
	// gradient on the calling goroutine, and its floating-point operations: the limit. nil omits
	// the limit.
	Products func() (run func(), flops float64)
	Each     time.Duration // duration of each measurement
}

// StepReport is the cost of a step. Times are per agent and iteration, on one core.
type StepReport struct {
	What       string        `json:"what"`
	Algo       string        `json:"algo"`
	Batch      int           `json:"batch"`
	Dim        int           `json:"dim"`
	Iterations int           `json:"iterations"` // measured
	Agents     int           `json:"agents"`
	Step       time.Duration `json:"step_ns"`     // total
	Gradient   time.Duration `json:"gradient_ns"` // forward and backward
	Vectors    time.Duration `json:"vectors_ns"`  // the algorithm's vector kernels
	Batches    time.Duration `json:"batches_ns"`  // pixels to normalised numbers: Step minus the other parts
	// time outside of kernels: masks, exchange, scheduling; measured with no-op kernels
	Rest      time.Duration `json:"rest_ns"`
	FLOPs     float64       `json:"flops"`
	Rate      float64       `json:"gflop_s"`      // FLOPs over Gradient
	GEMM      float64       `json:"gemm_gflop_s"` // rate of the matrix products without other work, in this run
	Fraction  float64       `json:"fraction_of_gemm"`
	RestShare float64       `json:"rest_share"`

	Cores     int           `json:"cores"`
	Iteration time.Duration `json:"iteration_ns"` // iteration of all agents, on all cores, in the fastest window
	// rate as in GEMM, on all cores at once, in the fastest window of the same length
	AllGEMM   float64 `json:"all_gemm_gflop_s"`
	OverLimit float64 `json:"iteration_over_limit"` // Iteration over the time of its FLOPs at AllGEMM
}

// Step measures training on one core twice: as it is, and with no-op kernels, which gives the time
// outside of kernels.
func Step(ctx context.Context, o StepOptions) (StepReport, error) {
	if o.Each <= 0 {
		return StepReport{}, &train.ConfigError{Key: "time", Got: o.Each.String(),
			Want: "expected a time above 0, such as 3s"}
	}
	cores := runtime.GOMAXPROCS(1) // one core: work outside of kernels cannot overlap with kernels
	defer runtime.GOMAXPROCS(cores)
	c := o.Setup.Config
	r := StepReport{What: fmt.Sprintf("%s, %s, batch %d", c.Algo, c.Model, c.Batch), Algo: c.Algo, Batch: c.Batch,
		Dim: o.Setup.Dim, Agents: c.Agents, FLOPs: o.FLOPs}
	k := &clock{}
	timed := wrappedModel{o.Model, k.aroundGradient}
	m, err := o.iterate(ctx, o.Setup, &wrappedDevice{o.Device, k.computeTimed}, timed, k.read)
	if err != nil {
		return r, err
	}
	r.Iterations, r.Step = int(m.steps)/c.Agents, m.fastest.at
	r.Gradient, r.Vectors = m.fastest.gradient, m.fastest.vectors

	bare := *o.Setup
	bare.Config.Batch = 1 // batch preparation is measured separately
	m, err = o.iterate(ctx, &bare, &wrappedDevice{o.Device, computeDots}, wrappedModel{o.Model, noGradient},
		noKernels)
	if err != nil {
		return r, err
	}
	r.Rest = m.fastest.at
	r.Batches = max(0, r.Step-r.Gradient-r.Vectors-r.Rest)
	r.RestShare = float64(r.Rest) / float64(r.Step)
	if r.Gradient > 0 { // 0 if a step takes longer than a window
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

// Iteration returns the mean time of an iteration of all agents, in seconds, without the time of
// evaluations. It measures for o.Each on all threads, after iterations to warm up.
func Iteration(ctx context.Context, o StepOptions) (seconds float64, err error) {
	m, err := o.iterate(ctx, o.Setup, o.Device, o.Model, noKernels)
	if err != nil {
		return 0, err
	}
	return m.took.Seconds() / m.steps * float64(o.Setup.Config.Agents), nil
}

// mark is a sample: the time, and the time spent in kernels so far. Differences of marks are
// intervals.
type mark struct{ at, gradient, vectors time.Duration }

// noKernels reports zero kernel time, for measurements without a clock.
func noKernels() (gradient, vectors time.Duration) { return 0, 0 }

// measurement is a result in steps of single agents.
type measurement struct {
	took      time.Duration // total time
	steps     float64       // total
	gradients float64       // gradients per step
	fastest   mark          // a step in the fastest window
}

// iterate trains for o.Each after warm-up iterations. kernels returns the time spent in kernels.
// Agents run ahead of each other, by more iterations than fit into a short window, so gradients of
// all agents are counted instead of iterations.
func (o StepOptions) iterate(ctx context.Context, s *train.Setup, dev device.Device, m train.Model,
	kernels func() (gradient, vectors time.Duration)) (measurement, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	all, reached := &gradientCounter{kernels: kernels}, 0
	res, err := train.Run(running, s, train.Options{Device: dev, Model: countedModel{m, all}, OnStep: func(t int) {
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
		return measurement{}, fmt.Errorf("measure: interrupted in iteration %d: %w", res.Iteration, ctx.Err())
	case !all.closed:
		return measurement{}, fmt.Errorf("measure: only %d iterations in the run, too few to measure %s of them "+
			"after %d to warm up: give more iterations", res.Iteration, o.Each, warmUp)
	}
	// All agents stop at the same iteration. The iteration of the result may be earlier, if an
	// evaluation was abandoned.
	gradients := float64(all.total) / float64(reached*s.Config.Agents)
	last := len(all.marks) - 1
	return measurement{all.marks[last].at, float64(last) / gradients, gradients,
		fastestWindow(all.marks, o.Each/windows).times(gradients)}, nil
}

func (m mark) times(n float64) mark {
	by := func(d time.Duration) time.Duration { return time.Duration(n * float64(d)) }
	return mark{by(m.at), by(m.gradient), by(m.vectors)}
}

// gradientCounter counts the gradients of all agents, and takes a mark after each during a
// measurement.
type gradientCounter struct {
	kernels func() (gradient, vectors time.Duration)

	mu     sync.Mutex
	total  int // steps of the whole run
	begin  time.Time
	marks  []mark // the first is the start
	closed bool
}

// measure starts the measurement if needed, and reports whether it has lasted for each and contains
// a gradient.
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

// countedModel counts the gradients of a model when their losses are read.
type countedModel struct {
	train.Model
	all *gradientCounter
}

func (m countedModel) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	wait := m.Model.StartGrad(dst, x, buffers, b)
	return func() (float64, error) {
		defer m.all.count()
		return wait()
	}
}

// wrappedModel calls around with each gradient of a model, and waits for it.
type wrappedModel struct {
	train.Model
	around func(gradient func() (float64, error)) (float64, error)
}

func (wrappedModel) Async() bool { return false }

func (m wrappedModel) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	loss, err := m.around(func() (float64, error) { return m.Model.StartGrad(dst, x, buffers, b)() })
	return func() (float64, error) { return loss, err }
}

// windows is the number of windows of a measurement, of which the fastest counts.
const windows = 5

// fastestWindow returns the mean interval between marks in the fastest window of at least that
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

// warmUp is the number of iterations before a measurement, which compile plans, allocate buffers
// and warm caches.
const warmUp = 20

// limit returns the rate at which cores cores compute the matrix products of gradients, in the
// fastest window.
func (o StepOptions) limit(cores int) (best float64) {
	runs, flops := make([]func(), cores), 0.0
	for i := range runs {
		runs[i], flops = o.Products()
	}
	for range windows {
		rates := make([]float64, cores)
		var all sync.WaitGroup
		for i, run := range runs {
			all.Go(func() { rates[i] = flops / repeated(run, o.Each/windows).Seconds() / 1e9 })
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

// repeated returns the mean time of a run that is repeated for d.
func repeated(run func(), d time.Duration) time.Duration {
	for begin, n := time.Now(), time.Duration(1); ; n++ {
		run()
		if took := time.Since(begin); took >= d && took > n {
			return took / n
		}
	}
}

func (r StepReport) String() string {
	text := fmt.Sprintf(`%s: d = %d, %d agents, one core, %d iterations measured
  agent step       %10.1f µs
    gradient       %10.1f µs   %.1f MFLOP at %.1f GFLOP/s
    vector kernels %10.1f µs
    batches        %10.1f µs   pixels to numbers
    rest           %10.1f µs   %.2f %% of the step (masks, exchange, scheduling; target under 3 %%)
  matrix products  %10.1f GFLOP/s alone, one after the other, in this run
  fraction         %10.1f %%   of that rate reached by the gradient
`, r.What, r.Dim, r.Agents, r.Iterations, us(r.Step), us(r.Gradient), r.FLOPs/1e6, r.Rate, us(r.Vectors),
		us(r.Batches), us(r.Rest), 100*r.RestShare, r.GEMM, 100*r.Fraction)
	if r.Cores > 0 {
		text += fmt.Sprintf(`  iteration        %10.1f µs   all agents on %d cores
    over the limit %10.2f     times what its matrix products alone take on them, at %.1f GFLOP/s
`, us(r.Iteration), r.Cores, r.OverLimit, r.AllGEMM)
	}
	return text
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// clock sums kernel times. Only one kernel runs at a time, so that a preempted agent does not count
// the work of another. Sums are read without waiting for the kernel that runs.
type clock struct {
	mu                sync.Mutex
	gradient, vectors atomic.Int64 // nanoseconds
}

func (k *clock) read() (gradient, vectors time.Duration) {
	return time.Duration(k.gradient.Load()), time.Duration(k.vectors.Load())
}

func (k *clock) timed(sum *atomic.Int64, work func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	begin := time.Now()
	work()
	sum.Add(int64(time.Since(begin)))
}

// computeTimed times operations on vectors.
func (k *clock) computeTimed(d device.Device, ops []device.Op) {
	k.timed(&k.vectors, func() { d.Do(ops...) })
}

func (k *clock) aroundGradient(gradient func() (float64, error)) (loss float64, err error) {
	k.timed(&k.gradient, func() { loss, err = gradient() })
	return loss, err
}

// wrappedDevice wraps a device and passes its operations on vectors to compute. Its method has a
// pointer receiver, since devices are compared with ==.
type wrappedDevice struct {
	device.Device
	compute func(d device.Device, ops []device.Op)
}

func (d *wrappedDevice) Do(ops ...device.Op) { d.compute(d.Device, ops) }

// computeDots computes inner products, since algorithms read their results, and nothing else.
func computeDots(d device.Device, ops []device.Op) {
	for i := range ops {
		if ops[i].Kind == device.KindDot {
			d.Do(ops[i : i+1]...)
		}
	}
}

func noGradient(func() (float64, error)) (float64, error) { return 0, nil }
