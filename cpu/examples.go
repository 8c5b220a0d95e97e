package cpu

import "fspda/device"

// examples is what a Program keeps to read batches of bytes.
type examples struct {
	inPlace bool      // every call that reads the batch can read bytes
	coded   coded     // what they read, in a Run that does so
	at      []int     // of coded
	numbers []float32 // of a batch where they cannot; made when needed
}

// take returns the examples of b as numbers, or nil where the calls will read them as bytes.
func (x *examples) take(b device.Batch, features int) []float32 {
	x.coded = coded{}
	if b.Bytes == nil {
		return b.X
	}
	if len(b.Scale) > 1 {
		x.numbers = b.Numbers(x.numbers, features)
		return x.numbers
	}
	n := b.N()
	x.place(b, features)
	all := coded{bytes: b.Bytes, at: x.at, scale: b.Scale[0], shift: b.Shift[0]}
	if x.inPlace && takesBytes(n) {
		x.coded = all
		return nil
	}
	x.numbers = atLeast(x.numbers, n*features)[:n*features]
	decode(x.numbers, all, n, features)
	return x.numbers
}

// place works out where the examples begin.
func (x *examples) place(b device.Batch, features int) {
	n := b.N()
	if len(x.at) < n+spareRows {
		x.at = make([]int, n+spareRows)
	}
	for i := range x.at {
		row := min(i, n-1)
		if b.Rows != nil {
			row = int(b.Rows[row])
		}
		x.at[i] = row * features
	}
}

// readers are the kernels that can read examples as bytes, as their first input: they are matrix
// products, which move their factors about anyway.
var readers = map[device.Kernel]bool{
	device.Linear: true, device.LinearSigmoid: true, device.LinearReLU: true, device.LinearGradW: true, device.LinearGradWDecay: true,
}

// readsBytes says whether every call that reads the batch's examples can read them as bytes.
func readsBytes(code *device.Code) bool {
	all := device.Ref{Space: device.Input, Len: code.Batch * code.Features}
	for _, c := range code.Calls {
		for i, r := range c.In {
			if r.Space == device.Input && !(i == 0 && r == all && readers[c.Kernel] && c.Dims[0] == code.Batch) {
				return false
			}
		}
	}
	return true
}
