package kernels

var _ = defineEach("dropout.cu", allElements, "dropout_%s y:p x:p key:p n:l layer:i least:u factor:f")

// Dropout is device.Dropout of n numbers. key is 4 float32 numbers; y may be x.
func Dropout(e Element, y, x, key Address, n, layer int, p float64) Call {
	return call(e.name("dropout"), over((n+1)/2), y, x, key, n, layer, int(uint64(p*(1<<32))), float32(1/(1-p)))
}
