package norm

import (
	"math"
	"sync"
	"unsafe"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
)

//go:generate go run ../internal/normgen

// Batch normalisation of a matrix of m rows (the pixels of a batch) and c columns (its channels).
// To the last bit, for every column:
//
// Forward. s is the first x of the column. In float64, with d = x − s,
//
//	S1 = Σ d,  S2 = Σ d² (d² and its addition rounded once),  mean = s + S1/m,  var = max((S2 − S1·(S1/m))/m, 0)
//
// where the rows are cut into blocks of normBlock, a block is summed from its first row to its
// last, beginning with +0, and so are the sums of the blocks. Then k = gamma/sqrt(var+eps) in
// float64, and, each a float32,
//
//	mean₃₂ = mean,  scale = k,  shift = beta − (mean−mean₃₂)·k,  y = ((x − mean₃₂)·scale) + shift,
//
// each operation on numbers of float32 rounded to float32. With z that is added next; the larger of
// it and 0 is +0 unless it is greater, or a NaN. Normalize has mean₃₂ and var given, and mean =
// mean₃₂.
//
// The shift by a number of the sample keeps the digits of var whatever the mean is: s is at most √m
// deviations from it, so S2/m is at most (m+1)·var and what float64 loses is about m·(normBlock +
// m/normBlock)·2⁻⁵³ of var in the worst case, 2⁻²⁶ for a hundred thousand rows, and √m less than
// that for any row that an ordinary sample begins with. Likewise x − mean₃₂ is exact for x within a
// factor of two of the mean, so that y has an error of at most 2⁻²⁴·(3·|x−mean|·|scale| + |shift| +
// |y|) to first order, however far off zero the mean is.
//
// Backward. g is dy, or where y is not greater than 0, and there is a ReLU, 0. In float64, summed
// as above, with d = x − mean,
//
//	A = Σ g,  B = Σ g·d (product and addition rounded once),  inv = 1/sqrt(var+eps),  k = gamma·inv,  dbeta = A,  dgamma = B·inv,
//	b = −((k·inv)·(B·inv))/m,  e = −(k·A)/m,  dx = (k·g) + (((x−mean)·b) + e),
//
// dbeta, dgamma, k, b and e rounded to float32 and each step of dx as well. dz is g. A ReLU is
// known by its output, so that nobody keeps its input. The error of dx is at most 2⁻²⁴·(3·|k·g| +
// 5·|(x−mean)·b| + 3·|e|) to first order.

// normKernels are batch normalisation and pooling.
var Kernels = kernel.Table{
	device.BatchNorm:            {Run: batchNorm(plain)},
	device.BatchNormReLU:        {Run: batchNorm(withReLU)},
	device.BatchNormAddReLU:     {Run: batchNorm(withAddReLU)},
	device.BatchNormGrad:        {Run: batchNormGrad(plain)},
	device.BatchNormReLUGrad:    {Run: batchNormGrad(withReLU)},
	device.BatchNormAddReLUGrad: {Run: batchNormGrad(withAddReLU)},
	device.Normalize:            {Run: normalize(plain)},
	device.NormalizeReLU:        {Run: normalize(withReLU)},
	device.NormalizeAddReLU:     {Run: normalize(withAddReLU)},
	device.MaxPool:              {Run: maxPool},
	device.MaxPoolGrad:          {Run: maxPoolGrad},
	device.AvgPool:              {Run: avgPool},
	device.AvgPoolGrad:          {Run: avgPoolGrad},
}

// normBlock is how many rows are summed before their sum is added to that of the others. It is part
// of the definition.
const blockRows = 512

// normCols is how many columns are worked on at a time, at most.
const maxCols = 1024

// What follows the affine map of a normalisation, and comes before its gradient.
const (
	plain       = iota
	withReLU    // y = max(that, 0)
	withAddReLU // y = max(that + z, 0)
)

// normSpan is a part of a matrix: rows × cols numbers, the rows stride numbers apart. What comes
// next lies ahead numbers further on.
type span struct{ stride, rows, cols, prefetch int }

// length is that of a slice that begins at the first number of a span and ends with its last.
func (s span) length() int { return (s.rows-1)*s.stride + s.cols }

