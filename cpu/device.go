package cpu

import (
	"runtime"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Device is the host: its vectors are slices of float32 in ordinary memory. Any number of
// goroutines may use one Device, and what belongs to one Device is good on all.
type Device struct {
	vec.Ops
	threads int              // of a running Program, its own goroutine included
	teams   *kernel.TeamPool // nil with one thread
	arenas  arenaPool
	slabs   slabAllocator
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
	d := &Device{threads: max(1, o.threads)}
	if o.threads > 1 {
		d.teams = kernel.NewTeamPool(max(1, runtime.NumCPU()/o.threads), o.threads-1)
		runtime.AddCleanup(d, (*kernel.TeamPool).Close, d.teams)
	}
	return d
}

// Close ends the goroutines of the device. Programs still run, without them.
func (d *Device) Close() error {
	if d.teams != nil {
		d.teams.Close()
	}
	return nil
}

// Name returns "cpu".
func (*Device) Name() string { return "cpu" }

// NewVector returns a vector of n zeros. The result is a *Vector.
func (d *Device) NewVector(n int) device.Vector { return &vec.Vector{Data: d.slabs.alloc(n)} }
