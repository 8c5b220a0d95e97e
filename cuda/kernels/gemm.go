package kernels

import "fmt"

const (
	operandsA     = "a_list:p a:p a_offset:l "
	operandsB     = "b_list:p b:p b_offset:l "
	operandsC     = "c_list:p c:p c_offset:l aux_list:p aux:p aux_offset:l "
	operandSums   = "sums_list:p sums:p sums_offset:l " // products of 16 bits have these
	operandsLast  = "m:i n:i k:i epilogue:i factor:f"
	bytesOperands = "bytes:p rows:p scale:f shift:f "
)

const (
	gemmNTBytes = bytesOperands + operandsB + operandsC + operandsLast
	gemmTNBytes = operandsA + bytesOperands + operandsC + operandsLast
	gemmParts   = bytesOperands + operandsB + "part:p parts:i m:i n:i k:i"
)

const gemmOperands = operandsA + operandsB + operandsC + operandsLast

var _ = define("gemm.cu",
	"gemm_nt_32 "+gemmOperands,
	"gemm_nn_32 "+gemmOperands,
	"gemm_tn_32 "+gemmOperands,
	"gemm_nt_64 "+gemmOperands,
	"gemm_nn_64 "+gemmOperands,
	"gemm_tn_64 "+gemmOperands,
	"gemm_nt_tf32 "+gemmOperands,
	"gemm_nn_tf32 "+gemmOperands,
	"gemm_tn_tf32 "+gemmOperands,
	"gemm_nt_bytes "+gemmNTBytes,
	"gemm_nt_bytes_tf32 "+gemmNTBytes,
	"gemm_tn_bytes "+gemmTNBytes,
	"gemm_tn_bytes_tf32 "+gemmTNBytes,
	"gemm_tn_bytes_wide "+gemmTNBytes,
	"gemm_tn_narrow "+gemmOperands,
	"gemm_nt_bytes_parts "+gemmParts,
)

var _ = define("gemm_bytes.cu",
	"gemm_nt_bytes_mma "+gemmParts,
	"gemm_tn_bytes_mma "+gemmTNBytes,
)

// Operand is a matrix of each agent, at Offset in a vector of the agent. List is the address of the
// list of vectors in device memory; if it is 0, there is one agent, whose vector is At. The zero
// Operand is none.
type Operand struct {
	List, At Address
	Offset   int
}

// ByteInputs is the examples of all agents as bytes: number j of example i of agent z is Scale·b +
// Shift, with byte b = Bytes[Rows[z·examples+i]·features+j].
type ByteInputs struct {
	Bytes, Rows  Address // arrays of uint8 and of int32
	Scale, Shift float32
}

// GemmEpilogue is the operation applied to each element c of a product.
type GemmEpilogue int

const (
	NoEpilogue  GemmEpilogue = iota
	AddBias                  // c + aux[j]
	BiasSigmoid              // 1/(1+exp(-(c + aux[j])))
	BiasReLU                 // max(c + aux[j], 0)
	SigmoidGrad              // c·y·(1-y), y = aux[i][j]
	ReLUGrad                 // c where aux[i][j] > 0, else 0
	AddScaled                // c + Factor·aux[i][j]
)

// Gemm is a float32 product for each of several agents, in one launch, with the bits of cpu.Gemm
// and an epilogue: the kernels of dense layers. cuBLAS is faster for large products but has other
// bits.
type Gemm struct {
	Agents  int
	M, N, K int
	// Form is "nt" for C = A·Bᵀ with A m×k and B n×k (device.Linear), "nn" for A·B with A m×k and B
	// k×n (LinearGradX), or "tn" for Aᵀ·B with A k×m and B k×n (LinearGradW).
	Form     string
	A, B, C  Operand
	Bytes    *ByteInputs // replaces A in form nt, and B in form tn
	Epilogue GemmEpilogue
	Aux      Operand // operand of the epilogue
	Factor   float32
	Sums     Operand // form tn with F16 or BF16: the column sums of A, the gradient of a bias; optional
	Element  Element // F16 or BF16: round the factors and use tensor cores, on GPUs from sm_80
	Round    bool    // round C too; needs Element F16 or BF16
	// Scalers is a list of the agents' Scalers, by which products of F16 or BF16 are divided; 0 if
	// there is none.
	Scalers Address
	// TF32 rounds the factors to TF32 and uses tensor cores on GPUs from sm_80. Others use float32.
	TF32 bool
	// TensorCores lets products of byte inputs use tensor cores, with exact factors, where the shape
	// allows that. Sums have another order than on the CPU. The GPU must have sm_80 or newer.
	TensorCores bool
}

