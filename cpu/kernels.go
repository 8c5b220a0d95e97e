package cpu

import (
	"maps"

	"fspda/cpu/attention"
	"fspda/cpu/conv"
	"fspda/cpu/embed"
	"fspda/cpu/gemm"
	"fspda/cpu/kernel"
	"fspda/cpu/norm"
	"fspda/cpu/vec"
	"fspda/device"
)

// kernels holds the implementation of every device.Kernel. Package device defines their results,
// and device/signature their operands.
var kernels = merged(gemm.Kernels, conv.Kernels, norm.Kernels, vec.Kernels, attention.Kernels, embed.Kernels,
	norm.LayerKernels, norm.GroupKernels, norm.BiasKernels)

// roundingKernels are the kernels whose factors the option BF16 rounds, pairKernels all with that
// option.
var (
	roundingKernels = merged(gemm.PairKernels, conv.PairKernels)
	pairKernels     = merged(kernels, roundingKernels)
)

func merged(tables ...kernel.Table) kernel.Table {
	all := kernel.Table{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// Call runs one kernel on host slices: in and out are the operands, and the Refs of c.In and c.Out
// are ignored. The error names the kernel and the operand that does not fit c.Dims, or the row and
// value of a label that is not a class.
func Call(c *device.Call, in, out [][]float32) error { return kernels.Call(c, in, out) }
