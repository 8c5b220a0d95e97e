package kernels

import "math"

var _ = define("embed.cu",
	"embed y:p ids:p tokens:p positions:p at:p m:l v:i c:i t:i places:i",
	"sort_tokens order:p ids:p m:i v:i",
	"embed_grad_tokens dtokens:p order:p ids:p dy:p base:p m:i v:i c:i",
	"embed_grad_positions dpositions:p dy:p m:i c:i t:i",
	"last_token y:p x:p windows:l t:i c:i",
)

var _ = defineEach("layernorm.cu", allElements,
	"layer_norm_%s s:p y:p mean:p rstd:p a:p d:p gamma:p beta:p m:l c:i eps:d",
	"layer_norm_grad_%s dx:p lost:p x:p dy:p gamma:p mean:p rstd:p e:p m:l c:i",
	"layer_norm_sums_%s part:p lost:p x:p dy:p mean:p rstd:p m:l c:i",
)

var _ = define("layernorm.cu",
	"layer_norm_params dgamma:p dbeta:p part:p parts:i c:i",
)

var _ = defineEach("layernorm_half.cu", halfElements,
	"layer_norm_rows_%s s:p y:p mean:p rstd:p a:p d:p gamma:p beta:p m:i c:i eps:f",
	"layer_norm_rows_grad_%s dx:p rounded:p part:p x:p dy:p gamma:p mean:p rstd:p e:p m:i c:i",
)

var _ = define("layernorm_half.cu",
	"layer_norm_columns dgamma:p dbeta:p sums:p part:p parts:i c:i",
)

var _ = defineEach("gelu.cu", allElements,
	"gelu_%s y:p x:p n:l form:i",
	"gelu_grad_%s dx:p x:p dy:p n:l form:i",
	"bias_gelu_%s y:p z:p bias:p m:l n:i form:i",
	"swiglu_%s y:p gu:p m:l f:i",
	"swiglu_grad_%s dgu:p gu:p dy:p m:l f:i",
)

// Embedding is device.Embed or device.TokenEmbed and their gradients: M rows of C numbers, V
// tokens, Places rows of Positions, windows of T. Everything is float32; Positions is 0 without
// positions.
type Embedding struct {
	M, V, C, Places, T int

	IDs, Tokens, Positions Address
	At                     Address // the place of the first row of the only window; 0: rows are whole windows
	Y, DY                  Address

	DTokens, DPositions Address
	Base                Address // a summand of DTokens; 0 if there is none
	Scratch             Address // has ScratchBytes; only Grad needs it
}

// sortRows is how many rows a block of sort_tokens sorts.
const sortRows = 32

// ScratchBytes returns the size of Scratch: the order of the rows by token.
func (e *Embedding) ScratchBytes() int { return 4 * e.M }

// Forward computes Y. A token that is not in the vocabulary gives a row of NaN.
func (e *Embedding) Forward() Call {
	return call("embed", over(e.M*e.C), e.Y, e.IDs, e.Tokens, e.Positions, e.At, e.M, e.V, e.C, max(e.T, 1), e.Places)
}

// Grad computes DTokens, and DPositions unless it is 0.
func (e *Embedding) Grad() []Call {
	calls := []Call{
		call("sort_tokens", blocks(256*((e.M+sortRows-1)/sortRows), 256), e.Scratch, e.IDs, e.M, e.V),
		call("embed_grad_tokens", each(e.V), e.DTokens, e.Scratch, e.IDs, e.DY, e.Base, e.M, e.V, e.C),
	}
	if e.DPositions != 0 {
		calls = append(calls, call("embed_grad_positions", each(e.Places), e.DPositions, e.DY, e.M, e.C, e.T))
	}
	return calls
}

// each returns the geometry of n blocks.
func each(n int) Launch { return blocks(128*n, 128) }

// LastToken is device.LastToken.
func LastToken(y, x Address, windows, t, c int) Call {
	return call("last_token", over(windows*c), y, x, windows, t, c)
}

