package measure

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

// KernelsOptions configures [Kernels].
type KernelsOptions struct {
	Device  device.Device
	Kernels []device.Kernel                                 // supported ones; jobs that need another are skipped
	Call    func(c *device.Call, in, out [][]float32) error // runs one kernel
	// Gemm computes C = alpha·op(A)·op(B) + beta·C, op(A) m×k and op(B) k×n, with the arguments of
	// BLAS for row-major matrices.
	Gemm func(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32,
		c []float32, ldc int)
	Peak func(d time.Duration) float64 // measures the multiply-adds of one core for a duration, GFLOP/s
	// Bandwidth measures reading the first vectors and writing the others, element by element, in
	// GB/s. nil omits that limit.
	Bandwidth func(v [][]float32, reads int) float64
	Floats    func(n int) []float32 // allocates memory as device vectors have it
	// Card is the asynchronous device to measure; nil measures the calling goroutine. With a Card,
	// operands come from the host, Peak is the peak rate of the Card, and Gemm, Bandwidth and mask
	// draws are not measured.
	Card   *Card
	Batch  int           // images of the layers of ResNet-50
	Filter string        // substrings of "group/name", separated by commas; "" is all
	Each   time.Duration // duration for each kernel and shape
}

// Groups lists the groups of jobs in order.
func Groups() []string {
	return []string{"sgemm", "conv", "norm", "pool", "elementwise", "vector", "masks"}
}

// Kernels times kernels on the calling goroutine. Each job alternates with its limit, so that other
// load on the machine affects both, and the fastest turn of each counts. Operands are random.
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
	wanted := slices.DeleteFunc(o.jobs(), func(j job) bool { return !Selects(o.Filter, j.Group+"/"+j.Name) })
	if len(wanted) == 0 {
		return r, &train.ConfigError{Key: "filter", Got: o.Filter,
			Want: "expected substrings of group/name, separated by commas; the groups are " + strings.Join(Groups(),
				", ")}
	}
	m := &meter{o: o, operands: &pool{floats: o.Floats}, copies: &pool{floats: o.Floats}, vectors: newVectors(o.Device)}
	for _, j := range wanted {
		if missing := o.missing(j.needs); len(missing) > 0 {
			r.skip(missing)
			continue
		}
		row, err := m.measure(ctx, j)
		if err != nil {
			return r, fmt.Errorf("measure: measure %s/%s: %w", j.Group, j.Name, err)
		}
		r.Rows = append(r.Rows, row)
	}
	r.PeakGFLOPs = m.peak
	r.sum(wanted)
	return r, nil
}

// job is one kernel at one shape.
type job struct {
	// Without results. If FLOPs is not 0, the limit is the multiply-add rate; else it is a copy of
	// as many bytes as Bytes, which counts every operand once. If Items is not 0, the rate is the
	// time per item.
	KernelRow
	needs  []device.Kernel
	like   *product // Without a Card, the limit is the rate of this product.
	reads  int      // operands that one run reads, counted with repetition
	writes int      // operands that it writes; if both are 0, no bandwidth bound is measured
	make   func(m *meter) (run func() error, err error)
}

func (o KernelsOptions) jobs() []job {
	if o.Card != nil {
		return slices.Concat(linearJobs(), convJobs(o.Batch), normJobs(o.Batch), poolJobs(o.Batch), elementJobs(),
			vectorJobs(o.Device, ofGPU), productJobs(o.Device), o.orthogonalJobs())
	}
	return slices.Concat(sgemmJobs(), convJobs(o.Batch), normJobs(o.Batch), poolJobs(o.Batch), elementJobs(),
		vectorJobs(o.Device, ofCPU), productJobs(o.Device), o.orthogonalJobs(),
		maskJobs())
}

// Selects reports whether a name contains one of the comma-separated parts of a filter.
func Selects(filter, name string) bool {
	return slices.ContainsFunc(strings.Split(filter, ","),
		func(part string) bool { return strings.Contains(name, strings.TrimSpace(part)) })
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
	times            int    // kernel executions per run of the job
	route            string // the implementation of the job, if there are several
}

const (
	minRounds = 3
	// shorter jobs are repeated for this long, so that the cost of the clock is small
	turn       = 100 * time.Microsecond
	maxCopyLen = 25_557_032 // elements; far beyond any cache
)

func (m *meter) measure(ctx context.Context, j job) (KernelRow, error) {
	row := j.KernelRow
	m.operands.reset()
	m.vectors.reset()
	m.times, m.route = 1, ""
	run, err := j.make(m)
	if err != nil {
		return row, err
	}
	limit, bound, best, bandwidth := m.limit(j), m.bandwidth(j), 0.0, 0.0
	fastest := time.Duration(math.MaxInt64)
	stretch := turn
	for begin, rounds := time.Now(), 0; rounds < minRounds || time.Since(begin) < m.o.Each; rounds++ {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		if rounds > 0 { // the first round determines the time of a run
			best, bandwidth = max(best, limit(stretch)), max(bandwidth, bound())
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
	if bandwidth > 0 {
		row.Bandwidth, row.BandwidthShare = bandwidth, row.Rate/bandwidth
	}
	return row, nil
}

// timed returns the time of one run. Short runs are repeated, after one that warms the caches.
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

// limit returns a function that measures the limit of a job in the unit of its rate, for about the
// duration of a run.
func (m *meter) limit(j job) func(stretch time.Duration) float64 {
	switch {
	case j.Items > 0:
		return func(time.Duration) float64 { return 0 }
	case j.like != nil && m.o.Card == nil:
		return m.gemmRate(*j.like)
	case j.FLOPs > 0:
		return func(stretch time.Duration) float64 {
			p := m.o.Peak(stretch)
			m.peak = max(m.peak, p)
			return p
		}
	}
	if m.o.Card != nil {
		return m.copyOnCard(int(j.Bytes))
	}
	n := min(int(j.Bytes/8), maxCopyLen)
	m.copies.reset()
	dst, src := m.copies.take(n), m.copies.take(n)
	return func(time.Duration) float64 {
		took, _ := timed(func() error { copy(dst, src); return nil })
		return 8 * float64(n) / float64(took.Nanoseconds())
	}
}

// maxBandwidthLen is the maximum vector length of a bandwidth bound: several such vectors exceed
// any cache.
const maxBandwidthLen = 1 << 23

// bandwidth returns a function that measures the bandwidth bound of a job: its reads and writes
// without arithmetic.
func (m *meter) bandwidth(j job) func() float64 {
	all := j.reads + j.writes
	if m.o.Bandwidth == nil || all == 0 {
		return func() float64 { return 0 }
	}
	v := make([][]float32, all)
	for k := range v {
		v[k] = m.copies.take(min(int(j.Bytes/4)/all, maxBandwidthLen))
	}
	return func() float64 { return m.o.Bandwidth(v, j.reads) }
}
