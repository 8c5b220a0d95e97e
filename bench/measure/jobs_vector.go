package measure

import (
	"fmt"
	"math"

	"fspda/device"
	"fspda/dist"
)

// elementLengths lists the activations of the MLP at batch 256 and of the first layer of ResNet-50
// at batch 8.
var elementLengths = []int{25_600, 6_422_528}

// elementJobs returns the elementwise kernels and the losses.
func elementJobs() (jobs []job) {
	for _, n := range elementLengths {
		one, dims := []int{n}, []int{n}
		for _, k := range []device.Kernel{device.Sigmoid, device.ReLU, device.Scale} {
			jobs = append(jobs, kernelJob("elementwise", fmt.Sprintf("%s %d", k, n), k, dims, 0.75, one, one))
		}
		for _, k := range []device.Kernel{device.SigmoidGrad, device.ReLUGrad, device.Add, device.AddScaled} {
			jobs = append(jobs, kernelJob("elementwise", fmt.Sprintf("%s %d", k, n), k, dims, 0.75, []int{n, n}, one))
		}
		jobs = append(jobs,
			kernelJob("elementwise", fmt.Sprintf("%s %d", device.ScaleBy, n), device.ScaleBy, dims, 0.75, []int{n, 1},
				one),
			kernelJob("elementwise", fmt.Sprintf("%s %d", device.HalfSquare, n), device.HalfSquare, dims, 0.75, one,
				[]int{1}))
	}
	for _, d := range [][]int{{256, 10}, {256, 1000}} {
		jobs = append(jobs, lossJob(device.SoftmaxCrossEntropy, d, []int{1, d[0] * d[1]}),
			lossJob(device.SoftmaxCrossEntropyMixed, d, []int{1, d[0] * d[1]}), lossJob(device.Score, d, []int{3}))
	}
	return jobs
}

func lossJob(k device.Kernel, d, outs []int) job {
	ins := []int{d[0] * d[1], d[0]}
	if k == device.SoftmaxCrossEntropyMixed {
		ins[1] *= 3
	}
	j := kernelJob("elementwise", fmt.Sprintf("%s %d×%d", k, d[0], d[1]), k, d, 0, ins, outs)
	j.make = func(m *meter) (func() error, error) {
		in, out := m.operands.all(ins), m.operands.all(outs)
		labels(in[1], d[1])
		for i := 2; i < len(in[1]) && len(in[1]) > d[0]; i += 3 {
			in[1][i] = 0.25 // the weight of the first class
		}
		return m.call(&device.Call{Kernel: k, Dims: d}, in, out), nil
	}
	return j
}

// vectorLengths lists the numbers of parameters of the MLP and of ResNet-50.
var vectorLengths = []int{79_510, 25_557_032}

var densities = []float64{0.1, 0.01, 0.001}

// vectorJobs returns the vector operations of the algorithms.
func vectorJobs(dev device.Device, by transfer) (jobs []job) {
	for _, d := range vectorLengths {
		for terms := 1; terms <= 6; terms++ {
			jobs = append(jobs, vectorJob(fmt.Sprintf("combine of %d, d=%d", terms, d), d, terms+1, terms, 1,
				func(v []device.Vector) func() {
					t := make([]device.Term, terms)
					for k := range t {
						// the first is 1, as in a step of an algorithm
						t[k] = device.Term{A: 1 - 0.3*float64(k), V: v[k+1]}
					}
					if terms == 1 {
						t[0].A = 0.75 // 1 would be a copy
					}
					return func() { dev.Do(device.Combine(v[0], t...)) }
				}))
		}
		jobs = append(jobs, vectorJob(fmt.Sprintf("dot, d=%d", d), d, 2, 2, 0,
			func(v []device.Vector) func() { return func() { device.InnerProduct(dev, v[0], v[1]) } }),
			vectorJob(fmt.Sprintf("adamw, d=%d", d), d, 4, 4, 3, func(v []device.Vector) func() {
				a := device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01, Scale1: 1, Scale2: 1, Eps: 1e-8,
					Decay: 0.01}
				dev.Do(device.Combine(v[2])) // a mean square is not negative
				return func() { dev.Do(device.AdamW(a, v[0], v[1], v[2], v[3])) }
			}),
			vectorJob(fmt.Sprintf("add-diff to 2, d=%d", d), d, 4, 4, 2, func(v []device.Vector) func() {
				return func() {
					dev.Do(device.AddDiff(v[0], v[1], nil, device.Term{A: 0.25, V: v[2]},
						device.Term{A: -0.5, V: v[3]}))
				}
			}))
		for _, density := range densities {
			jobs = append(jobs, maskedJobs(d, density, by)...)
		}
	}
	return jobs
}

func vectorJob(name string, d, vectors, reads, writes int, bind func([]device.Vector) func()) job {
	return job{KernelRow: KernelRow{Group: "vector", Name: name, Dims: []int{d}, Bytes: 4 * float64((reads+writes)*d)},
		reads: reads, writes: writes, make: func(m *meter) (func() error, error) {
			v := make([]device.Vector, vectors)
			for i := range v {
				v[i] = m.vectors.take(d)
			}
			return m.queue(bind(v)), nil
		}}
}

// viewProducts lists the matrices whose products with a direction are measured, as in PowerGossip:
// the first layer of the MLP, and the last of ResNet-50.
var viewProducts = [][2]int{{100, 784}, {1000, 2048}}

