package kernels

var _ = defineEach("relubits.cu", allElements, "relu_bits_%s y:p bits:p rows:l n:i bytes:i")

// ReLUBits applies ReLU to rows of n numbers in place, and writes one bit per positive number: bit
// j%8 of byte j/8 of a row, with `bytes` bytes per row.
func ReLUBits(e Element, y, bits Address, rows, n, bytes int) Call {
	return call(e.name("relu_bits"), over(rows*bytes), y, bits, rows, n, bytes)
}
