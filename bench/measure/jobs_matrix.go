package measure

import (
	"fmt"

	"fspda/device"
)

// product is a matrix product: m×n with inner length k.
type product struct {
	m, n, k        int
	transA, transB bool
}

// products lists the products of an MLP 784-100-10 at batch 256, a large one in three layouts, and
// two of convolutions.
var products = []product{
	{256, 100, 784, false, false}, {784, 100, 256, true, false}, {256, 10, 100, false, false}, {256, 100, 10, false,
		true}, {100, 10, 256, true, false},
	{1024, 1024, 1024, false, false}, {1024, 1024, 1024, true, false}, {1024, 1024, 1024, false, true},
	{3136, 64, 576, false, false}, {12544, 64, 147, false, false},
}

func (p product) name() string {
	layout := map[bool]string{false: "N", true: "T"}
	return fmt.Sprintf("%d×%d×%d %s%s", p.m, p.n, p.k, layout[p.transA], layout[p.transB])
}

func (p product) flops() float64 { return 2 * float64(p.m) * float64(p.n) * float64(p.k) }

// sgemmJobs returns plain products and linearJobs.
func sgemmJobs() (jobs []job) {
	for _, p := range products {
		jobs = append(jobs, job{
			KernelRow: KernelRow{Group: "sgemm", Name: p.name(), Dims: []int{p.m, p.n, p.k}, FLOPs: p.flops()},
			make: func(m *meter) (func() error, error) {
				a, b, c := m.operands.take(p.m*p.k), m.operands.take(p.k*p.n), m.operands.take(p.m*p.n)
				lda, ldb := p.k, p.n
				if p.transA {
					lda = p.m
				}
				if p.transB {
					ldb = p.k
				}
				return func() error {
					m.o.Gemm(p.transA, p.transB, p.m, p.n, p.k, 1, a, lda, b, ldb, 0, c, p.n)
					return nil
				}, nil
			}})
	}
	return append(jobs, linearJobs()...)
}

// linearJobs returns the matrix kernels for the layers of that MLP and the last layer of ResNet-50.
func linearJobs() (jobs []job) {
	for _, d := range [][]int{{256, 100, 784}, {256, 10, 100}, {8, 1000, 2048}} {
		for _, k := range []device.Kernel{device.Linear, device.LinearSigmoid, device.LinearReLU, device.LinearGradX,
			device.LinearGradXSigmoid, device.LinearGradXReLU, device.LinearGradW} {
			jobs = append(jobs, linearJob(k, d))
		}
	}
	return jobs
}

func linearJob(k device.Kernel, dims []int) job {
	m, n, in := dims[0], dims[1], dims[2]
	x, y, w := m*in, m*n, n*in
	var ins, outs []int
	switch k {
	case device.LinearGradX:
		ins, outs = []int{y, w}, []int{x}
	case device.LinearGradXSigmoid, device.LinearGradXReLU:
		ins, outs = []int{y, w, x}, []int{x}
	case device.LinearGradW:
		ins, outs = []int{x, y}, []int{w, n}
	default:
		ins, outs = []int{x, w, n}, []int{y}
	}
	j := kernelJob("sgemm", fmt.Sprintf("%s %d×%d×%d", k, m, n, in), k, dims, 0, ins, outs)
	j.FLOPs = product{m: m, n: n, k: in}.flops()
	return j
}

// kernelJob returns a job of one kernel on random operands of the given lengths, bounded by their
// bytes.
func kernelJob(group, name string, k device.Kernel, dims []int, attr float64, ins, outs []int) job {
	numbers := 0
	for _, n := range ins {
		numbers += n
	}
	for _, n := range outs {
		numbers += n
	}
	row := KernelRow{Group: group, Name: name, Dims: dims, Bytes: 4 * float64(numbers)}
	return job{KernelRow: row, needs: []device.Kernel{k}, make: func(m *meter) (func() error, error) {
		in, out := m.operands.all(ins), m.operands.all(outs)
		return m.call(&device.Call{Kernel: k, Dims: dims, Attr: attr}, in, out), nil
	}}
}

func (m *meter) call(c *device.Call, in, out [][]float32) func() error {
	if m.o.Card != nil {
		return m.onCard(c, in, out)
	}
	return func() error { return m.o.Call(c, in, out) }
}
