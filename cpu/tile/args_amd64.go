//go:build !noasm

package tile

// tileFunc is a micro-kernel: for a tile of C of its own height and width, C = alpha·A·B + beta·C,
// alpha and beta as in gemm.
type Func func(args *Args)

// tileArgs is what a micro-kernel works on. It is a struct so that of all this only what moves from
// tile to tile need be written. All strides and jumps are in bytes. The generator has the fields by
// their order and size.
//
// The rows of a tile form two halves, ⌈height/2⌉ rows and the rest, each of which may lie anywhere.
// The products form groups of runs of k each, which all add to the same sums: A and B jump after
// each run, and have a gap after each group besides. So element i,p of the first half, p < k, in
// run r of group g, is
//
//	a + i·ars + ((g·runs+r)·k+p)·acs + (g·runs+r)·ajump + g·agap
//
// and the row of B that belongs to it is at b + ((g·runs+r)·k+p)·brs + (g·runs+r)·bjump + g·bgap.
// Row i of C is at c + i·ldc in the first half. The last vector of a row has last columns; what of
// B lies behind them is not read by a masked set, and is read by the others.
type Args struct {
	A, A2        *float32 // a2 is where the second half begins
	ARow, ACol   int
	B            *float32
	BRow         int
	K, Runs      int // at least 1
	Groups       int // 0 stands for 1
	AJump, BJump int
	AGap, BGap   int
	C, C2        *float32
	CRow         int
	Last         int
	// product p asks the cache for a + ahead + p·step, which is not read: what the next strip will
	// need
	Prefetch
	Alpha, Beta float32
}

// Prefetch says which cache lines the products of a tile ask for: product p asks for the line at
// A + Ahead + p·Step. Nothing is read there.
type Prefetch struct{ Ahead, Step int }
