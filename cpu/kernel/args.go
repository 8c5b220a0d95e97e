package kernel

import "fmt"

// Args are the operands of a kernel. All lengths have been checked against the kernel's signature.
type Args struct {
	In, Out [][]float32
	Dims    []int
	Attr    float64
	Scratch []float32   // memory that is not initialized; its length is the result of the kernel's Scratch function
	Bytes   *ByteMatrix // the first input if In[0] is nil
	Half    Halves      // the operands of 16 bits, which are as many words of two numbers
	Workers *Workers    // the worker team; nil without one
}

// Halves says which operands of a kernel have numbers of 16 bits (bfloat16): bit i stands for
// operand i.
type Halves struct{ In, Out uint8 }

// Any reports whether there is such an operand.
func (h Halves) Any() bool { return h != Halves{} }

// Input reports whether input i is one.
func (h Halves) Input(i int) bool { return h.In>>i&1 != 0 }

// Output reports whether output i is one.
func (h Halves) Output(i int) bool { return h.Out>>i&1 != 0 }

// InputBytes returns the first input if it is given as bytes, else an empty matrix.
func (o *Args) InputBytes() ByteMatrix {
	if o.In[0] != nil || o.Bytes == nil {
		return ByteMatrix{}
	}
	return *o.Bytes
}

// ScratchPart returns the share of Scratch of one part, in whole cache lines.
func (o *Args) ScratchPart(part, of int) []float32 {
	n := len(o.Scratch) / of / LineFloats * LineFloats
	return o.Scratch[part*n:][:n]
}

// Position returns the position of the first of some rows, which a kernel of a part of a window
// gets as its operand at. All rows must have one of the given positions.
func Position(at []float32, rows, positions int) (int, error) {
	v := at[0]
	if p := int(v); v >= 0 && v <= float32(positions) && float32(p) == v && rows <= positions-p {
		return p, nil
	}
	return 0, fmt.Errorf("%d rows from position %v on, want an integer from 0 to %d: begin a new window", rows, v,
		positions-rows)
}
