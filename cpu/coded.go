package cpu

import (
	"fmt"

	"fspda/device"
)

// coded is a matrix of bytes that stand for numbers, scale·byte + shift each, the product rounded
// first. Its rows may lie anywhere: element i,j is bytes[at[i]+j], or bytes[at[j]+i] where it is
// turned.
type coded struct {
	bytes        []uint8
	at           []int
	turned       bool
	scale, shift float32
}

// spareRows is how many rows at has more than the matrix: they are read, and what comes of them is
// not used.
const spareRows = 2 * 32

// from is the matrix that begins at element i,j.
func (v coded) from(i, j int) coded {
	if v.turned {
		i, j = j, i
	}
	v.at, v.bytes = v.at[i:], v.bytes[j:]
	return v
}

// transposed is the same with rows and columns exchanged.
func (v coded) transposed() coded {
	v.turned = !v.turned
	return v
}

// part is from, for a matrix that may have no bytes at all.
func (v coded) part(i, j int) coded {
	if v.bytes == nil {
		return v
	}
	return v.from(i, j)
}

// check panics unless v, which is not turned, holds rows×cols elements: the assembly trusts what it
// is given.
func (v *coded) check(name string, rows, cols int) {
	if len(v.at) < rows+spareRows {
		panic(fmt.Sprintf("cpu: gemm: %s has %d rows of bytes, want %d and %d", name, len(v.at), rows, spareRows))
	}
	for i, first := range v.at[:rows+spareRows] {
		if first < 0 || first > len(v.bytes)-cols {
			panic(fmt.Sprintf("cpu: gemm: row %d of %s begins at byte %d of %d, want %d from there on", i, name, first,
				len(v.bytes), cols))
		}
	}
}

// number is what a byte stands for.
func (v *coded) number(b uint8) float32 { return float32(float32(b)*v.scale) + v.shift }

// decodeRowsGo writes dst[i·ds+j] = element i,j for the first rows and columns of a v that is not
// turned.
func decodeRowsGo(dst []float32, ds int, v coded, rows, cols int) {
	for i, first := range v.at[:rows] {
		d := dst[i*ds:][:cols]
		for j, b := range v.bytes[first:][:cols] {
			d[j] = v.number(b)
		}
	}
}

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
	for i := range n {
		for j := 0; j < features; j += vecBlock {
			cols := min(vecBlock, features-j)
			decodeRows(x.numbers[i*features+j:], cols, all.from(i, j), 1, cols)
		}
	}
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