// LayerNorm is device.AddLayerNorm with its variants, or device.RMSNorm, of M rows of C numbers,
// and the gradient. Y, DY and Addend are of an Element, everything else is float32.
type LayerNorm struct {
	M, C    int
	Eps     float64
	Element Element

	X, Addend   Address // S = X + Addend is normalised; Addend 0: X
	Gamma, Beta Address // Beta may be 0
	S, Y        Address // S only with an Addend
	Mean, RStd  Address // Mean is 0 for RMS norm

	DY, DX, DGamma, DBeta Address // DBeta may be 0
	DXAddend              Address // a summand of DX; 0 if there is none
	Rounded               Address // DX, rounded to Element; 0: it is not needed
	Sums                  Address // the sums of the columns of DX; 0: they are not needed
	Scratch               Address // has ScratchBytes; only Grad needs it
}

const (
	warpSize   = 32
	rowWarps   = 8  // rows of a block, as LAYER_WARPS of layernorm.cu
	rowsOfPart = 64 // rows of a partial sum, as LAYER_PART

	// layernorm_half.cu has the same numbers.
	normThreads = 768 // the most threads of a block, which have four columns each
	normRows    = 16  // rows of a block and of a partial sum
	normLines   = 32  // parts that a block of layer_norm_columns adds at once
)

func (n *LayerNorm) parts() int { return (n.M + rowsOfPart - 1) / rowsOfPart }

// ScratchBytes returns the size of Scratch: a float64 for each row and two for each column of each
// part of the rows, or three float32 for each column of each block of rows.
func (n *LayerNorm) ScratchBytes() int {
	return max(8*(n.M+2*n.C*n.parts()), 4*3*n.C*int(n.blocks().Grid[0]))
}

// inBlocks reports whether blocks of layernorm_half.cu compute matrices at these addresses.
func (n *LayerNorm) inBlocks(float32s, halves Address) bool {
	return n.Element != F32 && n.C%4 == 0 && n.C <= 4*normThreads && n.M*n.C <= math.MaxInt32 &&
		float32s%16 == 0 && halves%8 == 0
}

// blocks returns the geometry of a thread for four columns of some rows.
func (n *LayerNorm) blocks() Launch {
	return Launch{Grid: [3]uint32{uint32((n.M + normRows - 1) / normRows), 1, 1},
		Block: [3]uint32{uint32((n.C/4 + warpSize - 1) / warpSize * warpSize), 1, 1}}
}

// Forward computes S, Y and the statistics.
func (n *LayerNorm) Forward() Call {
	if n.inBlocks(n.S|n.X, n.Y|n.Addend) {
		return call(n.Element.name("layer_norm_rows"), n.blocks(), n.S, n.Y, n.Mean, n.RStd, n.X, n.Addend, n.Gamma,
			n.Beta, n.M, n.C, float32(n.Eps))
	}
	return call(n.Element.name("layer_norm"), n.rows(), n.S, n.Y, n.Mean, n.RStd, n.X, n.Addend, n.Gamma, n.Beta, n.M,
		n.C, n.Eps)
}

// rows returns the geometry of a warp for each row.
func (n *LayerNorm) rows() Launch { return blocks(warpSize*n.M, warpSize*rowWarps) }

// Grad computes DX, Rounded, Sums, DGamma and DBeta.
func (n *LayerNorm) Grad() []Call {
	if rows := n.blocks(); n.inBlocks(n.X|n.DX|n.DXAddend|n.Scratch, n.DY|n.Rounded) {
		columns := Launch{Grid: [3]uint32{uint32((n.C + warpSize - 1) / warpSize), 2, 1},
			Block: [3]uint32{normLines * warpSize, 1, 1}}
		if n.Sums != 0 {
			columns.Grid[1] = 3
		}
		return []Call{
			call(n.Element.name("layer_norm_rows_grad"), rows, n.DX, n.Rounded, n.Scratch, n.X, n.DY, n.Gamma, n.Mean,
				n.RStd, n.DXAddend, n.M, n.C),
			call("layer_norm_columns", columns, n.DGamma, n.DBeta, n.Sums, n.Scratch, int(rows.Grid[0]), n.C),
		}
	}
	lost, part := n.Scratch, n.Scratch+Address(8*n.M)
	sums := Launch{Grid: [3]uint32{uint32((n.C + 31) / 32), uint32(n.parts()), 1}, Block: [3]uint32{threads, 1, 1}}
	calls := []Call{
		call(n.Element.name("layer_norm_grad"), n.rows(), n.DX, lost, n.X, n.DY, n.Gamma, n.Mean, n.RStd, n.DXAddend,
			n.M, n.C),
		call(n.Element.name("layer_norm_sums"), sums, part, lost, n.X, n.DY, n.Mean, n.RStd, n.M, n.C),
		call("layer_norm_params", over(n.C), n.DGamma, n.DBeta, part, n.parts(), n.C),
	}
	if n.Rounded != 0 {
		calls = append(calls, Narrow(n.Element, n.Rounded, n.DX, n.M*n.C))
	}
	if n.Sums != 0 {
		calls = append(calls, ColumnSums(F32, n.Sums, n.DX, n.M, n.C))
	}
	return calls
}

