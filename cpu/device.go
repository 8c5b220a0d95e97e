package cpu

import (
	"runtime"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/cpu/vec"
	"fspda/device"
)

// Device is the host: its vectors are slices of float32 in ordinary memory. A Device is safe for
// concurrent use, and the vectors of one Device may be used with all.
type Device struct {
	vec.Ops
	kernels kernel.Table
	bf16    bool             // factors of products and activations are rounded to bfloat16
	threads int              // goroutines that a Program computes on, its own included
	teams   *kernel.TeamPool // nil with one thread
	arenas  arenaPool
	slabs   slabAllocator
	alloc   func(n int) []float32 // memory of vectors: slabs.alloc, or the one of the option Memory
}

// Features says that vectors are in the memory of the process.
func (d *Device) Features() device.Features { return device.Features{Host: d} }

// Err returns nil: the host does not fail.
func (*Device) Err() error { return nil }

// Option configures a new Device.
type Option func(*options)

type options struct {
	threads int
	bf16    bool
	memory  func(n int) []float32
}

// Threads lets each running Program use n goroutines for its large kernels, its own included. The
// default is 1. Use fewer if the agents keep all processors busy already. Results are bit-identical
// for every n.
func Threads(n int) Option { return func(o *options) { o.threads = n } }

// BF16 makes Programs round the factors of products and of most convolutions to bfloat16, to the
// nearest and to even, and store values that only convolutions, batch norms and additions write and
// read in 16 bits. Sums, and all else that lies in memory, are float32. This is faster where the
// processor multiplies such numbers ([FastBF16]). Results are bit-identical on all processors with
// the same [BF16Sums].
func BF16() Option { return func(o *options) { o.bf16 = true } }

// FastBF16 reports whether products with the option BF16 run in assembly on this processor.
func FastBF16() bool { return tile.Pairs.Set() != nil }

// BF16Sums names the order in which sums are rounded with the option BF16, and what else is rounded.
// Devices of the same name give the same bits.
func BF16Sums() string { return tile.PairOrder() + ", activations of 16 bits" }

// Memory takes the memory of vectors from alloc, which returns n zeros that begin at a cache line;
// nil stands for ordinary memory.
func Memory(alloc func(n int) []float32) Option { return func(o *options) { o.memory = alloc } }

// New returns the host's device. With more than one thread it starts goroutines when a Program
// first needs them; they sleep while there is nothing to do, and end at Close or when the Device
// and its Programs are no longer reachable.
func New(opts ...Option) *Device {
	o := options{threads: 1}
	for _, opt := range opts {
		opt(&o)
	}
	d := &Device{threads: max(1, o.threads), kernels: kernels, bf16: o.bf16}
	if o.bf16 {
		d.kernels = pairKernels
	}
	if d.alloc = o.memory; d.alloc == nil {
		d.alloc = d.slabs.alloc
	}
	d.arenas.threads, d.arenas.back.L = d.threads, &d.arenas.mu
	if o.threads > 1 {
		d.teams = kernel.NewTeamPool(max(1, runtime.NumCPU()/o.threads), o.threads-1)
		runtime.AddCleanup(d, (*kernel.TeamPool).Close, d.teams)
	}
	return d
}

// Close ends the goroutines of the device. Programs still run afterwards, each on its own
// goroutine.
func (d *Device) Close() error {
	if d.teams != nil {
		d.teams.Close()
	}
	return nil
}

// Assembly reports whether the kernels run in assembly on this processor.
func Assembly() bool { return isa.Assembly() }

// Name returns "cpu".
func (*Device) Name() string { return "cpu" }

// NewVector returns a vector of n zeros. The result is a *Vector.
func (d *Device) NewVector(n int) device.Vector { return &vec.Vector{Data: d.alloc(n)} }
