package kernel

// Args are the operands of a kernel. All lengths have been checked against the kernel's signature.
type Args struct {
	In, Out [][]float32
	Dims    []int
	Attr    float64
	Scratch []float32   // as many numbers as the kernel's Scratch function returns, not initialized
	Bytes   *ByteMatrix // the first input if In[0] is nil
	Workers *Workers    // the worker team; nil without one
}

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
