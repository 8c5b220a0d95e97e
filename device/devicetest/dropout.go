package devicetest

import (
	"fspda/device"
	"fspda/internal/rng"
)

var dropoutKernels = map[device.Kernel]language{
	device.Dropout: {interpretDropout, func(add func(attr float64, dims ...int)) {
		for i, n := range append([]int{64, 1000, 4099}, widths...) {
			add([]float64{0.5, 0.1, 0.9, 0}[i%4], n, 1+3*i)
		}
	}, func(c *device.Call, in [][]float32) {
		b := device.Batch{Key: 0x123456789abcdef0 * uint64(c.Dims[0])}
		if c.Dims[0] == 17 {
			b.Key = 0
		}
		b.KeyNumbers(in[1])
	}, relativeBounds(3)},
}

// interpretDropout draws the mask number by number.
func interpretDropout(c *device.Call, in, out [][]float64) {
	key := uint64(0)
	for i, v := range in[1] {
		key += uint64(v) << (16 * i)
	}
	stream := rng.FromCounter(key).Sub(uint64(c.Dims[1]))
	bits := uint64(0)
	for i, x := range in[0] {
		if i%2 == 0 {
			bits = stream.Uint64()
		}
		switch {
		case key == 0:
			out[0][i] = x
		case float64(uint32(bits>>(32*(i%2)))) < float64(uint64(c.Attr*(1<<32))):
			out[0][i] = 0
		default:
			out[0][i] = x / (1 - c.Attr)
		}
	}
}
