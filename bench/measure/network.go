package measure

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"fspda/device"
	"fspda/train"
)

// NetworkOptions configures [Network].
type NetworkOptions struct {
	Code     *device.Code
	Threads  int
	Forecast int // forecast of the memory of a run in bytes
	// Load returns a function that runs Code once and returns the time of each of its calls.
	Load func() (run func() ([]time.Duration, error), err error)
	// Product computes a product of two matrices of ProductSide rows and columns on as many threads.
	Product func() error
	// Train trains the network, one agent on all threads, and calls atStep before each step, until
	// that returns false. [NoTraining] leaves steps out.
	Train func(ctx context.Context, atStep func() (more bool)) error
	Each  time.Duration // duration of the measurement
}

// NoTraining is the Train of a measurement without steps of training.
func NoTraining(context.Context, func() (more bool)) error { return nil }

// ProductSide is the side of the matrices whose product a gradient is compared with.
const ProductSide = 1024

// perTurn is the number of times that a turn measures steps, gradients and products.
const perTurn = 4

// mostProducts is the largest number of products that are timed together. Fewer are timed if they
// have the operations of a gradient: a short measurement has a higher chance of a fast moment.
const mostProducts = 8

// GradientReport is the cost of a gradient of a network, forward and backward, and of a step of
// training: batch, gradient, clipping, optimizer.
type GradientReport struct {
	What      string        `json:"what"`
	Batch     int           `json:"batch"`
	Dim       int           `json:"dim"`
	Threads   int           `json:"threads"`
	Runs      int           `json:"runs"`
	Fastest   time.Duration `json:"time_ns"`
	Mean      time.Duration `json:"mean_ns"`
	Step      time.Duration `json:"step_ns,omitempty"` // the fastest
	Images    float64       `json:"images_s"`          // like all rates, of the fastest run
	FLOPs     float64       `json:"flops"`             // operations of the matrix kernels
	Rate      float64       `json:"gflop_s"`
	Product   float64       `json:"product_gflop_s"` // rate of the product, measured in between
	Share     float64       `json:"share"`           // gradient's rate over the product's, see [Network]
	StepShare float64       `json:"step_share,omitempty"`
	Forecast  int           `json:"memory_forecast"`  // bytes
	Allocated uint64        `json:"memory_allocated"` // bytes allocated by loading the code and the first run
	Kernels   []KernelShare `json:"kernels"`          // the longest first
}

// KernelShare is the share of a kernel in the time of a gradient.
type KernelShare struct {
	Kernel device.Kernel `json:"kernel"`
	Calls  int           `json:"calls"`
	Time   time.Duration `json:"time_ns"` // mean, of all calls together
	Share  float64       `json:"share"`
}

// Network measures the gradient of a network over one batch, in turns: some steps, some gradients,
// some products. The speed of a processor varies between turns. So each turn compares its fastest
// step and its fastest gradient with its own fastest product. A share is the median of all turns.
func Network(ctx context.Context, o NetworkOptions) (GradientReport, error) {
	c := o.Code
	r := GradientReport{What: c.Name, Batch: c.Batch, Dim: c.Dim, Threads: o.Threads, FLOPs: c.FLOPs,
		Forecast: o.Forecast}
	if o.Each <= 0 {
		return r, &train.ConfigError{Key: "time", Got: o.Each.String(), Want: "expected a time above 0, such as 3s"}
	}
	before := allocated()
	run, err := o.Load()
	if err != nil {
		return r, err
	}
	if _, err := run(); err != nil { // the first run allocates memory
		return r, err
	}
	r.Allocated = allocated() - before
	if err := o.Product(); err != nil {
		return r, err
	}
	g := &gradientTimer{NetworkOptions: o, r: &r, run: run, perCall: make([]time.Duration, len(c.Calls)),
		begin: time.Now()}
	err = o.Train(ctx, func() bool { return g.between() && ctx.Err() == nil })
	for err == nil && g.err == nil && g.more() {
		g.gradients()
	}
	if err = cmp.Or(err, g.err, ctx.Err()); err != nil {
		return r, fmt.Errorf("measure: %d gradients of %s: %w", r.Runs, c.Name, err)
	}
	r.Share = median(g.shares.gradient)
	if len(g.shares.step) > 0 {
		r.StepShare = median(g.shares.step)
	}
	r.finish(c, g.perCall)
	return r, nil
}

