package cpu

import (
	"runtime"

	"fspda/device"
)

// Device is the host: its vectors are slices of float32 in ordinary memory. Any number of
// goroutines may use one Device, and what belongs to one Device is good on all.
type Device struct {
	Ops
	teams  *teams
	arenas arenas
	slabs  slabs
}

var _ device.Host = (*Device)(nil)

// Option is a choice about a new Device.
type Option func(*options)

type options struct{ threads int }

// Threads lets each Program that runs use n goroutines for its large kernels, its own among them;
// 1, the default, is that alone. Fewer help where as many as there are processors are busy already.
// No bit of a result depends on n.
func Threads(n int) Option { return func(o *options) { o.threads = n } }

// New returns the host's device. One with more than one thread has goroutines, which sleep when
// there is nothing to do, and end at Close or when the Device and its Programs are no longer
// reachable.
func New(opts ...Option) *Device {
	o := options{threads: 1}
	for _, opt := range opts {
		opt(&o)
	}
	d := &Device{}
	if o.threads > 1 {
		d.teams = &teams{helpers: o.threads - 1, left: max(1, runtime.NumCPU()/o.threads)}
		runtime.AddCleanup(d, (*teams).close, d.teams)
	}
	return d
}

// threads is on how many goroutines a Program runs at most.
func (d *Device) threads() int {
	if d.teams == nil {
		return 1
	}
	return 1 + d.teams.helpers
}

// Close ends the goroutines of the device. Programs still run, without them.
func (d *Device) Close() error {
	if d.teams != nil {
		d.teams.close()
	}
	return nil
}

// Name returns "cpu".
func (*Device) Name() string { return "cpu" }

// NewVector returns a vector of n zeros. The result is a *Vector.
func (d *Device) NewVector(n int) device.Vector { return &Vector{Data: d.slabs.cut(n)} }