// productJobs returns the products of PowerGossip: a row times a matrix, and the addition of a
// column times a row to a matrix.
func productJobs(dev device.Device) (jobs []job) {
	for _, d := range viewProducts {
		rows, cols := d[0], d[1]
		job := func(m, n, k int, bytes int, op func(matrix, row, column device.Matrix) device.Op) job {
			return job{KernelRow: KernelRow{Group: "vector", Name: fmt.Sprintf("multiply %d×%d×%d", m, n, k),
				Dims: []int{m, n, k}, Bytes: 4 * float64(bytes)}, make: func(m *meter) (func() error, error) {
				row := device.Rows(m.vectors.take(cols), 0, 1, cols)
				column := device.Rows(m.vectors.take(rows), 0, rows, 1)
				product := op(device.Rows(m.vectors.take(rows*cols), 0, rows, cols), row, column)
				return m.queue(func() { dev.Do(product) }), nil
			}}
		}
		jobs = append(jobs,
			job(1, cols, rows, rows*cols+rows+cols, func(matrix, row, column device.Matrix) device.Op {
				return device.Multiply(row, 1, column.T(), matrix, 0)
			}),
			job(rows, cols, 1, 2*rows*cols+rows+cols, func(matrix, row, column device.Matrix) device.Op {
				return device.Multiply(matrix, 0.25, column, row, 1)
			}))
	}
	return jobs
}

// maskedJobs returns gather, add-diff to two vectors, and both after a mask draw: one end of an
// exchange over an edge.
func maskedJobs(d int, density float64, by transfer) []job {
	k, reads, writes := density*float64(d), touchedBytes(d, density, by.read), touchedBytes(d, density, by.write)
	at := fmt.Sprintf("at %v %%, d=%d", 100*density, d)
	bind := func(name string, bytes float64, run func(m *meter, e *exchange) func() error) job {
		return job{KernelRow: KernelRow{Group: "vector", Name: name + " " + at, Dims: []int{d}, Bytes: bytes},
			make: func(m *meter) (func() error, error) {
				e, err := newExchange(m, d, density)
				if err != nil {
					return nil, err
				}
				return run(m, e), nil
			}}
	}
	return []job{
		bind("gather", 8*k+reads, func(m *meter, e *exchange) func() error {
			return m.queue(func() { m.o.Device.Do(device.Gather(e.own, e.x, e.index)) })
		}),
		bind("add-diff to 2", 12*k+2*reads+2*writes, func(m *meter, e *exchange) func() error {
			return m.queue(func() { e.add(m) })
		}),
		bind("exchange", 4*k+8*k+reads+12*k+2*reads+2*writes, func(m *meter, e *exchange) func() error {
			return func() error {
				e.t++
				e.coordinates = e.mask.Draw(e.coordinates, e.t, 0, 1)
				e.index = m.o.Device.NewIndex(e.coordinates, e.index)
				m.o.Device.Do(device.Gather(e.own, e.x, e.index))
				e.add(m)
				return nil
			}
		}),
	}
}

// transfer is how many numbers memory moves at least where one of them is read or written.
type transfer struct{ read, write int }

// A CPU moves cache lines. A GPU fetches lines of 128 bytes and writes 64: on an H200 (commit
// 6e29ab53) the counters dram__bytes_read and dram__bytes_write of an add-diff to 2 at 10 % of
// 25,557,032 coordinates were 233.5 and 142 to 170 MB. Touched sectors of 32 bytes would be 147 and
// 116 MB, by these units they are 228 and 167 MB.
var (
	ofCPU = transfer{16, 16}
	ofGPU = transfer{32, 16}
)

// touchedBytes returns the expected bytes in the lines that hold a masked coordinate.
func touchedBytes(d int, density float64, line int) float64 {
	return 4 * float64(d) * (1 - math.Pow(1-density, float64(line)))
}

// exchange is one end of an edge.
type exchange struct {
	mask        dist.Mask
	t           int
	coordinates []uint32
	index       device.Index
	x, dual     device.Vector
	own, other  device.Vector
}

func newExchange(m *meter, d int, density float64) (*exchange, error) {
	mask, err := dist.ParseMask("stratified", density, []int{d}, 1)
	if err != nil {
		return nil, err
	}
	e := &exchange{mask: mask, x: m.vectors.take(d), dual: m.vectors.take(d), own: m.vectors.take(mask.Len()),
		other: m.vectors.take(mask.Len())}
	e.coordinates = mask.Draw(nil, 0, 0, 1)
	e.index = m.o.Device.NewIndex(e.coordinates, nil)
	return e, nil
}

func (e *exchange) add(m *meter) {
	m.o.Device.Do(device.AddDiff(e.own, e.other, e.index, device.Term{A: 0.25, V: e.x},
		device.Term{A: -0.5, V: e.dual}))
}

// maskJobs returns mask draws, measured in time per coordinate.
func maskJobs() (jobs []job) {
	for _, d := range vectorLengths {
		for _, density := range densities {
			for _, spec := range []string{"randk", "bernoulli", "stratified"} {
				jobs = append(jobs, job{KernelRow: KernelRow{Group: "masks",
					Name: fmt.Sprintf("%s at %v %%, d=%d", spec, 100*density, d), Dims: []int{d},
					Items: math.Round(density * float64(d))}, make: func(*meter) (func() error, error) {
					mask, err := dist.ParseMask(spec, density, []int{d}, 1)
					if err != nil {
						return nil, err
					}
					var dst []uint32
					t := 0
					return func() error { dst = mask.Draw(dst, t, 0, 1); t++; return nil }, nil
				}})
			}
		}
	}
	return jobs
}
