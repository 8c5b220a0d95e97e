package kernels_test

import (
	"math"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

// The mask has the CPU's bits, in every element, and there is none with the key 0.
func TestDropout(t *testing.T) {
	h := onHost(t)
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, n := range []int{1, 2, 1001} {
			for _, key := range []uint64{0, 1, 0xfedcba9876543210} {
				for _, p := range []float64{0, 0.1, 0.5} {
					v := numbers(1, n)
					v[0] = float32(math.Inf(1))
					raw, x := encode(h, e, v)
					y, parts, want := make([]byte, len(raw)), make([]float32, 4), make([]float32, n)
					device.Batch{Key: key}.KeyNumbers(parts)
					h.run(kernels.Dropout(e, at(h, y), at(h, raw), at(h, parts), n, 3, p))
					onCPUCall(t, device.Dropout, []int{n, 3}, p, [][]float32{x, parts}, [][]float32{want})
					_, want = encode(h, e, want)
					sameBits(t, "dropout", decode(h, e, y), want)
				}
			}
		}
	}
}
