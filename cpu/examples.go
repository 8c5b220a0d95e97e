package cpu

import (
	"fspda/cpu/gemm"
	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// examples holds the input of a Program whose batches are bytes.
type examples struct {
	asBytes bool              // every call that reads the batch can read bytes
	matrix  kernel.ByteMatrix // the batch as bytes; empty in a run that reads numbers
	starts  []int             // row offsets of matrix
	numbers []float32         // the decoded batch, for calls that cannot read bytes; allocated when needed
}

// load returns the examples of b as numbers, or nil if the calls will read them as bytes.
func (x *examples) load(b device.Batch, features int) []float32 {
	x.matrix = kernel.ByteMatrix{}
	if b.Bytes == nil && b.Tokens == nil {
		return b.X
	}
	if b.Tokens != nil || len(b.Scale) > 1 {
		x.numbers = b.Numbers(x.numbers, features)
		return x.numbers
	}
	n := b.N()
	x.setStarts(b, features)
	all := kernel.ByteMatrix{Bytes: b.Bytes, Starts: x.starts, Scale: b.Scale[0], Shift: b.Shift[0]}
	if x.asBytes && gemm.TakesBytes(n) {
		x.matrix = all
		return nil
	}
	x.numbers = kernel.Grow(x.numbers, n*features)[:n*features]
	vec.Decode(x.numbers, all, n, features)
	return x.numbers
}

// setStarts computes where the rows of b begin.
func (x *examples) setStarts(b device.Batch, features int) {
	n := b.N()
	if len(x.starts) < n+kernel.ExtraRows {
		x.starts = make([]int, n+kernel.ExtraRows)
	}
	for i := range x.starts {
		row := min(i, n-1)
		if b.Rows != nil {
			row = int(b.Rows[row])
		}
		x.starts[i] = row * features
	}
}

// byteKernels are the kernels whose first input may be bytes: matrix products, which copy their
// operands anyway.
var byteKernels = map[device.Kernel]bool{
	device.Linear: true, device.LinearSigmoid: true, device.LinearReLU: true,
	device.LinearGradW: true, device.LinearGradWDecay: true,
}

// readsBytes reports whether every call that reads the examples of the batch can read them as
// bytes.
func readsBytes(code *device.Code) bool {
	all := device.Ref{Space: device.Input, Len: code.Batch * code.Features}
	for _, c := range code.Calls {
		for i, r := range c.In {
			if r.Space == device.Input && !(i == 0 && r == all && byteKernels[c.Kernel] && c.Dims[0] == code.Batch) {
				return false
			}
		}
	}
	return true
}
