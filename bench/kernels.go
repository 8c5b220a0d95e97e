package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fspda/device"
	"fspda/train"
)

// KernelsOptions say which kernels to measure, and with what.
type KernelsOptions struct {
	Device  device.Device
	Kernels []device.Kernel                                 // those to be had; work that needs another is skipped
	Call    func(c *device.Call, in, out [][]float32) error // runs one kernel
	// Gemm is C = alpha·op(A)·op(B) + beta·C, op(A) m×k and op(B) k×n, as the BLAS has it for
	// row-major matrices.
	Gemm func(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32,
		c []float32, ldc int)
	Peak func(d time.Duration) float64 // measures the multiply-adds of one core over a stretch of d, GFLOP/s
	// Traffic measures reading the first vectors and writing the others, side by side, GB/s. Where
	// it is nil that limit is not of interest.
	Bandwidth func(v [][]float32, reads int) float64
	Floats    func(n int) []float32 // memory as the device's vectors have it
	// Card is what work is measured on where that is not the calling goroutine. Operands come from
	// the host, Peak is the card's, and of Gemm, Traffic and draws of masks nothing is measured.
	Card   *Card
	Batch  int           // images of the layers of ResNet-50
	Filter string        // parts of "group/name", by commas: any of them; "" is all
	Each   time.Duration // how long to measure each kernel and shape
}

// Groups lists the groups of work, in their order.
func Groups() []string {
	return []string{"sgemm", "conv", "norm", "pool", "elementwise", "vector", "masks"}
}

// Kernels times kernels on the calling goroutine. Each is measured in turns with the limit that its
// work has, so that a slow moment of the machine meets both, and the fastest turn counts for both.
// Operands are random.
func Kernels(ctx context.Context, o KernelsOptions) (KernelsReport, error) {
	if o.Each <= 0 {
		return KernelsReport{}, &train.ConfigError{Key: "each", Got: o.Each.String(),
			Want: "expected a time above 0, such as 300ms"}
	}
	if o.Batch < 1 {
		return KernelsReport{}, &train.ConfigError{Key: "batch", Got: fmt.Sprint(o.Batch),
			Want: "expected a number of images above 0"}
	}
	r := KernelsReport{Batch: o.Batch}
	if o.Card != nil {
		r.Card = o.Card.What
	}
	wanted := slices.DeleteFunc(o.jobs(), func(j job) bool { return !o.wants(j) })
	if len(wanted) == 0 {
		return r, &train.ConfigError{Key: "filter", Got: o.Filter,
			Want: "expected a part of group/name, or several by commas; the groups are " + strings.Join(Groups(), ", ")}
	}
	m := &meter{o: o, operands: &pool{floats: o.Floats}, copies: &pool{floats: o.Floats}, vectors: newVectors(o.Device)}
	for _, j := range wanted {
		if missing := o.missing(j.needs); len(missing) > 0 {
			r.skip(missing)
			continue
		}
		row, err := m.measure(ctx, j)
		if err != nil {
			return r, fmt.Errorf("bench: %s/%s: %w", j.group, j.name, err)
		}
		r.Rows = append(r.Rows, row)
	}
	r.PeakGFLOPs = m.peak
	r.sum(wanted)
	return r, nil
}

// job is one kernel at one shape.
type job struct {
	group, name string
	needs       []device.Kernel
	dims        []int
	flops       float64 // of one run; where it is not 0 the limit is the multiply-add
	// of one run, every operand read or written once; where there are no flops the limit is a copy
	// of as many
	bytes    float64
	reads    int     // vectors or matrices that one run reads, as often as it does
	writes   int     // those it writes; both 0: no mix is measured
	items    float64 // of one run, where what counts is the time for each
	count    int     // how often one step of ResNet-50 runs it; 0 outside of that
	backward bool    // in the backward pass
	make     func(m *meter) (run func() error, err error)
}

func (o KernelsOptions) jobs() []job {
	if o.Card != nil {
		return slices.Concat(linearJobs(), convJobs(o.Batch), normJobs(o.Batch), poolJobs(o.Batch), elementJobs(),
			vectorJobs(o.Device, sector))
	}
	return slices.Concat(sgemmJobs(), convJobs(o.Batch), normJobs(o.Batch), poolJobs(o.Batch), elementJobs(),
		vectorJobs(o.Device, cacheLine), maskJobs())
}