const (
	chunk = 384 // CHUNK of gemm.cuh
	// the sides of a wide tile, and the threads of WideTN and WideNT
	wideRows, wideColumns, wideThreads, partsThreads = 64, 112, 128, 256
	// the rows and columns of a block on tensor cores with exact factors, and the products of a step:
	// BYTES_ROWS, BYTES_COLUMNS, BYTES_STEP
	bytesRows, bytesColumns, bytesStep = 64, 104, 16
	// NARROW_ROWS: the rows of a block of gemm_tn_narrow; and the most rows
	narrowRows, narrowMost = 8, 16
	// COLUMN_BLOCK and COLUMN_THREADS: the columns and threads of a block of gemm_tn_narrow and
	// bias_gradient
	columnBlock, columnThreads = 8, 64
)

// narrow reports whether a product of form tn has so few rows that the lanes of a column divide its
// products among each other.
func (g Gemm) narrow() bool {
	return g.Bytes == nil && g.Form == "tn" && g.Element == F32 && !g.TF32 && g.M <= narrowMost && g.K <= chunk &&
		(g.Epilogue == NoEpilogue || g.Epilogue == AddScaled)
}

// wide reports whether a product of form tn uses wide tiles: they need to be nearly full.
func (g Gemm) wide() bool {
	full := func(n, side int) bool { return 5*n >= 4*((n+side-1)/side*side) }
	return g.Bytes != nil && g.Form == "tn" && g.Element == F32 && !g.TF32 && g.K <= chunk &&
		(g.Epilogue == NoEpilogue || g.Epilogue == AddScaled) && full(g.M, wideColumns) && full(g.N, wideRows)
}

// exact reports whether a product of byte inputs uses tensor cores with exact factors: bytes must be
// loaded sixteen at a time, and numbers four.
func (g Gemm) exact() bool {
	if !g.TensorCores || g.Bytes == nil || g.Element != F32 || g.Bytes.Bytes%16 != 0 {
		return false
	}
	aligned := func(o Operand) bool { return o.At%16 == 0 && o.Offset%4 == 0 }
	if g.Form == "nt" {
		return g.K%bytesStep == 0 && g.N%2 == 0 && aligned(g.B)
	}
	return g.Form == "tn" && g.N%16 == 0 && g.K <= chunk && (g.Epilogue == NoEpilogue || g.Epilogue == AddScaled) &&
		aligned(g.C) && aligned(g.Aux)
}

// largeFrom is the number of blocks of 64×64 elements that fills any GPU. With fewer blocks, blocks
// of 32×32 spread better.
const largeFrom = 400

func (g Gemm) side() int {
	blocks := func(n int) int { return (n + 63) / 64 }
	if g.Bytes == nil && g.Agents*blocks(g.M)*blocks(g.N) >= largeFrom {
		return 64
	}
	return 32
}

// shape returns the side of a block's part of C, its threads, and the kernel's name.
func (g Gemm) shape() (side, threads int, name string) {
	side = g.side()
	threads, name = side*side/16, fmt.Sprintf("gemm_%s_%d", g.Form, side)
	if g.Bytes != nil {
		name = fmt.Sprintf("gemm_%s_bytes", g.Form)
	}
	switch {
	case g.Element != F32 && g.Bytes != nil:
		return 64, 128, g.Element.name(name)
	case g.Element != F32:
		return 64, 128, g.Element.name("gemm_" + g.Form)
	case g.TF32 && g.Bytes != nil:
		return 64, 128, name + "_tf32"
	case g.TF32:
		return 64, 128, fmt.Sprintf("gemm_%s_tf32", g.Form)
	}
	return side, threads, name
}