// normLoops are the loops of a normalisation. A span has one row and one column at least. What
// belongs to columns has room for a multiple of perLine of them, and what lies in that room
// behind the last is anybody's.
type loops struct {
	// moments adds x − shift to s1 and its square to s2, column by column, and sums adds x to s1.
	moments func(s span, x, shift []float32, s1, s2 []float64)
	sums    func(s span, x []float32, s1 []float64)
	// fold adds part to total and makes part zero.
	fold func(total, part []float64)
	// affine computes y. It is indexed by whether y goes past the cache, which wants y to begin at
	// a line, and stride and cols to be multiples of perLine, and by what follows.
	affine [2][3]func(s span, x, z, y, mean, scale, shift []float32)
	// gradSums adds g to s1 and g·(x − mean) to s2. It is indexed as affine is; with normAddReLU it
	// writes g to dz.
	gradSums [2][3]func(s span, x, dy, y, dz, mean []float32, s1, s2 []float64)
	// gradient computes dx = a·g + ((x−mean)·b + e). It is indexed as affine is, without
	// normAddReLU, whose g is known.
	gradient [2][2]func(s span, x, dy, y, dx, mean, a, b, e []float32)

	// fence ends what went past the cache.
	fence func()

	maxPool     func(p windows, x, y, at []float32)
	maxPoolGrad [2]func(p windows, dy, at, dx []float32) // by whether dx goes past the cache
}

// activeLoops returns the loops in use.
func active() *loops { return sets[isa.Active] }

// channels is the room for what belongs to the columns that are worked on. One call has one; the
// pool keeps them.
type columnBuffers struct {
	sum, part [2][]float64 // of all blocks, of the current one; zeros whenever nobody uses them
	mean      []float32
	a, b, e   []float32 // factors of the element-wise pass
}

// channelPool keeps rooms. The second sums of a column lie half a page off the first ones: where
// addresses agree in their last twelve bits a processor may take a reading of the second for one of
// the first, just written, and a gradient then takes four times as long within the caches. Whether
// it does hangs on the other bits, in one process of seven.
var bufferPool = sync.Pool{New: func() any {
	w := &columnBuffers{mean: kernel.Aligned(maxCols), a: kernel.Aligned(maxCols), b: kernel.Aligned(maxCols), e: kernel.Aligned(maxCols)}
	const half = 4096 / 2 / 8
	all := make([]float64, 2*maxCols+half)
	for i, at := range []int{0, maxCols + half} {
		w.sum[i], w.part[i] = make([]float64, maxCols), all[at:][:maxCols]
	}
	return w
}}

// fold ends a block.
func (w *columnBuffers) fold(k *loops, cols int) {
	for i := range w.sum {
		k.fold(w.sum[i][:kernel.Padded(cols)], w.part[i][:kernel.Padded(cols)])
	}
}

// done leaves the sums as they were found.
func (w *columnBuffers) clearSums(cols int) {
	for i := range w.sum {
		clear(w.sum[i][:kernel.Padded(cols)])
	}
}

// callNumbers is how much of a matrix a kernel is given at a time, so that it is left after
// microseconds.
const numbersPerCall = 8192

// normRows is how many rows of so many columns a kernel is given.
func rowsPerCall(cols int) int { return max(1, numbersPerCall/cols) }

// closeBytes is the size up to which a matrix is taken to be in the second cache.
const cacheBytes = 1 << 20

// rowsAhead is where a kernel that works on step rows at a time of an m×c matrix will soon be: in
// the next rows, or if these are close already, in the columns beside.
func columnPrefetch(m, c, step int) int {
	if 4*m*c <= cacheBytes {
		return 64
	}
	return step * c
}

// sweepAhead is how far in advance an element-wise pass asks for what it reads of so many matrices,
// in numbers: the second cache waits for some forty lines in all.
func rowPrefetch(reads int) int { return 40 / reads * kernel.LineFloats }

// streamBytes is the size from which on an output goes past the cache: it would not stay there, and
// fetching first what it overwrites takes as long as reading an input.
const nonTemporalBytes = 8 << 20

// streamsPast says whether an output of c columns goes past the cache, which it does from so many
// bytes on: 1 if so, and else 0.
func nonTemporal(y []float32, c, bytes int) int {
	if 4*len(y) >= bytes && c%kernel.LineFloats == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(y)))%kernel.CacheLine == 0 {
		return 1
	}
	return 0
}

// batchNorm is BatchNorm with what follows.
func batchNorm(follows int) func(*kernel.Args) error {
	return columnKernel(func(o *kernel.Args, part, of int) {
		n := normalization{m: o.Dims[0], c: o.Dims[1], eps: o.Attr, activation: follows, x: o.In[0], gamma: o.In[1],
			beta: o.In[2],
			y:    o.Out[0], mean: o.Out[1], variance: o.Out[2]}
		if follows == withAddReLU {
			n.z = o.In[3]
		}
		n.run(kernel.SplitUnits(part, of, n.c, kernel.LineFloats))
	})
}

