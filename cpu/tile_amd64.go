//go:build !noasm

package cpu

// tileFunc is a micro-kernel: for a tile of C of its own height and width, C = alpha·A·B + beta·C, alpha and beta as in gemm.
type tileFunc func(args *tileArgs)

// tileArgs is what a micro-kernel works on. It is a struct so that of all this only what moves from tile to tile need be written. All
// strides and jumps are in bytes. The generator has the fields by their order and size.
//
// The rows of a tile form two halves, ⌈height/2⌉ rows and the rest, each of which may lie anywhere. The products form runs of k, which
// add to the same sums: A and B jump after each. So element i,p of the first half, p < k, in run r is
//
//	a + i·ars + (r·k+p)·acs + r·ajump
//
// and the row of B that belongs to it is at b + (r·k+p)·brs + r·bjump. Row i of C is at c + i·ldc in the first half. The last vector of a
// row has last columns; what of B lies behind them is not read by a masked set, and is read by the others.
type tileArgs struct {
	a, a2        *float32 // a2 is where the second half begins
	ars, acs     int
	b            *float32
	brs          int
	k, runs      int // both at least 1
	ajump, bjump int
	c, c2        *float32
	ldc          int
	last         int
	ahead, step  int // product p asks the cache for a + ahead + p·step, which is not read: what the next strip will need
	alpha, beta  float32
}
