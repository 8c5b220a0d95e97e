package kernels

var _ = defineEach("relubits.cu", allElements, "relu_bits_%s y:p bits:p rows:l n:i bytes:i")

// ReLUBits is ReLU of rows of n numbers in place, with a bit for each that is greater than 0: bit
// j%8 of byte j/8 of a row of bits, which has so many bytes.
func ReLUBits(e Element, y, bits Address, rows, n, bytes int) Call {
	return call(e.name("relu_bits"), over(rows*bytes), y, bits, rows, n, bytes)
}
