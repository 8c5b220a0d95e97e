package norm

import (
	"sync"
	"unsafe"

	"fspda/cpu/kernel"
)

// columnPass is a kernel that sums columns and then computes every element.
type columnPass interface {
	load(w *columnBuffers, col, cols int)            // sets w.mean for the sums
	addBlock(w *columnBuffers, block, col, cols int) // adds the rows of a block to w.part
	factors(w *columnBuffers, col, cols int)         // turns w.sum into results and factors
	apply(w *columnBuffers, from, to, col, cols int) // computes some rows
}

// columnWork computes a kernel. It divides the columns among the workers or, if these are few, the
// rows: several sum the blocks, and one adds their sums in order.
type columnWork[T any, P interface {
	*T
	columnPass
}] struct {
	given bool                            // The statistics are given: there is nothing to sum.
	of    func(o *kernel.Args) T          // The pass of a call.
	pool  sync.Pool                       // Passes, which escape to the heap.
	parts [3]func(*kernel.Args, int, int) // The methods columns, sums and apply.
}

// columnKernel returns a kernel with the pass T; of makes the pass of a call.
func columnKernel[T any, P interface {
	*T
	columnPass
}](given bool, of func(o *kernel.Args) T) kernel.Kernel {
	k := &columnWork[T, P]{given: given, of: of, pool: sync.Pool{New: func() any { return new(T) }}}
	k.parts = [3]func(*kernel.Args, int, int){k.columns, k.sums, k.apply}
	return kernel.Kernel{Run: k.run, Scratch: rowScratch}
}

func (k *columnWork[T, P]) run(o *kernel.Args) error {
	m, c := o.Dims[0], o.Dims[1]
	parts := worthwhileParts(m, c, o.Threads())
	if !dividesRows(m, c, parts) {
		o.Parallel(max(1, min(parts, c/kernel.LineFloats)), k.parts[0])
		return nil
	}
	if !k.given {
		o.Parallel(parts, k.parts[1])
	}
	k.addBlocks(o)
	o.Parallel(parts, k.parts[2])
	return nil
}

// begin returns the pass of a call and memory for its columns.
func (k *columnWork[T, P]) begin(o *kernel.Args) (P, *columnBuffers) {
	n := k.pool.Get().(*T)
	*n = k.of(o)
	return n, bufferPool.Get().(*columnBuffers)
}

func (k *columnWork[T, P]) end(n P, w *columnBuffers) {
	active().fence()
	var none T
	*n = none // so that the pool keeps no operand alive
	k.pool.Put((*T)(n))
	bufferPool.Put(w)
}

func (k *columnWork[T, P]) columns(o *kernel.Args, part, of int) {
	n, w := k.begin(o)
	defer k.end(n, w)
	from, to := kernel.SplitUnits(part, of, o.Dims[1], kernel.LineFloats)
	for col := from; col < to; col += maxCols {
		cols := min(maxCols, to-col)
		n.load(w, col, cols)
		for block := 0; !k.given && block < blocks(o.Dims[0]); block++ {
			n.addBlock(w, block, col, cols)
			w.fold(active(), cols)
		}
		n.factors(w, col, cols)
		n.apply(w, 0, o.Dims[0], col, cols)
	}
}

func (k *columnWork[T, P]) sums(o *kernel.Args, part, of int) {
	n, w := k.begin(o)
	defer k.end(n, w)
	s := scratchOf(o)
	n.load(w, 0, o.Dims[1])
	from, to := kernel.SplitUnits(part, of, blocks(o.Dims[0]), 1)
	for block := from; block < to; block++ {
		n.addBlock(w, block, 0, o.Dims[1])
		for i, sum := range s.block(block) {
			clear(sum)
			active().fold(sum, w.part[i][:len(sum)])
		}
	}
}

// addBlocks adds the sums of the blocks in order, and keeps the factors.
func (k *columnWork[T, P]) addBlocks(o *kernel.Args) {
	n, w := k.begin(o)
	defer k.end(n, w)
	s := scratchOf(o)
	n.load(w, 0, o.Dims[1])
	for block := 0; !k.given && block < blocks(o.Dims[0]); block++ {
		for i, sum := range s.block(block) {
			active().fold(w.sum[i][:len(sum)], sum)
		}
	}
	n.factors(w, 0, o.Dims[1])
	copy(s.factors.mean, w.mean)
	copy(s.factors.a, w.a)
	copy(s.factors.b, w.b)
	copy(s.factors.e, w.e)
}

// apply computes some rows.
func (k *columnWork[T, P]) apply(o *kernel.Args, part, of int) {
	n, w := k.begin(o)
	defer k.end(n, w)
	if from, to := kernel.SplitUnits(part, of, o.Dims[0], 1); from < to {
		s := scratchOf(o)
		n.apply(&s.factors, from, to, 0, o.Dims[1])
	}
}

// divideColumns returns a kernel that divides its columns among the workers.
func divideColumns(run func(o *kernel.Args, part, of int)) func(*kernel.Args) error {
	return func(o *kernel.Args) error {
		o.Parallel(max(1, min(worthwhileParts(o.Dims[0], o.Dims[1], o.Threads()), o.Dims[1]/kernel.LineFloats)), run)
		return nil
	}
}

// worthwhileParts returns the number of parts of an m×c matrix for a number of goroutines.
func worthwhileParts(m, c, threads int) int {
	const least = 32 << 10 // numbers that are worth another goroutine
	return max(1, min(threads, m*c/least))
}

// dividesRows reports whether the parts are rows: of columns, each would have few lines of a row.
func dividesRows(m, c, parts int) bool {
	const lines = 4
	return parts > 1 && c < lines*kernel.LineFloats*parts && c <= maxCols && blocks(m) >= parts
}

func blocks(m int) int { return (m + blockRows - 1) / blockRows }

// scratch is the memory of a kernel that divides its rows: the sums of every block, and factors.
type scratch struct {
	sums    []float64
	factors columnBuffers
}

// rowScratch returns the numbers of scratch memory.
func rowScratch(dims []int, threads int) int {
	m, c := dims[0], dims[1]
	if !dividesRows(m, c, worthwhileParts(m, c, threads)) {
		return 0
	}
	return 4 * kernel.Padded(c) * (blocks(m) + 1)
}

// scratchOf returns the scratch memory of a call.
func scratchOf(o *kernel.Args) (s scratch) {
	c := kernel.Padded(o.Dims[1])
	n := 2 * c * blocks(o.Dims[0])
	s.sums = unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(o.Scratch))), n)
	f := o.Scratch[2*n:]
	s.factors.mean, s.factors.a, s.factors.b, s.factors.e = f[:c], f[c:2*c], f[2*c:3*c], f[3*c:4*c]
	return s
}

// block returns both sums of a block.
func (s *scratch) block(i int) [2][]float64 {
	c := len(s.factors.mean)
	return [2][]float64{s.sums[2*i*c:][:c], s.sums[(2*i+1)*c:][:c]}
}
