package cpu

import (
	"maps"

	"fspda/device"
)

// kernels holds the function of every device.Kernel. What each computes is said there, and what it takes in fspda/device/signature.
var kernels = merged(linearKernels, convKernels, normKernels, vecKernels)

func merged(tables ...table) table {
	all := table{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// Call runs one kernel on host slices: in and out stand for c.In and c.Out, whose Refs are not looked at. The error names the
// kernel and the operand that does not fit c.Dims, or the row and value of a label that is no class.
func Call(c *device.Call, in, out [][]float32) error { return kernels.call(c, in, out) }