// GELUForm is a form of GELU.
type GELUForm int

// The forms of GELU.
const (
	GELUTanh GELUForm = iota
	GELUErf
)

// GELU is device.GELUTanh or device.GELUErf of n numbers.
func GELU(e Element, form GELUForm, y, x Address, n int) Call {
	return call(e.name("gelu"), overPacks(e, n), y, x, n, int(form))
}

// GELUGrad is the gradient of GELU. dx may be dy.
func GELUGrad(e Element, form GELUForm, dx, x, dy Address, n int) Call {
	return call(e.name("gelu_grad"), overPacks(e, n), dx, x, dy, n, int(form))
}

// BiasGELU adds a bias of float32, unless it is 0, to each of the m rows of z, and writes the GELU
// of z to y.
func BiasGELU(e Element, form GELUForm, y, z, bias Address, m, n int) Call {
	return call(e.name("bias_gelu"), overPacks(e, m*n), y, z, bias, m, n, int(form))
}

// overPacks returns the geometry of a thread for each pack of n numbers.
func overPacks(e Element, n int) Launch { return over((n + e.Pack() - 1) / e.Pack()) }

// SwiGLU is device.SwiGLU.
func SwiGLU(e Element, y, gu Address, m, f int) Call {
	return call(e.name("swiglu"), over(m*f), y, gu, m, f)
}

// SwiGLUGrad is device.SwiGLUGrad.
func SwiGLUGrad(e Element, dgu, gu, dy Address, m, f int) Call {
	return call(e.name("swiglu_grad"), over(m*f), dgu, gu, dy, m, f)
}

// RoPE is device.RoPE and its gradient: M rows of windows of T tokens, Heads of Width numbers.
type RoPE struct {
	M, T, Heads, Width int
	Theta              float64

	X, Y    Address // may be equal
	At      Address // the place of the first row of the only window; 0: rows are whole windows
	Scratch Address // has ScratchBytes
}

// ScratchBytes returns the size of Scratch: a cosine and a sine for each pair of each place.
func (r *RoPE) ScratchBytes() int { return 4 * r.T * r.Width }

// Turn computes Y by the angles, times sign.
func (r *RoPE) Turn(sign float32) []Call {
	pairs := r.Width / 2
	return []Call{
		call("rope_table", over(r.T*pairs), r.Scratch, r.At, r.T, pairs, r.Theta),
		call("rope", over(r.M*3*r.Heads*pairs), r.Y, r.X, r.Scratch, r.M, r.T, r.Heads, pairs, sign),
	}
}

// AttentionStep is device.AttentionStep: M rows of one window, a cache of Places rows, Heads of
// Width numbers.
type AttentionStep struct {
	M, Places, Heads, Width int

	QKV, Cache, At Address
	Y, Moved       Address // Moved may be Cache
	Scratch        Address // has ScratchBytes
}

// ScratchBytes returns the size of Scratch: the scores.
func (a *AttentionStep) ScratchBytes() int { return 4 * a.M * a.Heads * a.Places }

// Calls computes Moved and Y. A place outside of the cache gives NaN.
func (a *AttentionStep) Calls() []Call {
	high, low := keyScale(a.Width)
	return []Call{
		call("attention_cache", over(a.Places*2*a.Heads*a.Width), a.Moved, a.Cache, a.QKV, a.At, a.M, a.Places, a.Heads,
			a.Width, high, low),
		call("attention_step", each(a.M*a.Heads), a.Y, a.Scratch, a.QKV, a.Moved, a.At, a.M, a.Places, a.Heads,
			a.Width),
	}
}
