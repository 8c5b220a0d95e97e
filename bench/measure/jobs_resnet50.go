package measure

import (
	"fmt"

	"fspda/device"
	"fspda/device/devicetest"
)

// epsilon is the epsilon of ResNet-50's batch norms.
const epsilon = 1e-5

// convJobs returns the convolutions of ResNet-50 in three directions. The first layer needs no data
// gradient.
func convJobs(batch int) (jobs []job) {
	for _, s := range devicetest.ResNet50(batch) {
		p, q := s.Out()
		x, w, y := s.N*s.H*s.W*s.C, s.K*s.R*s.S*s.C, s.N*p*q*s.K
		shape := fmt.Sprintf("%d² %d→%d %d×%d/%d", s.H, s.C, s.K, s.R, s.S, s.Stride)
		add := func(name string, k device.Kernel, ins []int, out int) {
			j := kernelJob("conv", name+" "+shape, k, s.Dims(), 0, ins, []int{out})
			j.FLOPs, j.Count, j.Backward = s.FLOPs(), s.Count, k != device.Conv
			jobs = append(jobs, j)
		}
		add("forward", device.Conv, []int{x, w}, y)
		if s.C > 3 {
			add("grad-x", device.ConvGradX, []int{y, w}, x)
		}
		add("grad-w", device.ConvGradW, []int{x, y}, w)
	}
	return jobs
}

// norm is a batch norm of ResNet-50 with its fused operations, over images of side×side pixels;
// count is its occurrences in the network.
type norm struct {
	side, columns, count int
	kind                 string // "", "-relu", "-add-relu"
}

// norms lists the 53 batch norms of ResNet-50, one after each convolution: with ReLU inside a
// block, with addition and ReLU at its end, and plain in the shortcut of the first block of each
// stage.
var norms = []norm{
	{112, 64, 1, "-relu"},
	{56, 64, 6, "-relu"}, {56, 256, 3, "-add-relu"}, {56, 256, 1, ""},
	{56, 128, 1, "-relu"}, {28, 128, 7, "-relu"}, {28, 512, 4, "-add-relu"}, {28, 512, 1, ""},
	{28, 256, 1, "-relu"}, {14, 256, 11, "-relu"}, {14, 1024, 6, "-add-relu"}, {14, 1024, 1, ""},
	{14, 512, 1, "-relu"}, {7, 512, 5, "-relu"}, {7, 2048, 3, "-add-relu"}, {7, 2048, 1, ""},
}

// normJobs returns the batch norms of ResNet-50: forward, backward and, outside of a training step,
// with given statistics.
func normJobs(batch int) (jobs []job) {
	for _, n := range norms {
		rows := batch * n.side * n.side
		x, c := rows*n.columns, n.columns
		dims := []int{rows, c}
		add := func(k string, ins, outs []int) *job {
			j := kernelJob("norm", fmt.Sprintf("%s %d² %d", k, n.side, c), device.Kernel(k), dims, epsilon, ins, outs)
			jobs = append(jobs, j)
			return &jobs[len(jobs)-1]
		}
		forward, given := []int{x, c, c}, []int{x, c, c, c, c}
		backward, variance := []int{x, x, c, c, c}, 4
		grads := []int{x, c, c}
		switch n.kind {
		case "-relu":
			backward, variance = []int{x, x, x, c, c, c}, 5
		case "-add-relu":
			forward, given = append(forward, x), append(given, x)
			backward, variance = []int{x, x, x, c, c, c}, 5
			grads = []int{x, x, c, c}
		}
		// The statistics require a first pass over x, and the normalization a second one. The
		// gradient also reads x and dy twice, and y if a ReLU follows. With an addition, dy·[y > 0]
		// is an output, which the second pass reads instead of dy and y.
		again := map[string]int{"": 2, "-relu": 3, "-add-relu": 2}[n.kind]
		train := add("batch-norm"+n.kind, forward, []int{x, c, c})
		train.Count, train.Bytes = n.count, train.Bytes+4*float64(x)
		train.reads, train.writes = len(forward)-1, 1
		grad := add("batch-norm"+n.kind+"-grad", backward, grads)
		grad.Bytes += 4 * float64(again*x)
		grad.reads, grad.writes = len(backward)-3+again, len(grads)-2
		grad.Count, grad.Backward, grad.make = n.count, true, grad.withVariance(variance, backward, grads)
		eval := add("normalize"+n.kind, given, []int{x})
		eval.make = eval.withVariance(4, given, []int{x})
	}
	return jobs
}

// withVariance returns a make function that stores a valid variance in input number index.
func (j *job) withVariance(index int, ins, outs []int) func(*meter) (func() error, error) {
	c := &device.Call{Kernel: j.needs[0], Dims: j.Dims, Attr: epsilon}
	return func(m *meter) (func() error, error) {
		in, out := m.operands.all(ins), m.operands.all(outs)
		positive(in[index])
		return m.call(c, in, out), nil
	}
}

// poolJobs returns the two poolings of ResNet-50.
func poolJobs(batch int) []job {
	x, y, c := batch*112*112*64, batch*56*56*64, 2048
	dims, mean := []int{batch, 112, 112, 64, 3, 2, 1}, []int{batch, 49, c}
	jobs := []job{
		kernelJob("pool", "max-pool 112² 64 3×3/2", device.MaxPool, dims, 0, []int{x}, []int{y, y}),
		kernelJob("pool", "max-pool-grad 112² 64 3×3/2", device.MaxPoolGrad, dims, 0, []int{y, y}, []int{x}),
		kernelJob("pool", "avg-pool 7² 2048", device.AvgPool, mean, 0, []int{batch * 49 * c}, []int{batch * c}),
		kernelJob("pool", "avg-pool-grad 7² 2048", device.AvgPoolGrad, mean, 0, []int{batch * c},
			[]int{batch * 49 * c}),
	}
	jobs[1].needs = append(jobs[1].needs, device.MaxPool)
	jobs[1].make = func(m *meter) (func() error, error) { // the indices must come from a forward pass
		in, dy, value, at, dx := m.operands.take(x), m.operands.take(y), m.operands.take(y), m.operands.take(
			y), m.operands.take(x)
		if err := m.o.Call(&device.Call{Kernel: device.MaxPool, Dims: dims}, [][]float32{in},
			[][]float32{value, at}); err != nil {
			return nil, err
		}
		return m.call(&device.Call{Kernel: device.MaxPoolGrad, Dims: dims}, [][]float32{dy, at}, [][]float32{dx}), nil
	}
	for i := range jobs {
		jobs[i].Count, jobs[i].Backward = 1, i%2 == 1
	}
	return jobs
}
