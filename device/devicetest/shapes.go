package devicetest

import (
	"fmt"

	"fspda/device"
	"fspda/device/signature"
)

func shape(c *device.Call) (in, out []int) {
	s := signature.Of(c.Kernel)
	for _, operand := range s.In {
		in = append(in, s.Size(operand, c.Dims))
	}
	for _, operand := range s.Out {
		out = append(out, s.Size(operand, c.Dims))
	}
	return in, out
}

// checkShapes panics unless the operands have the lengths that the kernel needs.
func checkShapes(c *device.Call, in, out [][]float64) {
	lengths := func(operands [][]float64) (n []int) {
		for _, v := range operands {
			n = append(n, len(v))
		}
		return n
	}
	s, err := signature.Find(c)
	if err == nil {
		err = s.Fit(c.Dims, lengths(in), lengths(out))
	}
	if err != nil {
		panic(fmt.Sprintf("devicetest: %s: %v", c.Kernel, err))
	}
}

// widths are around the lengths of one and two vector registers.
var widths = []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33}

func calls(k device.Kernel) []*device.Call {
	var list []*device.Call
	add := func(attr float64, dims ...int) {
		list = append(list, &device.Call{Kernel: k, Dims: dims, Attr: attr, Name: fmt.Sprintf("%v", dims)})
	}
	switch k {
	case device.Linear, device.LinearGradX, device.LinearGradW, device.LinearSigmoid, device.LinearReLU,
		device.LinearGradXSigmoid, device.LinearGradXReLU, device.LinearGradWDecay:
		attr := 0.0
		if k == device.LinearGradWDecay {
			attr = -0.3
		}
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
	case device.SoftmaxCrossEntropy, device.SoftmaxCrossEntropyMixed, device.Score:
		for _, m := range widths {
			for _, n := range widths {
				add(0, m, n)
			}
		}
		add(0, 256, 10)
		add(0, 5, 1000)
		if k != device.Score {
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
	case device.MaxPool, device.MaxPoolGrad:
		poolCalls(add)
	case device.AvgPool, device.AvgPoolGrad:
		avgPoolCalls(add)
	default:
		if l, ok := languageKernels[k]; ok {
			l.calls(add)
			break
		}
		if isNorm(k) {
			normCalls(add)
			break
		}
		for i, n := range append([]int{64, 1000, 4099}, widths...) {
			add([]float64{0.1, 1, -2.5e-4, 0}[i%4], n)
		}
	}
	return list
}
