package cpu

import (
	"fmt"

	"fspda/device"
	"fspda/device/signature"
)

// operands is what a kernel works on. All lengths have been checked against the kernel's signature.
type operands struct {
	in, out [][]float32
	dims    []int
	attr    float64
	scratch []float32 // as many numbers as scratchSizes says, holding anything

	examples *examples // has the first input where that is nil

	lent *lent    // the helpers of parallel, if any
	gemm gemmCall // the product that parts are computed of
}

// kernels holds the function of every device.Kernel. What each computes is said there, and what it
// takes in fspda/device/signature. Those that need room to work in are in scratchSizes too.
var kernels = map[device.Kernel]func(*operands) error{
	device.Linear:              linear,
	device.LinearGradX:         linearGradX,
	device.LinearGradW:         linearGradW,
	device.Sigmoid:             sigmoid,
	device.SigmoidGrad:         sigmoidGrad,
	device.ReLU:                relu,
	device.ReLUGrad:            reluGrad,
	device.SoftmaxCrossEntropy: softmaxCrossEntropy,
	device.Score:               score,
	device.HalfSquare:          halfSquare,
	device.Scale:               scale,
	device.ScaleBy:             scaleBy,
	device.Add:                 add,
	device.AddScaled:           addScaled,
	device.MoveAverage:         moveAverage,

	device.LinearSigmoid:        linearSigmoid,
	device.LinearReLU:           linearReLU,
	device.LinearGradXSigmoid:   linearGradXSigmoid,
	device.LinearGradXReLU:      linearGradXReLU,
	device.LinearGradWDecay:     linearGradWDecay,
	device.Conv:                 conv,
	device.ConvGradX:            convGradX,
	device.ConvGradW:            convGradW,
	device.BatchNorm:            batchNorm(normPlain),
	device.BatchNormReLU:        batchNorm(normReLU),
	device.BatchNormAddReLU:     batchNorm(normAddReLU),
	device.BatchNormGrad:        batchNormGrad(normPlain),
	device.BatchNormReLUGrad:    batchNormGrad(normReLU),
	device.BatchNormAddReLUGrad: batchNormGrad(normAddReLU),
	device.Normalize:            normalize(normPlain),
	device.NormalizeReLU:        normalize(normReLU),
	device.NormalizeAddReLU:     normalize(normAddReLU),
	device.MaxPool:              maxPool,
	device.MaxPoolGrad:          maxPoolGrad,
	device.AvgPool:              avgPool,
	device.AvgPoolGrad:          avgPoolGrad,
}

// Call runs one kernel on host slices: in and out stand for c.In and c.Out, whose Refs are not
// looked at. The error names the kernel and the operand that does not fit c.Dims, or the row and
// value of a label that is no class.
func Call(c *device.Call, in, out [][]float32) error {
	s, err := signature.Find(c)
	if err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	if err := s.Fit(c.Dims, lengths(in), lengths(out)); err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	room := borrow(scratchSize(c, 1))
	defer room.giveBack()
	if err := kernels[c.Kernel](&operands{in: in, out: out, dims: c.Dims, attr: c.Attr,
		scratch: room.numbers}); err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	return nil
}

func lengths(s [][]float32) []int {
	n := make([]int, len(s))
	for i := range s {
		n[i] = len(s[i])
	}
	return n
}
