package measure

import (
	"fmt"
	"time"

	"fspda/device"
)

// orthogonalShapes lists matrices of hidden layers, as Muon orthogonalizes them: how many, rows and
// columns.
var orthogonalShapes = [][3]int{
	{16, 128, 128}, {8, 128, 512}, // gpt-nano
	{1, 768, 768}, {1, 768, 3072}, // a layer of GPT-2
	{1, 64, 64}, {1, 256, 64}, {1, 64, 576}, // ResNet-50
	{1, 128, 1152}, {1, 256, 2304}, {1, 512, 4608}, {1, 512, 2048}, // ResNet-50
}

// orthogonalJobs returns orthogonalizations. Their rate counts the products of all steps, of
// symmetric ones a half unless a Card computes them, which multiplies whole matrices.
func (o KernelsOptions) orthogonalJobs() (jobs []job) {
	for _, d := range orthogonalShapes {
		count, rows, cols := d[0], d[1], d[2]
		side, long := min(rows, cols), max(rows, cols)
		m, n := float64(side), float64(long)
		flops := device.OrthogonalSteps * (3*m*m*n + m*m*m)
		if o.Card != nil {
			flops = 2 * device.OrthogonalSteps * (2*m*m*n + m*m*m)
		}
		jobs = append(jobs, job{KernelRow: KernelRow{Group: "vector",
			Name: fmt.Sprintf("orthogonalize %d of %d×%d", count, rows, cols), Dims: d[:],
			FLOPs: float64(count) * flops},
			like: &product{m: side, n: long, k: side}, make: func(m *meter) (func() error, error) {
				var matrices []device.Orthogonal
				for i := range count {
					matrices = append(matrices, device.Orthogonal{Scale: 1,
						Block: device.Block{Offset: i * rows * cols, Rows: rows, Cols: cols}})
				}
				op := device.Orthogonalize(m.vectors.take(count*rows*cols), matrices...)
				return m.queue(func() { o.Device.Do(op) }), nil
			}})
	}
	return jobs
}

// gemmRate returns a function that measures the rate of a product of our own in GFLOP/s.
func (m *meter) gemmRate(p product) func(time.Duration) float64 {
	m.copies.reset()
	a, b, c := m.copies.take(p.m*p.k), m.copies.take(p.k*p.n), m.copies.take(p.m*p.n)
	return func(time.Duration) float64 {
		took, _ := timed(func() error {
			m.o.Gemm(false, false, p.m, p.n, p.k, 1, a, p.k, b, p.n, 0, c, p.n)
			return nil
		})
		return p.flops() / float64(took.Nanoseconds())
	}
}
