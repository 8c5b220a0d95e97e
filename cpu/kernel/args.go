package kernel

// operands is what a kernel works on. All lengths have been checked against the kernel's signature.
type Args struct {
	In, Out [][]float32
	Dims    []int
	Attr    float64
	Scratch []float32   // as many numbers as the kernel's scratch function says, holding anything
	Bytes   *ByteMatrix // the first input where in[0] is nil
	Workers *Workers    // the helpers of parallel, if any
}

// byteInput is the first input where that is the batch's bytes, else nothing.
func (o *Args) InputBytes() ByteMatrix {
	if o.In[0] != nil || o.Bytes == nil {
		return ByteMatrix{}
	}
	return *o.Bytes
}

// room is what a part works in: its share of scratch, in whole lines.
func (o *Args) ScratchPart(part, of int) []float32 {
	n := len(o.Scratch) / of / LineFloats * LineFloats
	return o.Scratch[part*n:][:n]
}
