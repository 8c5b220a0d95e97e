package tile

// Func is a micro-kernel: it computes C = alpha·A·B + beta·C for a tile of C of a fixed height and
// width. With beta = 0 it does not read C.
type Func func(args *Args)

// Args are the operands of a micro-kernel. They are a struct so that between tiles only the fields
// that change need be written. All strides, jumps and gaps are in bytes. The generator knows the
// fields by their order and size.
//
// The rows of a tile form two halves, ⌈height/2⌉ rows and the rest, each of which may lie anywhere.
// The products form groups of runs of K products each, which all add to the same sums: A and B jump
// after each run, and have a gap after each group as well. So element i,p of the first half, p < K,
// in run r of group g, is at
//
//	A + i·ARow + ((g·Runs+r)·K+p)·ACol + (g·Runs+r)·AJump + g·AGap
//
// and its row of B is at B + ((g·Runs+r)·K+p)·BRow + (g·Runs+r)·BJump + g·BGap. Row i of C is at C
// + i·CRow in the first half. The last vector of a row has Last columns; a masked set does not read
// the columns of B behind them, the others do. The matrix that Beta multiplies lies
// Old bytes behind C; a set with RowsOnly reads C itself.
type Args struct {
	A, A2        *float32 // A2 is where the second half begins
	ARow, ACol   int
	B            *float32
	BRow         int
	K, Runs      int // each is at least 1
	Groups       int // 0 stands for 1
	AJump, BJump int
	Gaps
	C, C2 *float32
	CRow  int
	Last  int
	// cache lines that the next tiles will need
	Prefetch
	Alpha, Beta float32
	Old         int
}

// Gaps are the gaps of A and B behind a group.
type Gaps struct{ AGap, BGap int }

// Prefetch tells a micro-kernel which cache lines to prefetch: product p prefetches the line at A +
// Ahead + p·Step.
type Prefetch struct{ Ahead, Step int }
