package measure

import (
	"context"
	"fmt"
	"time"

	"fspda/device"
	"fspda/train"
)

// Card is an asynchronous device such as a GPU: calls return before the work is done, and the
// device has a clock of its own.
type Card struct {
	What      string // its name
	Device    device.Device
	Precision string
	// Time returns the time that the device takes for work, on its own clock.
	Time func(work func() error) (time.Duration, error)
	// Copy returns the bandwidth of a copy of the given number of bytes in device memory, reads
	// plus writes, in GB/s.
	Copy func(bytes int) (float64, error)
	// Element is the size in bytes of activations.
	Element int
}

// copyBytes is the size of the copy that measures memory bandwidth: far larger than any cache.
const copyBytes = 1 << 30

// bytesMoved returns the bytes that code moves if every operand of every call is read or written
// once. Parameters and their gradients are float32.
func bytesMoved(c *device.Code, element int) float64 {
	bytes := 0.0
	add := func(refs []device.Ref) {
		for _, r := range refs {
			size := 4
			if r.Space == device.Arena || r.Space == device.Input {
				size = element
			}
			bytes += float64(size) * float64(r.Len)
		}
	}
	for i := range c.Calls {
		add(c.Calls[i].In)
		add(c.Calls[i].Out)
	}
	return bytes
}

// CardNetworkOptions configures [CardNetwork].
type CardNetworkOptions struct {
	Card
	Code     *device.Code
	Forecast int                                // forecast of the memory of a run in bytes
	Load     func() (run func() error, _ error) // returns a function that runs Code once
	Each     time.Duration                      // duration of the measurement
}

// CardNetworkReport is the cost of a gradient of a network on a device, forward and backward.
type CardNetworkReport struct {
	What      string        `json:"what"`
	Card      string        `json:"card"`
	Precision string        `json:"precision"`
	Batch     int           `json:"batch"`
	Dim       int           `json:"dim"`
	Runs      int           `json:"runs"`
	Fastest   time.Duration `json:"time_ns"` // fastest turn, on the device's clock
	Mean      time.Duration `json:"mean_ns"`
	Wall      time.Duration `json:"wall_ns"`  // mean, on the host's clock
	Images    float64       `json:"images_s"` // like all rates, of the fastest turn; windows of language models
	Tokens    float64       `json:"tokens_s,omitempty"`
	FLOPs     float64       `json:"flops"`
	Rate      float64       `json:"gflop_s"`
	Bytes     float64       `json:"bytes"`     // see bytesMoved
	CopyRate  float64       `json:"copy_gb_s"` // rate of a copy, measured in this run
	Roofline  float64       `json:"roofline"`  // time of moving Bytes at CopyRate, over Fastest
	Forecast  int           `json:"memory_forecast"`
}

// runsPerTurn is the number of runs that are timed together.
const runsPerTurn = 5

// CardNetwork measures the gradient of a network over one batch.
func CardNetwork(ctx context.Context, o CardNetworkOptions) (CardNetworkReport, error) {
	c := o.Code
	element := o.Element
	if c.Labels > 1 {
		element = 4 // language models keep float32 between products
	}
	r := CardNetworkReport{What: c.Name, Card: o.What, Precision: o.Precision, Batch: c.Batch, Dim: c.Dim,
		FLOPs: c.FLOPs, Bytes: bytesMoved(c, element), Forecast: o.Forecast}
	if o.Each <= 0 {
		return r, &train.ConfigError{Key: "time", Got: o.Each.String(), Want: "expected a time above 0, such as 3s"}
	}
	run, err := o.Load()
	if err != nil {
		return r, err
	}
	for range 3 { // the first allocates memory and chooses algorithms, the second captures a graph
		if err := run(); err != nil {
			return r, err
		}
	}
	if r.CopyRate, err = o.Copy(copyBytes); err != nil {
		return r, fmt.Errorf("measure: measure a copy in the memory of %s: %w", o.What, err)
	}
	begin := time.Now()
	for r.Runs == 0 || time.Since(begin) < o.Each {
		if ctx.Err() != nil {
			return r, fmt.Errorf("measure: interrupted after %d gradients of %s: %w", r.Runs, c.Name, ctx.Err())
		}
		took, err := o.turn(run)
		if err != nil {
			return r, err
		}
		each := took / runsPerTurn
		if r.Runs == 0 || each < r.Fastest {
			r.Fastest = each
		}
		r.Mean += took
		r.Runs += runsPerTurn
	}
	r.finish(time.Since(begin))
	if c.Labels > 1 {
		r.Tokens = r.Images * float64(c.Labels)
	}
	return r, nil
}

// turn returns the time of runsPerTurn runs. One more run precedes them, so that the first timed
// one need not wait for its inputs.
func (c *Card) turn(run func() error) (time.Duration, error) {
	if err := run(); err != nil {
		return 0, err
	}
	return c.Time(func() error { return repeat(run, runsPerTurn) })
}

func repeat(run func() error, n int) error {
	for range n {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

func (r *CardNetworkReport) finish(wall time.Duration) {
	n := time.Duration(r.Runs)
	r.Mean, r.Wall, r.Fastest = r.Mean/n, wall/n, max(r.Fastest, 1)
	s := r.Fastest.Seconds()
	r.Images, r.Rate, r.Roofline = float64(r.Batch)/s, r.FLOPs/s/1e9, r.Bytes/r.CopyRate/1e9/s
}

func (r CardNetworkReport) String() string {
	what, rate := "images", r.Images
	if r.Tokens > 0 {
		what, rate = "tokens", r.Tokens
	}
	return fmt.Sprintf(`%s: d = %d, batch %d on %s, %s, %d gradients measured
  gradient   %10.3f ms fastest, %.3f ms mean, %.3f ms on the host's clock
  %s     %10.1f a second
  rate       %10.2f TFLOP/s, %.2f GFLOP
  memory     %10.2f GB moved at least, %.1f GB/s a copy: %.1f %% of the roofline
  arena      %10.1f MiB forecast
`, r.What, r.Dim, r.Batch, r.Card, r.Precision, r.Runs, ms(r.Fastest), ms(r.Mean), ms(r.Wall), what, rate,
		r.Rate/1e3, r.FLOPs/1e9, r.Bytes/1e9, r.CopyRate, 100*r.Roofline, float64(r.Forecast)/(1<<20))
}
