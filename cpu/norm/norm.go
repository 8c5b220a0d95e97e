package norm

import (
	"math"
	"sync"
	"unsafe"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
)

//go:generate go run -C ../../tools/asm ./normgen ../../cpu/norm

// Batch normalization of a matrix of m rows (the pixels of a batch) and c columns (its channels).
// To the last bit, for every column:
//
// Forward. s is the first x of the column. In float64, with d = x − s,
//
//	S1 = Σ d,  S2 = Σ d² (d² and its addition rounded once),
//	mean = s + S1/m,  var = max((S2 − S1·(S1/m))/m, 0)
//
// where the rows are cut into blocks of blockRows, a block is summed from its first row to its
// last, beginning with +0, and so are the sums of the blocks. Then k = gamma/sqrt(var+eps) in
// float64, and, each a float32,
//
//	mean₃₂ = mean,  scale = k,  shift = beta − (mean−mean₃₂)·k,  y = ((x − mean₃₂)·scale) + shift,
//
// each operation on float32 rounded to float32. Then z is added, if there is one; a ReLU replaces
// results that are not greater than 0 by +0, except NaN. Normalize is given mean₃₂ and var, and
// uses mean = mean₃₂.
//
// The shift by an element of the sample keeps the digits of var whatever the mean is: s is at most
// √m standard deviations from it, so S2/m is at most (m+1)·var, and the error of float64 is about
// m·(blockRows + m/blockRows)·2⁻⁵³ of var in the worst case: 2⁻²⁶ for a hundred thousand rows, and
// √m less if s is a typical element. Likewise x − mean₃₂ is exact for x within a factor of two of
// the mean, so that y has an error of at most 2⁻²⁴·(3·|x−mean|·|scale| + |shift| + |y|) to first
// order, however far from zero the mean is.
//
// Backward. g is dy, or with a ReLU 0 unless y > 0. In float64, summed as above, with d = x − mean,
//
//	A = Σ g,  B = Σ g·d (product and addition rounded once),  inv = 1/sqrt(var+eps),  k = gamma·inv,
//	dbeta = A,  dgamma = B·inv,
//	b = −((k·inv)·(B·inv))/m,  e = −(k·A)/m,  dx = (k·g) + (((x−mean)·b) + e),
//
// dbeta, dgamma, k, b and e rounded to float32 and each step of dx as well. dz is g. The ReLU mask
// is taken from its output y, so that its input need not be stored. The error of dx is at most
// 2⁻²⁴·(3·|k·g| + 5·|(x−mean)·b| + 3·|e|) to first order.

// Kernels are batch normalization and pooling.
var Kernels = kernel.Table{
	device.BatchNorm:            batchNorm(plain, false),
	device.BatchNormReLU:        batchNorm(withReLU, false),
	device.BatchNormAddReLU:     batchNorm(withAddReLU, false),
	device.BatchNormGrad:        batchNormGrad(plain),
	device.BatchNormReLUGrad:    batchNormGrad(withReLU),
	device.BatchNormAddReLUGrad: batchNormGrad(withAddReLU),
	device.Normalize:            batchNorm(plain, true),
	device.NormalizeReLU:        batchNorm(withReLU, true),
	device.NormalizeAddReLU:     batchNorm(withAddReLU, true),
	device.MaxPool:              {Run: maxPool},
	device.MaxPoolGrad:          {Run: maxPoolGrad},
	device.AvgPool:              {Run: avgPool},
	device.AvgPoolGrad:          {Run: avgPoolGrad},
}

// blockRows is the number of rows that are summed before their sum is added to the total. It is
// part of the definition.
const blockRows = 512

// maxCols is the largest number of columns that are computed at a time.
const maxCols = 1024

// Activations follow the affine map of a normalization, and come first in its gradient.
const (
	plain       = iota
	withReLU    // y = max(result, 0)
	withAddReLU // y = max(result + z, 0)
)

// span is a part of a matrix: rows × cols numbers, the rows stride numbers apart. The loops
// prefetch a number of numbers ahead.
type span struct{ stride, rows, cols, prefetch int }

func (s span) length() int { return (s.rows-1)*s.stride + s.cols }