func (g Gemm) Call() Call {
	if g.Bytes != nil && g.Form == "nn" {
		panic("kernels: a product of byte inputs has form nn, want nt or tn")
	}
	side, threads, name := g.shape()
	l := Launch{Grid: [3]uint32{tiles(g.N, side), tiles(g.M, side), uint32(g.Agents)},
		Block: [3]uint32{uint32(threads), 1, 1}}
	switch {
	case g.Form == "tn" && g.exact():
		name, l.Grid[0], l.Grid[1], l.Block[0] = "gemm_tn_bytes_mma", tiles(g.N, bytesRows), tiles(g.M, bytesColumns),
			wideThreads
	case g.wide():
		name, l.Grid[0], l.Grid[1], l.Block[0] = "gemm_tn_bytes_wide", tiles(g.N, wideRows), tiles(g.M, wideColumns),
			wideThreads
	case g.narrow():
		name, l.Grid[0], l.Grid[1], l.Block[0] = "gemm_tn_narrow", tiles(g.N, columnBlock), tiles(g.M, narrowRows),
			columnThreads
	}
	var args []any
	operand := func(o Operand) { args = append(args, o.List, o.At, o.Offset) }
	if g.Bytes != nil && g.Form == "nt" {
		args = append(args, g.Bytes.args()...)
	} else {
		operand(g.A)
	}
	if g.Bytes != nil && g.Form == "tn" {
		args = append(args, g.Bytes.args()...)
	} else {
		operand(g.B)
	}
	operand(g.C)
	operand(g.Aux)
	if g.Element != F32 && (g.Bytes == nil || g.Form != "nt") {
		operand(g.Sums)
	}
	args = append(args, g.M, g.N, g.K, int(g.Epilogue), g.Factor)
	if g.Element != F32 {
		args = append(args, g.halfArgs()...)
	}
	return call(name, l, args...)
}

func (b *ByteInputs) args() []any { return []any{b.Bytes, b.Rows, b.Scale, b.Shift} }

func tiles(n, side int) uint32 { return uint32((n + side - 1) / side) }

// chunksOf returns how many chunks k products have.
func chunksOf(k int) int { return (k + chunk - 1) / chunk }

// bytesParts is the number of summands of a chunk of k on tensor cores. With two, ten agents with
// batches of 256 fill the places of an H100 twice, and one block computes while the other waits for
// memory: an iteration of figure 1 took 63.5 µs with one, and 60 with two.
const bytesParts = 2

// Parts returns the number of summands of PartsCall.
func (g Gemm) Parts() int {
	if g.exact() {
		return min(bytesParts*chunksOf(g.K), g.K/bytesStep) // each has a step
	}
	return chunksOf(g.K)
}

// PartsCall returns the launch of a product of byte inputs in form nt that writes its summands, one
// for each chunk of k or part of one: part holds them agent by agent, each of M×N numbers. Their
// sum from left to right has the bits of the product. It spreads the products of few elements over
// more blocks.
func (g Gemm) PartsCall(part Address) Call {
	rows, columns, threads, name := wideRows, wideColumns, partsThreads, "gemm_nt_bytes_parts"
	if g.exact() {
		rows, columns, threads, name = bytesRows, bytesColumns, wideThreads, "gemm_nt_bytes_mma"
	}
	parts := g.Parts()
	l := Launch{Grid: [3]uint32{tiles(g.N, columns) * uint32(parts), tiles(g.M, rows), uint32(g.Agents)},
		Block: [3]uint32{uint32(threads), 1, 1}}
	args := append(g.Bytes.args(), g.B.List, g.B.At, g.B.Offset, part, parts, g.M, g.N, g.K)
	return call(name, l, args...)
}

// BiasGradient writes the column sums of each agent's m×n matrix dy, the gradient of a bias, plus
// factor times b. b may be none.
func BiasGradient(agents int, db, dy, b Operand, factor float32, m, n int) Call {
	l := Launch{Grid: [3]uint32{tiles(n, columnBlock), 1, uint32(agents)}, Block: [3]uint32{columnThreads, 1, 1}}
	return call("bias_gradient", l, db.List, db.At, db.Offset, dy.List, dy.At, dy.Offset, b.List, b.At, b.Offset,
		factor, m, n)
}
