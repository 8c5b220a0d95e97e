package cpu

import (
	"maps"

	"fspda/cpu/conv"
	"fspda/cpu/gemm"
	"fspda/cpu/kernel"
	"fspda/cpu/norm"
	"fspda/cpu/vec"
	"fspda/device"
)

// kernels holds the function of every device.Kernel. What each computes is said there, and what it takes in fspda/device/signature.
var kernels = merged(gemm.Kernels, conv.Kernels, norm.Kernels, vec.Kernels)

func merged(tables ...kernel.Table) kernel.Table {
	all := kernel.Table{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// Call runs one kernel on host slices: in and out stand for c.In and c.Out, whose Refs are not looked at. The error names the
// kernel and the operand that does not fit c.Dims, or the row and value of a label that is no class.
func Call(c *device.Call, in, out [][]float32) error { return kernels.Call(c, in, out) }
