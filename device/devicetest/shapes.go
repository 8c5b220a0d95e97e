package devicetest

import (
	"fmt"

	"fspda/device"
)

// shape returns the lengths of the operands of a call, from its Dims.
func shape(c *device.Call) (in, out []int) {
	d := func(i int) int { return c.Dims[i] }
	switch c.Kernel {
	case device.Linear:
		m, n, k := d(0), d(1), d(2)
		return []int{m * k, n * k, n}, []int{m * n}
	case device.LinearGradX:
		m, n, k := d(0), d(1), d(2)
		return []int{m * n, n * k}, []int{m * k}
	case device.LinearGradW:
		m, n, k := d(0), d(1), d(2)
		return []int{m * k, m * n}, []int{n * k, n}
	case device.Sigmoid, device.ReLU, device.Scale:
		return []int{d(0)}, []int{d(0)}
	case device.SigmoidGrad, device.ReLUGrad, device.Add, device.AddScaled:
		return []int{d(0), d(0)}, []int{d(0)}
	case device.SoftmaxCrossEntropy:
		return []int{d(0) * d(1), d(0)}, []int{1, d(0) * d(1)}
	case device.Score:
		return []int{d(0) * d(1), d(0)}, []int{3}
	case device.HalfSquare:
		return []int{d(0)}, []int{1}
	case device.MoveAverage:
		return []int{d(0), d(0), 1}, []int{d(0)}
	case device.ScaleBy:
		return []int{d(0), 1}, []int{d(0)}
	case device.LinearSigmoid, device.LinearReLU, device.LinearGradXSigmoid, device.LinearGradXReLU,
		device.LinearGradWDecay:
		return fusedShape(c)
	case device.Conv, device.ConvGradX, device.ConvGradW:
		return convShape(c)
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU, device.BatchNormGrad,
		device.BatchNormReLUGrad,
		device.BatchNormAddReLUGrad, device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU,
		device.MaxPool, device.MaxPoolGrad, device.AvgPool, device.AvgPoolGrad:
		return normShape(c)
	}
	panic(fmt.Sprintf("devicetest: kernel %q is unknown", c.Kernel))
}

// checkShapes panics if the operands do not match the call.
func checkShapes(c *device.Call, in, out [][]float64) {
	wantIn, wantOut := shape(c)
	check := func(side string, got [][]float64, want []int) {
		if len(got) != len(want) {
			panic(fmt.Sprintf("devicetest: %s: %d %ss, want %d", c.Kernel, len(got), side, len(want)))
		}
		for i := range want {
			if len(got[i]) != want[i] {
				panic(fmt.Sprintf("devicetest: %s: %s %d has length %d, want %d", c.Kernel, side, i, len(got[i]),
					want[i]))
			}
		}
	}
	check("input", in, wantIn)
	check("output", out, wantOut)
}

// widths are around the lengths of one and two vector registers.
var widths = []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33}

// calls lists the tested calls of a kernel.
func calls(k device.Kernel) []*device.Call {
	var list []*device.Call
	add := func(attr float64, dims ...int) {
		list = append(list, &device.Call{Kernel: k, Dims: dims, Attr: attr, Name: fmt.Sprintf("%v", dims)})
	}
	switch k {
	case device.Linear, device.LinearGradX, device.LinearGradW,
		device.LinearSigmoid, device.LinearReLU, device.LinearGradXSigmoid, device.LinearGradXReLU,
		device.LinearGradWDecay:
		attr := fusedAttr(k)
		for i, m := range widths {
			for j, n := range widths {
				add(attr, m, n, widths[(i+j)%len(widths)])
				add(attr, m, n, widths[(2*i+3*j+5)%len(widths)])
			}
		}
		add(attr, 64, 100, 784)
		add(attr, 256, 10, 100)
		add(attr, 70, 130, 12) // several tiles in both directions
		add(attr, 12, 70, 260)
	case device.SoftmaxCrossEntropy, device.Score:
		for _, m := range widths {
			for _, n := range widths {
				add(0, m, n)
			}
		}
		add(0, 256, 10)
		add(0, 5, 1000)
		if k == device.SoftmaxCrossEntropy {
			add(0.1, 33, 10)
			add(0.1, 3, 1)
			add(0.3, 5, 1000)
			add(1, 2, 17)
			add(0.1, 2, 10007) // longer than the block size of the kernel
		}
	case device.Conv, device.ConvGradX, device.ConvGradW:
		for _, dims := range convCalls {
			add(0, dims[:]...)
		}
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU, device.BatchNormGrad,
		device.BatchNormReLUGrad,
		device.BatchNormAddReLUGrad, device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU:
		normCalls(add)
	case device.MaxPool, device.MaxPoolGrad:
		poolCalls(add)
	case device.AvgPool, device.AvgPoolGrad:
		avgPoolCalls(add)
	default:
		for i, n := range append([]int{64, 1000, 4099}, widths...) {
			add([]float64{0.1, 1, -2.5e-4, 0}[i%4], n)
		}
	}
	return list
}
