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
	// Products makes factors of its own and returns what does all matrix products of one gradient once, on the calling goroutine, and
	// nothing else: the limit. Where it is nil the limit is not of interest.
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
	Rest       time.Duration `json:"rest_ns"`     // what is no kernel: masks, exchange, scheduling; measured with empty kernels
	FLOPs      float64       `json:"flops"`
	Rate       float64       `json:"gflop_s"`      // FLOPs over Gradient
	GEMM       float64       `json:"gemm_gflop_s"` // of the matrix products alone, one after the other, in this run
	Fraction   float64       `json:"fraction_of_gemm"`
	RestShare  float64       `json:"rest_share"`

	Cores     int           `json:"cores"`
	Iteration time.Duration `json:"iteration_ns"`         // of all agents, on all cores, in the fastest stretch
	AllGEMM   float64       `json:"all_gemm_gflop_s"`     // as GEMM, on all cores at once, in the fastest stretch of the same length
	OverLimit float64       `json:"iteration_over_limit"` // Iteration over what its FLOPs take at AllGEMM
}

// Step runs real training iterations on one core, once as they are and once with empty kernels: what the second run takes is what is
// no kernel.
func Step(ctx context.Context, o StepOptions) (StepReport, error) {
	if o.Each <= 0 {
		return StepReport{}, &train.ConfigError{Key: "time", Got: o.Each.String(), Want: "expected a time above 0, such as 3s"}
	}
	cores := runtime.GOMAXPROCS(1) // one core: what is not in a kernel has nothing to hide behind
	defer runtime.GOMAXPROCS(cores)
	c := o.Setup.Config
	r := StepReport{What: fmt.Sprintf("%s, %s, batch %d", c.Algo, c.Model, c.Batch), Algo: c.Algo, Batch: c.Batch, Dim: o.Setup.Dim, Agents: c.Agents, FLOPs: o.FLOPs}
	k := &clock{}
	m, err := o.iterate(ctx, o.Setup, timedDevice{o.Device, k}, timedModel{o.Model, k}, k)
	if err != nil {
		return r, err
	}
	r.Gradient, r.Vectors = k.read()
	r.Iterations, r.Step = int(m.steps)/c.Agents, m.each(m.took)
	r.Gradient, r.Vectors = m.each(r.Gradient), m.each(r.Vectors)

	bare := *o.Setup
	bare.Config.Batch = 1 // preparing batches is a kernel, too
	if m, err = o.iterate(ctx, &bare, emptyDevice{o.Device}, emptyModel{o.Model}, &clock{}); err != nil {
		return r, err
	}
	r.Rest = m.each(m.took)
	r.Batches = max(0, r.Step-r.Gradient-r.Vectors-r.Rest)
	r.RestShare = float64(r.Rest) / float64(r.Step)
	r.Rate = r.FLOPs / r.Gradient.Seconds() / 1e9
	if o.Products == nil {
		return r, nil
	}
	r.GEMM = o.limit(1)
	r.Fraction = r.Rate / r.GEMM
	runtime.GOMAXPROCS(cores)
	r.Cores = cores
	if m, err = o.iterate(ctx, o.Setup, o.Device, o.Model, &clock{}); err != nil {
		return r, err
	}
	r.Iteration = time.Duration(float64(m.fastest) * m.perStep * float64(c.Agents))
	r.AllGEMM = o.limit(cores)
	r.OverLimit = m.fastest.Seconds() * r.AllGEMM * 1e9 / r.FLOPs
	return r, nil
}

// measured is what came of a stretch of training.
type measured struct {
	took    time.Duration // all of it
	steps   float64       // of single agents, in it
	perStep float64       // gradients
	fastest time.Duration // for a gradient and all that goes with it, in the fastest stretch
}

// each is the part of a time that falls to one step of one agent.
func (m measured) each(d time.Duration) time.Duration { return time.Duration(float64(d) / m.steps) }