type (
	affineLoop   = func(s span, x, z, y, mean, scale, shift []float32)
	gradSumsLoop = func(s span, x, dy, y, dz, mean []float32, s1, s2 []float64)
	gradientLoop = func(s span, x, dy, y, dx, mean, a, b, e []float32)
)

// loops are the inner loops of a normalization. A span has at least one row and one column. Slices
// with one element per column are padded to a multiple of LineFloats; the padding holds undefined
// values.
type loops struct {
	// moments adds x − shift to s1 and its square to s2, column by column, and sums adds x to s1.
	moments func(s span, x, shift []float32, s1, s2 []float64)
	sums    func(s span, x []float32, s1 []float64)
	// fold adds part to total and clears part.
	fold func(total, part []float64)
	// affine computes y. The first index is 1 for non-temporal stores, which need y to begin at a
	// cache line, and stride and cols to be multiples of LineFloats; the second is the activation.
	affine [2][3]affineLoop
	// gradSums adds g to s1 and g·(x − mean) to s2. It is indexed as affine is; with withAddReLU it
	// writes g to dz.
	gradSums [2][3]gradSumsLoop
	// gradient computes dx = a·g + ((x−mean)·b + e). It is indexed as affine is, without
	// withAddReLU, for which g is in dz.
	gradient [2][2]gradientLoop

	// fence completes non-temporal stores.
	fence func()

	maxPool     func(p windows, x, y, at []float32)
	maxPoolGrad [2]func(p windows, dy, at, dx []float32) // 1 for non-temporal stores
}

func active() *loops {
	if isa.Assembly() {
		return &asmLoops
	}
	return &plainLoops
}

// columnBuffers holds values for each column. A call takes one from a pool.
type columnBuffers struct {
	sum, part [2][]float64 // sums of all blocks and of the current one; zeros between calls
	mean      []float32
	a, b, e   []float32 // factors of the element-wise pass
}

// bufferPool holds columnBuffers. The second sums of a column lie half a page off the first ones:
// if addresses agree in their last twelve bits, a processor may take a load of the second for one
// of the first, just stored, and a gradient then takes four times as long within the caches.
// Whether it does depends on the other bits; it happened in one process of seven.
var bufferPool = sync.Pool{New: func() any {
	w := &columnBuffers{mean: kernel.Aligned(maxCols), a: kernel.Aligned(maxCols), b: kernel.Aligned(maxCols),
		e: kernel.Aligned(maxCols)}
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

// clearSums clears the sums for the next call.
func (w *columnBuffers) clearSums(cols int) {
	for i := range w.sum {
		clear(w.sum[i][:kernel.Padded(cols)])
	}
}

// numbersPerCall is how much of a matrix a loop is given at a time, so that it returns after
// microseconds: the scheduler cannot stop a goroutine inside assembly.
const numbersPerCall = 8192

func rowsPerCall(cols int) int { return max(1, numbersPerCall/cols) }

// cacheBytes is the size up to which a matrix is expected in the second-level cache.
const cacheBytes = 1 << 20

// columnPrefetch returns how far ahead a loop over step rows at a time of an m×c matrix prefetches:
// in the next rows, or, if these are in the cache, in the next columns.
func columnPrefetch(m, c, step int) int {
	if 4*m*c <= cacheBytes {
		return 64
	}
	return step * c
}

// rowPrefetch returns how far ahead, in numbers, an element-wise pass prefetches in each matrix
// that it reads: about forty lines in all, as many as the second-level cache can wait for.
func rowPrefetch(reads int) int { return 40 / reads * kernel.LineFloats }

// nonTemporalBytes is the size from which an output is written by non-temporal stores: it would not
// stay in the cache, and fetching the old numbers takes as long as reading an input.
const nonTemporalBytes = 8 << 20

// nonTemporal returns 1 if an output of c columns and this many bytes is written by non-temporal
// stores, else 0.
func nonTemporal(y []float32, c, bytes int) int {
	if 4*len(y) >= bytes && c%kernel.LineFloats == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(
		y)))%kernel.CacheLine == 0 {
		return 1
	}
	return 0
}