// normalize is Normalize with what follows.
func normalize(follows int) func(*kernel.Args) error {
	return columnKernel(func(o *kernel.Args, part, of int) {
		n := normalization{given: true, m: o.Dims[0], c: o.Dims[1], eps: o.Attr, activation: follows, x: o.In[0],
			gamma: o.In[1], beta: o.In[2],
			mean: o.In[3], variance: o.In[4], y: o.Out[0]}
		if follows == withAddReLU {
			n.z = o.In[5]
		}
		n.run(kernel.SplitUnits(part, of, n.c, kernel.LineFloats))
	})
}

// inColumns is a kernel whose parts are some of the columns each.
func columnKernel(run func(o *kernel.Args, part, of int)) func(*kernel.Args) error {
	return func(o *kernel.Args) error {
		const least = 32 << 10 // numbers that are worth another goroutine
		m, c := o.Dims[0], o.Dims[1]
		o.Parallel(max(1, min(o.Threads(), m*c/least, c/kernel.LineFloats)), run)
		return nil
	}
}

// normalization is one call of a forward kernel. Its statistics are given, or computed.
type normalization struct {
	given                bool
	m, c, activation     int
	eps                  float64
	x, gamma, beta, z, y []float32
	mean, variance       []float32
}

func (n *normalization) run(from, to int) {
	w := bufferPool.Get().(*columnBuffers)
	for col := from; col < to; col += maxCols {
		cols := min(maxCols, to-col)
		if n.given {
			n.loadStatistics(w, col, cols)
		} else {
			n.statistics(w, col, cols)
		}
		n.apply(w, col, cols)
	}
	active().fence()
	bufferPool.Put(w)
}

// statistics computes mean and variance of columns, and from them the affine map.
func (n *normalization) statistics(w *columnBuffers, col, cols int) {
	shift := w.mean[:kernel.Padded(cols)]
	copy(shift, n.x[col:][:cols])
	step := rowsPerCall(cols)
	for first := 0; first < n.m; first += blockRows {
		end := min(first+blockRows, n.m)
		for i := first; i < end; i += step {
			s := span{n.c, min(step, end-i), cols, columnPrefetch(n.m, n.c, step)}
			active().moments(s, n.x[i*n.c+col:], shift, w.part[0], w.part[1])
		}
		w.fold(active(), cols)
	}
	m := float64(n.m)
	for j := range cols {
		s1, s2 := w.sum[0][j], w.sum[1][j]
		d := s1 / m
		v := (s2 - float64(s1*d)) / m
		if v < 0 {
			v = 0
		}
		w.affine(j, float64(shift[j])+d, v+n.eps, n.gamma[col+j], n.beta[col+j])
		n.mean[col+j], n.variance[col+j] = w.mean[j], float32(v)
	}
	w.clearSums(cols)
}

// useGiven makes the affine map of given statistics.
func (n *normalization) loadStatistics(w *columnBuffers, col, cols int) {
	for j := range cols {
		w.affine(j, float64(n.mean[col+j]), float64(n.variance[col+j])+n.eps, n.gamma[col+j], n.beta[col+j])
	}
}

// affine sets the map of a column.
func (w *columnBuffers) affine(j int, mean, square float64, gamma, beta float32) {
	k := float64(gamma) / math.Sqrt(square)
	w.mean[j] = float32(mean)
	w.a[j] = float32(k)
	w.e[j] = float32(float64(beta) - float64((mean-float64(w.mean[j]))*k))
}

// apply computes y, from the last rows to the first: the last ones are what the cache still has.
func (n *normalization) apply(w *columnBuffers, col, cols int) {
	affine := active().affine[nonTemporal(n.y, n.c, nonTemporalBytes)][n.activation]
	step := rowsPerCall(cols)
	z, ahead := n.z, rowPrefetch(1)
	if n.activation == withAddReLU {
		ahead = rowPrefetch(2)
	}
	for i := (n.m - 1) / step * step; i >= 0; i -= step {
		s, at := span{n.c, min(step, n.m-i), cols, ahead}, i*n.c+col
		if n.activation == withAddReLU {
			z = n.z[at:]
		}
		affine(s, n.x[at:], z, n.y[at:], w.mean, w.a, w.e)
	}
}