// iterate trains for o.Each after some iterations to warm up. Meanwhile, and only then, k is at work. Agents run ahead of each other, by more
// iterations than there are in a short time, so it is all of their gradients that are counted.
func (o StepOptions) iterate(ctx context.Context, s *train.Setup, dev device.Device, m train.Model, k *clock) (measured, error) {
	running, stop := context.WithCancel(ctx)
	defer stop()
	all := &tally{}
	res, err := train.Run(running, s, train.Options{Device: dev, Model: countedModel{m, all}, OnStep: func(t int) {
		switch since, open := all.since(); {
		case !open && since == 0 && t >= warmUp:
			k.start()
			all.open()
		case open && since > o.Each:
			k.stop()
			all.close()
			stop()
		}
	}})
	switch {
	case err != nil:
		return measured{}, err
	case res.Diverged != nil:
		return measured{}, res.Diverged
	case ctx.Err() != nil:
		return measured{}, fmt.Errorf("bench: interrupted in iteration %d: %w", res.Iteration, ctx.Err())
	case len(all.at) < 2 || !all.closed:
		return measured{}, fmt.Errorf("bench: only %d iterations in the run, too few to measure %s of them after %d to warm up: give more iterations", res.Iteration, o.Each, warmUp)
	}
	// All agents end at the same iteration, so this is how many gradients a step has.
	perStep := float64(all.total) / float64(res.Iteration*s.Config.Agents)
	return measured{all.at[len(all.at)-1], float64(len(all.at)-1) / perStep, perStep, fastestStretch(all.at, o.Each/stretches)}, nil
}

// stretches is how many the time of a measurement is divided into, of which the fastest counts.
const stretches = 5

// fastestStretch is the time from one event to the next in the fastest stretch of at least that length, given when each was.
func fastestStretch(at []time.Duration, length time.Duration) time.Duration {
	fastest := at[len(at)-1] / time.Duration(len(at)-1)
	for i, j := 0, 1; j < len(at); j++ {
		for i+1 < j && at[j]-at[i+1] >= length {
			i++
		}
		if took := at[j] - at[i]; took >= length {
			fastest = min(fastest, took/time.Duration(j-i))
		}
	}
	return fastest
}

// warmUp iterations come before the measurement: plans are compiled, buffers made, caches warm.
const warmUp = 20

// limit is the rate at which so many cores at once do a gradient's matrix products over and over, in the fastest of some stretches.
func (o StepOptions) limit(cores int) (best float64) {
	runs := make([]func(), cores)
	for i := range runs {
		runs[i] = o.Products()
	}
	for range stretches {
		rates := make([]float64, cores)
		var all sync.WaitGroup
		for i, run := range runs {
			all.Go(func() { rates[i] = o.FLOPs / repeated(run, o.Each/stretches).Seconds() / 1e9 })
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

// tally notes when the gradients of all agents end.
type tally struct {
	mu     sync.Mutex
	total  int       // of the whole run
	begin  time.Time // of the measurement
	closed bool
	at     []time.Duration // since the begin, which is the first of them
}

func (a *tally) open() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begin, a.at = time.Now(), append(a.at, 0)
}

func (a *tally) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// since is for how long the measurement has been open, if it is; it stays above zero afterwards.
func (a *tally) since() (d time.Duration, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begin.IsZero() {
		return 0, false
	}
	return time.Since(a.begin), !a.closed
}

func (a *tally) count() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total++
	if !a.begin.IsZero() && !a.closed {
		a.at = append(a.at, time.Since(a.begin))
	}
}

// countedModel is a model whose gradients are counted.
type countedModel struct {
	train.Model
	all *tally
}

func (m countedModel) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	defer m.all.count()
	return m.Model.Grad(dst, x, b)
}

// clock adds up kernel time between start and stop. Only one kernel runs at a time, so that an agent that is preempted inside one does
// not count another's work as its own.
type clock struct {
	mu                sync.Mutex
	running           bool
	gradient, vectors time.Duration
}

func (k *clock) start() { k.set(true) }
func (k *clock) stop()  { k.set(false) }

func (k *clock) set(running bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = running
}

// add adds the time since begin to one of the clock's sums. The caller holds its lock.
func (k *clock) add(to *time.Duration, begin time.Time) {
	if k.running {
		*to += time.Since(begin)
	}
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
	d.k.add(&d.k.vectors, begin)
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

// timedModel is a model that clocks the gradient.
type timedModel struct {
	train.Model
	k *clock
}

func (m timedModel) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	m.k.mu.Lock()
	defer m.k.mu.Unlock()
	begin := time.Now()
	loss, err := m.Model.Grad(dst, x, b)
	m.k.add(&m.k.gradient, begin)
	return loss, err
}

// emptyDevice is a device whose vector kernels do nothing.
type emptyDevice struct{ device.Device }

func (emptyDevice) Combine(device.Vector, ...device.Term)                        {}
func (emptyDevice) Gather(_, _ device.Vector, _ device.Index)                    {}
func (emptyDevice) AddDiff(_, _ device.Vector, _ device.Index, _ ...device.Term) {}

// emptyModel is a model whose gradient costs nothing.
type emptyModel struct{ train.Model }

func (emptyModel) Grad(_, _ device.Vector, _ device.Batch) (float64, error) { return 0, nil }