// batchNorm returns BatchNorm with an activation, or Normalize, whose statistics are given.
func batchNorm(activation int, given bool) kernel.Kernel {
	k := columnKernel(given, func(o *kernel.Args) normalization {
		n := normalization{given: given, m: o.Dims[0], c: o.Dims[1], eps: o.Attr, activation: activation,
			x: matrix{o.In[0], o.Half.Input(0)}, gamma: o.In[1], beta: o.In[2], y: matrix{o.Out[0], o.Half.Output(0)}}
		if given {
			n.mean, n.variance = o.In[3], o.In[4]
		} else {
			n.mean, n.variance = o.Out[1], o.Out[2]
		}
		if activation == withAddReLU {
			z := len(o.In) - 1
			n.z = matrix{o.In[z], o.Half.Input(z)}
		}
		return n
	})
	if inputs := uint8(1); !given {
		if activation == withAddReLU {
			inputs |= 1 << 3
		}
		k.Half = evenColumns(kernel.Halves{In: inputs, Out: 1})
	}
	return k
}

// evenColumns returns a function of the operands that may have 16 bits, if each row has a whole
// number of words.
func evenColumns(h kernel.Halves) func(dims []int) kernel.Halves {
	return func(dims []int) kernel.Halves {
		if dims[1]%2 != 0 {
			return kernel.Halves{}
		}
		return h
	}
}

// normalization is one call of a forward kernel. Its statistics are given or computed.
type normalization struct {
	given            bool
	m, c, activation int
	eps              float64
	x, z, y          matrix
	gamma, beta      []float32
	mean, variance   []float32
}

func (n *normalization) load(w *columnBuffers, col, cols int) { n.x.firstRow(w.mean[:cols], col) }

// addBlock adds the rows of a block to the sums of the block.
func (n *normalization) addBlock(w *columnBuffers, block, col, cols int) {
	v := newWindow(n.c, col, cols, nonTemporalBytes, n.x)
	defer v.release()
	step, end := v.step(), min((block+1)*blockRows, n.m)
	for i := block * blockRows; i < end; i += step {
		v.move(i, min(step, end-i), columnPrefetch(n.m, n.c, step))
		v.moments(v.span, v.read(0, n.x), w.mean[:kernel.Padded(cols)], w.part[0], w.part[1])
	}
}

// factors computes mean and variance of columns, unless they are given, and from them the affine
// map.
func (n *normalization) factors(w *columnBuffers, col, cols int) {
	if n.given {
		n.loadStatistics(w, col, cols)
		return
	}
	m := float64(n.m)
	for j := range cols {
		s1, s2 := w.sum[0][j], w.sum[1][j]
		d := s1 / m
		v := (s2 - float64(s1*d)) / m
		if v < 0 {
			v = 0
		}
		w.affine(j, float64(w.mean[j])+d, v+n.eps, n.gamma[col+j], n.beta[col+j])
		n.mean[col+j], n.variance[col+j] = w.mean[j], float32(v)
	}
	w.clearSums(cols)
}

// loadStatistics computes the affine map of given statistics.
func (n *normalization) loadStatistics(w *columnBuffers, col, cols int) {
	for j := range cols {
		w.affine(j, float64(n.mean[col+j]), float64(n.variance[col+j])+n.eps, n.gamma[col+j], n.beta[col+j])
	}
}

func (w *columnBuffers) affine(j int, mean, square float64, gamma, beta float32) {
	k := float64(gamma) / math.Sqrt(square)
	w.mean[j] = float32(mean)
	w.a[j] = float32(k)
	w.e[j] = float32(float64(beta) - float64((mean-float64(w.mean[j]))*k))
}

// apply computes some rows of y, from the last to the first, since the last ones are still in the
// cache.
func (n *normalization) apply(w *columnBuffers, from, to, col, cols int) {
	v := newWindow(n.c, col, cols, nonTemporalBytes, n.x, n.z, n.y)
	defer v.release()
	affine := v.affine[v.stores(n.y)][n.activation]
	step, ahead := v.step(), rowPrefetch(1)
	if n.activation == withAddReLU {
		ahead = rowPrefetch(2)
	}
	for i := from + (to-from-1)/step*step; i >= from; i -= step {
		v.move(i, min(step, to-i), ahead)
		y := v.output(2, n.y)
		affine(v.span, v.read(0, n.x), v.read(1, n.z), y, w.mean, w.a, w.e)
		v.write(n.y, y)
	}
}
