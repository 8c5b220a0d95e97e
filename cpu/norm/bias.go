package norm

import (
	"fspda/cpu/kernel"
	"fspda/device"
)

// BiasKernels add a number to each channel, and a ReLU. The sums are rounded to float32 once. The
// gradient of a bias sums its column in float64: rows in blocks of blockRows, a block from its
// first row to its last, and so the blocks.
var BiasKernels = kernel.Table{
	device.AddBias:         {Run: addBias(plain)},
	device.AddBiasReLU:     {Run: addBias(withReLU)},
	device.AddBiasGrad:     {Run: divideColumns(biasGrad)},
	device.AddBiasReLUGrad: {Run: divideColumns(biasReLUGrad)},
}

// addBias is the affine map with mean 0 and scale 1, which rounds the sum alone.
func addBias(activation int) func(*kernel.Args) error {
	return divideColumns(func(o *kernel.Args, part, of int) {
		n := normalization{m: o.Dims[0], c: o.Dims[1], activation: activation, x: matrix{data: o.In[0]},
			y: matrix{data: o.Out[0]}}
		w := bufferPool.Get().(*columnBuffers)
		from, to := kernel.SplitUnits(part, of, n.c, kernel.LineFloats)
		for col := from; col < to; col += maxCols {
			cols := min(maxCols, to-col)
			for j := range cols {
				w.mean[j], w.a[j], w.e[j] = 0, 1, o.In[1][col+j]
			}
			n.apply(w, 0, n.m, col, cols)
		}
		active().fence()
		bufferPool.Put(w)
	})
}

func biasGrad(o *kernel.Args, part, of int) {
	sumColumns(o, part, of, o.Out[0], func(s span, at int, w *columnBuffers) {
		active().sums(s, o.In[0][at:], w.part[0])
	})
}

// biasReLUGrad masks dy and sums it. The products that the loop also sums are not used.
func biasReLUGrad(o *kernel.Args, part, of int) {
	y, dy, dx := o.In[0], o.In[1], o.Out[0]
	gradSums := active().gradSums[nonTemporal(dx, o.Dims[1], nonTemporalBytes/2)][withAddReLU]
	sumColumns(o, part, of, o.Out[1], func(s span, at int, w *columnBuffers) {
		gradSums(s, dy[at:], dy[at:], y[at:], dx[at:], w.mean, w.part[0], w.part[1])
	})
	active().fence()
}

// sumColumns writes the sums that add computes, of some columns.
func sumColumns(o *kernel.Args, part, of int, db []float32, add func(s span, at int, w *columnBuffers)) {
	m, c := o.Dims[0], o.Dims[1]
	w := bufferPool.Get().(*columnBuffers)
	from, to := kernel.SplitUnits(part, of, c, kernel.LineFloats)
	for col := from; col < to; col += maxCols {
		cols := min(maxCols, to-col)
		step := rowsPerCall(cols)
		clear(w.mean[:kernel.Padded(cols)])
		for first := 0; first < m; first += blockRows {
			end := min(first+blockRows, m)
			for i := first; i < end; i += step {
				add(span{c, min(step, end-i), cols, columnPrefetch(m, c, step)}, i*c+col, w)
			}
			w.fold(active(), cols)
		}
		for j := range cols {
			db[col+j] = float32(w.sum[0][j])
		}
		w.clearSums(cols)
	}
	bufferPool.Put(w)
}
