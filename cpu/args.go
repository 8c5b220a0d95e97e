package cpu

// operands is what a kernel works on. All lengths have been checked against the kernel's signature.
type operands struct {
	in, out [][]float32
	dims    []int
	attr    float64
	scratch []float32 // as many numbers as the kernel's scratch function says, holding anything
	bytes   *coded    // the first input where in[0] is nil
	lent    *lent     // the helpers of parallel, if any
}

// byteInput is the first input where that is the batch's bytes, else nothing.
func (o *operands) byteInput() coded {
	if o.in[0] != nil || o.bytes == nil {
		return coded{}
	}
	return *o.bytes
}

// room is what a part works in: its share of scratch, in whole lines.
func (o *operands) room(part, of int) []float32 {
	n := len(o.scratch) / of / perLine * perLine
	return o.scratch[part*n:][:n]
}