// gradientTimer measures gradients, products and steps in turn, since the speed of a processor
// varies.
type gradientTimer struct {
	NetworkOptions
	r       *GradientReport
	run     func() ([]time.Duration, error)
	perCall []time.Duration // sums
	begin   time.Time
	steps   int
	last    time.Time     // the start of the current step
	step    time.Duration // the fastest of this turn
	shares  struct{ gradient, step []float64 }
	err     error
}

// more reports whether the measurement goes on.
func (g *gradientTimer) more() bool { return g.r.Runs == 0 || time.Since(g.begin) < g.Each }

// gradients measures the gradients and products of a turn.
func (g *gradientTimer) gradients() {
	r, fastest, product := g.r, time.Duration(0), time.Duration(0)
	for range perTurn {
		start := time.Now()
		times, err := g.run()
		if g.err = err; err != nil {
			return
		}
		took := time.Since(start)
		fastest = shorter(fastest, took)
		r.Runs++
		r.Mean += took
		for i, d := range times {
			g.perCall[i] += d
		}
	}
	const operations = 2 * ProductSide * ProductSide * ProductSide
	count := max(1, min(mostProducts, int(r.FLOPs/operations+0.5)))
	for range perTurn {
		start := time.Now()
		for range count {
			if g.err = g.Product(); g.err != nil {
				return
			}
		}
		product = shorter(product, time.Since(start))
	}
	rate := float64(count) * operations / product.Seconds()
	share := func(took time.Duration) float64 { return r.FLOPs / took.Seconds() / rate }
	r.Product = max(r.Product, rate/1e9)
	r.Fastest = shorter(r.Fastest, fastest)
	g.shares.gradient = append(g.shares.gradient, share(fastest))
	if g.step > 0 {
		g.shares.step = append(g.shares.step, share(g.step))
		r.Step, g.step = shorter(r.Step, g.step), 0
	}
}

// shorter returns the shorter of two times, of which the first may be missing: 0.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// between is called between two steps of training. It measures gradients after every few steps, and
// reports whether to go on.
func (g *gradientTimer) between() bool {
	if g.steps > 0 {
		g.step = shorter(g.step, time.Since(g.last))
	}
	if g.steps++; g.steps%(perTurn+1) == 0 {
		g.gradients()
	}
	g.last = time.Now()
	return g.err == nil && g.more()
}

// allocated returns the total bytes that the process has allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// finish computes the report from the times of each call, summed over all runs.
func (r *GradientReport) finish(c *device.Code, perCall []time.Duration) {
	n := time.Duration(r.Runs)
	r.Mean /= n
	r.Images, r.Rate = float64(r.Batch)/r.Fastest.Seconds(), r.FLOPs/r.Fastest.Seconds()/1e9
	at := map[device.Kernel]int{}
	for i, call := range c.Calls {
		k, ok := at[call.Kernel]
		if !ok {
			k = len(r.Kernels)
			at[call.Kernel] = k
			r.Kernels = append(r.Kernels, KernelShare{Kernel: call.Kernel})
		}
		r.Kernels[k].Calls++
		r.Kernels[k].Time += perCall[i] / n
	}
	for i := range r.Kernels {
		r.Kernels[i].Share = r.Kernels[i].Time.Seconds() / r.Mean.Seconds()
	}
	slices.SortStableFunc(r.Kernels, func(a, b KernelShare) int { return int(b.Time - a.Time) })
}

func (r GradientReport) String() string {
	const mib = 1 << 20
	text := fmt.Sprintf(`%s: d = %d, batch %d, %d threads, %d gradients measured
  gradient   %10.1f ms fastest, %.1f ms mean
  images     %10.2f a second
  rate       %10.1f GFLOP/s, %.2f GFLOP
  products   %10.1f GFLOP/s of %d×%d, a gradient has %.1f %% of the rate
  memory     %10.1f MiB taken, %.1f MiB forecast
`, r.What, r.Dim, r.Batch, r.Threads, r.Runs, ms(r.Fastest), ms(r.Mean), r.Images, r.Rate, r.FLOPs/1e9,
		r.Product, ProductSide, ProductSide, 100*r.Share,
		float64(r.Allocated)/mib, float64(r.Forecast)/mib)
	if r.Step > 0 {
		text += fmt.Sprintf("  step       %10.1f ms fastest, %.1f %% of the rate of products\n", ms(r.Step),
			100*r.StepShare)
	}
	for _, k := range r.Kernels {
		text += fmt.Sprintf("  %5.1f %%  %-26s %4d calls %10.2f ms\n", 100*k.Share, k.Kernel, k.Calls,
			1e3*k.Time.Seconds())
	}
	return text
}
