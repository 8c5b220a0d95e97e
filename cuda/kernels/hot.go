package kernels

import (
	"fmt"
	"math"
)

// hotKernels are the kernels that agents call many times per iteration. Their calls avoid the
// lookup by name and the conversion of arguments.
var hotKernels struct{ gather, scatterAdd, moveCopy, addDiff *Kernel }

func init() {
	hotKernels.gather = table["gather"]
	hotKernels.scatterAdd = table["scatter_add"]
	hotKernels.moveCopy = table["move_copy"]
	hotKernels.addDiff = table["add_diff"]
}

func (k *Kernel) call(l Launch, args ...uint64) Call {
	if len(args) != len(k.Params) {
		panic(fmt.Sprintf("kernels: %s called with %d arguments, the table has %d parameters", k.Name, len(args),
			len(k.Params)))
	}
	return Call{Kernel: k, Launch: l, Args: args}
}

// coefficient encodes a float32 argument.
func coefficient(a float32) uint64 { return uint64(math.Float32bits(a)) }

// Gather is device.Device.Gather with k uint32 coordinates.
func Gather(dst, src, idx Address, k int) Call {
	return hotKernels.gather.call(blocks(k, 128), uint64(dst), uint64(src), uint64(idx), uint64(k))
}

// ScatterAdd is device.Device.ScatterAdd for one part of k numbers. An idx of 0 stands for all
// coordinates.
func ScatterAdd(dst Address, part Term, idx Address, k int) Call {
	return hotKernels.scatterAdd.call(over(k), uint64(dst), uint64(part.V), coefficient(part.A), uint64(idx), uint64(k))
}

// MoveCopy is device.Device.MoveCopy for k numbers. A w of 0 is none, and an idx of 0 stands for
// all coordinates.
func MoveCopy(q, copy, v, w, idx Address, k int) Call {
	return hotKernels.moveCopy.call(over(k), uint64(q), uint64(copy), uint64(v), uint64(w), uint64(idx), uint64(k))
}

// AddDiff is device.Device.AddDiff for k numbers and one or two terms. An idx of 0 stands for all
// coordinates.
func AddDiff(own, other, idx Address, k int, to ...Term) Call {
	t := two("AddDiff", to)
	return hotKernels.addDiff.call(over(k), uint64(own), uint64(other), uint64(idx), uint64(k),
		uint64(t[0].V), coefficient(t[0].A), uint64(t[1].V), coefficient(t[1].A))
}