func (o KernelsOptions) wants(j job) bool {
	return slices.ContainsFunc(strings.Split(o.Filter, ","),
		func(part string) bool { return strings.Contains(j.group+"/"+j.name, part) })
}

func (o KernelsOptions) missing(needs []device.Kernel) []device.Kernel {
	return slices.DeleteFunc(slices.Clone(needs), func(k device.Kernel) bool { return slices.Contains(o.Kernels, k) })
}

// meter measures jobs.
type meter struct {
	o                KernelsOptions
	operands, copies *pool
	vectors          *vectors
	peak             float64
	times            int    // a run of the job is as many runs of its kernel
	route            string // what computes the job, where there is a choice
}

const (
	minRounds = 3
	// what is faster is repeated for as long, so that the clock's own cost is small
	turn       = 100 * time.Microsecond
	maxCopyLen = 25_557_032 // numbers: far beyond every cache
)

// measure runs a job and its limit in turns.
func (m *meter) measure(ctx context.Context, j job) (KernelRow, error) {
	row := KernelRow{Group: j.group, Name: j.name, Dims: j.dims, Count: j.count, Backward: j.backward, FLOPs: j.flops,
		Bytes: j.bytes, Items: j.items}
	m.operands.reset()
	m.vectors.reset()
	m.times, m.route = 1, ""
	run, err := j.make(m)
	if err != nil {
		return row, err
	}
	limit, mix, best, most := m.limit(j), m.bandwidth(j), 0.0, 0.0
	fastest := time.Duration(math.MaxInt64)
	stretch := turn
	for begin, rounds := time.Now(), 0; rounds < minRounds || time.Since(begin) < m.o.Each; rounds++ {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		if rounds > 0 { // the length of a run is not known before
			best, most = max(best, limit(stretch)), max(most, mix())
		}
		took, err := m.timed(run)
		if err != nil {
			return row, err
		}
		fastest = min(fastest, took)
		stretch = max(turn, fastest)
	}
	row.Route = m.route
	row.finish(fastest, best)
	if most > 0 {
		row.Bandwidth, row.BandwidthShare = most, row.Rate/most
	}
	return row, nil
}

// timed returns the time of one run. What is short runs once before, so that caches are warm as far
// as they can be, and then often.
func timed(run func() error) (time.Duration, error) {
	begin := time.Now()
	if err := run(); err != nil {
		return 0, err
	}
	first := time.Since(begin)
	if first > 100*turn {
		return first, nil
	}
	repeat := 1 + int(turn/max(1, first))
	begin = time.Now()
	for range repeat {
		if err := run(); err != nil {
			return 0, err
		}
	}
	return max(1, time.Since(begin)/time.Duration(repeat)), nil
}

// limit returns what measures the limit of a job, in the unit of its rate: over a stretch as long
// as the work takes.
func (m *meter) limit(j job) func(stretch time.Duration) float64 {
	switch {
	case j.items > 0:
		return func(time.Duration) float64 { return 0 }
	case j.flops > 0:
		return func(stretch time.Duration) float64 {
			p := m.o.Peak(stretch)
			m.peak = max(m.peak, p)
			return p
		}
	}
	if m.o.Card != nil {
		return m.copyOnCard(int(j.bytes))
	}
	n := min(int(j.bytes/8), maxCopyLen)
	m.copies.reset()
	dst, src := m.copies.take(n), m.copies.take(n)
	return func(time.Duration) float64 {
		took, _ := timed(func() error { copy(dst, src); return nil })
		return 8 * float64(n) / float64(took.Nanoseconds())
	}
}

// maxBandwidthLen is how many numbers of each vector a mix has at most: several of them are beyond every
// cache.
const maxBandwidthLen = 1 << 23

// bandwidth returns what measures the traffic of a job alone, with vectors as long as its own.
func (m *meter) bandwidth(j job) func() float64 {
	all := j.reads + j.writes
	if m.o.Bandwidth == nil || all == 0 {
		return func() float64 { return 0 }
	}
	v := make([][]float32, all)
	for k := range v {
		v[k] = m.copies.take(min(int(j.bytes/4)/all, maxBandwidthLen))
	}
	return func() float64 { return m.o.Bandwidth(v, j.reads) }
}
