package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"fspda/data"
	"fspda/device"
	"fspda/train"
)

// StepOptions say what to measure.
type StepOptions struct {
	Setup  *train.Setup
	Device device.Device
	Model  train.Model
	FLOPs  float64                                    // of the matrix kernels of one gradient at the setup's batch
	Shapes [][3]int                                   // m, n, k of those kernels: the shapes at which the limit is taken
	Rate   func(m, n, k int, d time.Duration) float64 // measures this machine's matrix product on one core, GFLOP/s
	Each   time.Duration                              // how long to measure each thing
}

// StepReport is what a step costs. Times are per agent and iteration, on one core.
type StepReport struct {
	What       string        `json:"what"`
	Batch      int           `json:"batch"`
	Dim        int           `json:"dim"`
	Iterations int           `json:"iterations"` // measured
	Agents     int           `json:"agents"`
	Step       time.Duration `json:"step_ns"`     // all of it
	Gradient   time.Duration `json:"gradient_ns"` // forward and backward
	Vectors    time.Duration `json:"vectors_ns"`  // the algorithm's vector kernels
	Batches    time.Duration `json:"batches_ns"`  // pixels to normalised numbers; a kernel too, timed by itself
	Rest       time.Duration `json:"rest_ns"`     // what is no kernel: masks, exchange, scheduling
	FLOPs      float64       `json:"flops"`
	Rate       float64       `json:"gflop_s"`      // FLOPs over Gradient
	GEMM       float64       `json:"gemm_gflop_s"` // of the machine, same shapes, same run
	Fraction   float64       `json:"fraction_of_gemm"`
	RestShare  float64       `json:"rest_share"`
}

// Step runs real training iterations on one core and tells kernel time from the rest.
func Step(ctx context.Context, o StepOptions) (StepReport, error) {
	if o.Each <= 0 {
		return StepReport{}, &train.ConfigError{Key: "time", Got: o.Each.String(), Want: "expected a time above 0, such as 3s"}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one core: what is not in a kernel is overhead, with nothing to hide it
	c := o.Setup.Config
	r := StepReport{What: fmt.Sprintf("%s, %s, batch %d", c.Algo, c.Model, c.Batch), Batch: c.Batch, Dim: o.Setup.Dim, Agents: c.Agents, FLOPs: o.FLOPs}
	k := &clock{}
	dev, model := timedDevice{o.Device, k}, timedModel{o.Model, k}
	var begin time.Time
	running, stopAt := context.WithCancel(ctx)
	defer stopAt()
	first := 0
	res, err := train.Run(running, o.Setup, train.Options{Device: dev, Model: model, OnStep: func(t int) {
		switch {
		case begin.IsZero() && t >= warmUp:
			first, begin = t, time.Now()
			k.reset()
		case !begin.IsZero() && r.Iterations == 0 && time.Since(begin) > o.Each:
			r.Iterations = t - first
			r.Step = time.Since(begin)
			r.Gradient, r.Vectors = k.read()
			stopAt()
		}
	}})
	if err != nil {
		return r, err
	}
	if res.Diverged != nil {
		return r, res.Diverged
	}
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("bench: interrupted in iteration %d: %w", res.Iteration, err)
	}
	if r.Iterations == 0 {
		return r, fmt.Errorf("bench: only %d iterations in the run, too few to measure %s of them after %d to warm up: give more iterations", res.Iteration, o.Each, warmUp)
	}
	per := time.Duration(r.Iterations * c.Agents)
	r.Step, r.Gradient, r.Vectors = r.Step/per, r.Gradient/per, r.Vectors/per
	if r.Batches, err = o.batches(); err != nil {
		return r, err
	}
	r.Rest = r.Step - r.Gradient - r.Vectors - r.Batches
	r.RestShare = float64(r.Rest) / float64(r.Step)
	r.Rate = r.FLOPs / r.Gradient.Seconds() / 1e9
	r.GEMM = o.limit()
	r.Fraction = r.Rate / r.GEMM
	return r, nil
}

// warmUp iterations come before the measurement: plans are compiled, buffers made, caches warm.
const warmUp = 20

// limit is the rate at which the machine does matrix products of the step's shapes, by their share of the work.
func (o StepOptions) limit() float64 {
	work, seconds := 0.0, 0.0
	for _, s := range o.Shapes {
		f := 2 * float64(s[0]) * float64(s[1]) * float64(s[2])
		work += f
		seconds += f / (o.Rate(s[0], s[1], s[2], o.Each/time.Duration(len(o.Shapes))) * 1e9)
	}
	return work / seconds / 1e9
}

// batches is the time to prepare one batch, as a run does it: for all agents in turn, into as many buffers as an agent's loader has, with
// a gradient after each, so that the caches hold what they hold then. Only the preparing is timed.
func (o StepOptions) batches() (time.Duration, error) {
	c := o.Setup.Config
	var spent time.Duration
	n, buffers := 0, make([][3]device.Batch, len(o.Setup.Shards))
	x, g := make([]device.Vector, len(buffers)), make([]device.Vector, len(buffers))
	loaders := make([]*data.Loader, len(buffers))
	for i, shard := range o.Setup.Shards {
		l, err := data.NewLoader(o.Setup.Set.Train, shard, i, data.LoaderOptions{Batch: c.Batch, Sampling: data.Sampling(c.Sampling), Seed: c.Seed})
		if err != nil {
			return 0, err
		}
		defer l.Close()
		loaders[i], x[i], g[i] = l, o.Device.NewVector(o.Setup.Dim), o.Device.NewVector(o.Setup.Dim)
		o.Device.Write(x[i], o.Model.Init(c.Seed))
	}
	for step, begin := 0, time.Now(); n == 0 || time.Since(begin) < o.Each; step++ {
		for i, l := range loaders {
			b := &buffers[i][step%3]
			start := time.Now()
			l.Batch(b, step)
			if step >= 3 { // every buffer has been made
				spent += time.Since(start)
				n++
			}
			if _, err := o.Model.Grad(g[i], x[i], *b); err != nil {
				return 0, err
			}
		}
	}
	return spent / time.Duration(n), nil
}

// WriteTo prints the report for people.
func (r StepReport) WriteTo(w io.Writer) (int64, error) {
	n, err := fmt.Fprintf(w, `%s: d = %d, %d agents, one core, %d iterations measured
  agent step       %10.1f µs
    gradient       %10.1f µs   %.1f MFLOP at %.1f GFLOP/s
    vector kernels %10.1f µs
    batches        %10.1f µs   pixels to numbers
    rest           %10.1f µs   %.2f %% of the step (masks, exchange, scheduling; target under 3 %%)
  matrix product   %10.1f GFLOP/s at the same shapes on this machine, in this run
  fraction         %10.1f %%   of that rate reached by the gradient
`, r.What, r.Dim, r.Agents, r.Iterations, us(r.Step), us(r.Gradient), r.FLOPs/1e6, r.Rate, us(r.Vectors), us(r.Batches), us(r.Rest), 100*r.RestShare, r.GEMM, 100*r.Fraction)
	return int64(n), err
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// clock adds up kernel time. Only one kernel runs at a time, so that an agent that is preempted inside one does not count
// another's work as its own.
type clock struct {
	mu                sync.Mutex
	gradient, vectors time.Duration
}

func (k *clock) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gradient, k.vectors = 0, 0
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
	m.k.gradient += time.Since(begin)
	return loss, err
}
