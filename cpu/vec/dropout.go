package vec

import (
	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/internal/rng"
)

// dropout: y = x/(1−p) for the numbers that the mask keeps, else 0. The mask is drawn in pairs, so
// that each part begins where it likes in the stream.
func dropout(o *kernel.Args) error {
	key := device.KeyOf(o.In[1])
	if key == 0 {
		copy(o.Out[0], o.In[0])
		return nil
	}
	o.ParallelRange(len(o.Out[0]), dropoutPart)
	return nil
}

func dropoutPart(o *kernel.Args, part, of int) {
	from, to := kernel.SplitUnits(part, of, len(o.Out[0]), kernel.LineFloats)
	stream := rng.FromCounter(device.KeyOf(o.In[1])).Sub(uint64(o.Dims[1]))
	stream.Skip(uint64(from / 2))
	Dropout(o.Out[0][from:to], o.In[0][from:to], o.Attr, &stream)
}

// Dropout computes device.Dropout of numbers whose first one has the lower half of the next draw of
// stream.
func Dropout(dst, x []float32, p float64, stream *rng.Stream) {
	least, factor := uint32(uint64(p*(1<<32))), float32(1/(1-p))
	x = x[:len(dst)]
	for i := 0; i < len(dst); i += 2 {
		bits := stream.Uint64()
		dst[i] = kept(uint32(bits) >= least, x[i]*factor)
		if i+1 < len(dst) {
			dst[i+1] = kept(uint32(bits>>32) >= least, x[i+1]*factor)
		}
	}
}

func kept(keep bool, v float32) float32 {
	if keep {
		return v
	}
	return 0
}
