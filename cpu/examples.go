package cpu

import (
	"fspda/cpu/gemm"
	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// examples is what a Program keeps to read batches of bytes.
type examples struct {
	asBytes bool              // every call that reads the batch can read bytes
	matrix  kernel.ByteMatrix // what they read, in a Run that does so
	starts  []int             // of coded
	numbers []float32         // of a batch where they cannot; made when needed
}

// take returns the examples of b as numbers, or nil where the calls will read them as bytes.
func (x *examples) load(b device.Batch, features int) []float32 {
	x.matrix = kernel.ByteMatrix{}
	if b.Bytes == nil {
		return b.X
	}
	if len(b.Scale) > 1 {
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

// place works out where the examples begin.
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

// readers are the kernels that can read examples as bytes, as their first input: they are matrix
// products, which move their factors about anyway.
var byteKernels = map[device.Kernel]bool{
	device.Linear: true, device.LinearSigmoid: true, device.LinearReLU: true, device.LinearGradW: true, device.LinearGradWDecay: true,
}

// readsBytes says whether every call that reads the batch's examples can read them as bytes.
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
