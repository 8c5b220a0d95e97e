package kernels

import (
	"cmp"
	"fmt"
	"slices"
)

var _ = defineEach("pointwise.cu", halfElements, slices.Concat(
	pointwiseKernels("pointwise_64", forwardParams, inputPlain, inputReLU, inputAdd, inputAddMap),
	pointwiseKernels("pointwise_128", forwardParams, inputPlain, inputReLU, inputAdd, inputAddMap),
	pointwiseKernels("pointwise_grad_64", gradParams, inputPlain, inputReLU),
	pointwiseKernels("pointwise_grad_128", gradParams, inputPlain, inputReLU),
	[]string{pointwiseBoth(64), pointwiseBoth(128), pointwiseBoth(256), pointwiseBoth(512),
		"add_filters_%s dw:p filters:p n:i parts:i"})...)

// What a kernel does with its input: see pointwise.cu. Kernels of gradients have the first two.
const (
	inputPlain  = "plain"
	inputReLU   = "relu"
	inputAdd    = "add"
	inputAddMap = "add_map"
)

const (
	forwardParams = "y:p x:p z:p stored:p mask:p mean:p scale:p shift:p mean_z:p scale_z:p shift_z:p height:i " +
		"width:i stride:i w:p m:l n:i k:i tiles:i part:p arrived:p gamma:p beta:p eps:d mean_y:p variance_y:p " +
		"scale_y:p shift_y:p"
	gradParams = "dx:p dy:p x:p stored:p mean:p scale:p shift:p a:p b:p e:p w:p m:l n:i k:i tiles:i part:p arrived:p " +
		"other:p x_out:p mask_out:p mean_out:p scale_out:p shift_out:p relu_mask_out:i gamma:p variance:p eps:d " +
		"dgamma:p dbeta:p a_out:p b_out:p e_out:p"
)

// pointwiseKernels returns the kernels of a name for several inputs.
func pointwiseKernels(name, params string, inputs ...string) (all []string) {
	for _, input := range inputs {
		all = append(all, name+"_"+input+"_%s "+params)
	}
	return all
}

func init() {
	for _, e := range halfElements {
		for k, columns := range bothColumns {
			table[e.name(fmt.Sprintf("pointwise_both_%d", k))].MaxShared = bothShared(k, columns)
		}
	}
}

func pointwiseBoth(k int) string {
	return fmt.Sprintf("pointwise_both_%d_%%s dx:p dy:p x:p mean:p scale:p shift:p a:p b:p e:p relu_mask:i w:p m:l "+
		"n:i tiles:i part:p arrived:p other:p x_out:p mask_out:p mean_out:p scale_out:p shift_out:p relu_mask_out:i "+
		"gamma:p variance:p eps:d dgamma:p dbeta:p a_out:p b_out:p e_out:p input:p filters:p", k)
}

// Pointwise is a convolution of 1×1, or with stride 1 the gradient of its input, as a product of
// the matrix A of M×K and the weights. The normalisation In, if any, makes A: its Apply, or the
// last kernel of its Grad, has not run, and the product stores what they would. The normalisation
// Out reads C, the product: its Statistics, or the first kernel of its Grad, is computed here too.
//
// Elements have 16 bits, K and N are multiples of 8, and all matrices are aligned to 16 bytes. The
// GPU needs tensor cores of compute capability 8.0.
type Pointwise struct {
	Element Element
	M, N, K int
	A, W, C Address // without In, A is the first factor; C is not written where Out stores DZ instead
	In, Out *Norm

	// of Forward without In: the size of the images in A, whose every Stride-th row and column
	// count;
	// 0 and 1: all rows of A
	Height, Width, Stride int

	// about how many blocks to use. 0: enough to fill any GPU, not of Both
	Blocks int
	// of Both: the input of the convolution, the gradient of its filters, and scratch of
	// FilterBytes
	Input, DW, Filters Address
}

const (
	pointwiseRows  = 64 // of a tile
	pointwiseTiles = 16 // at most of a block, so that a thread sums at most 64 numbers
)

// pointwiseColumns returns the columns of a tile of the product.
func pointwiseColumns(n int) int {
	if n <= 64 {
		return 64
	}
	return 128
}

// pointwiseShared returns the size of PointwiseMemory of pointwise.cu, in bytes.
func pointwiseShared(columns int) int {
	const inner = 64
	return max(2*inner*(pointwiseRows+columns), 2*pointwiseRows*columns, 8*2*8*columns) + 4*16*threads + 2*columns
}

// Fits reports whether the kernels compute products of these sizes.
func (p *Pointwise) Fits() bool {
	return p.Element != F32 && p.K%8 == 0 && p.N%8 == 0 && p.parts() <= 65535 && p.M < 1<<31
}

func (p *Pointwise) parts() int {
	rows := pointwiseRows * p.tiles()
	return (p.M + rows - 1) / rows
}

// tiles returns the tiles of a block: as many as leave enough blocks.
func (p *Pointwise) tiles() int {
	columns := pointwiseColumns(p.N)
	tiles := (p.M + pointwiseRows - 1) / pointwiseRows * ((p.N + columns - 1) / columns)
	return max(1, min(pointwiseTiles, tiles/cmp.Or(p.Blocks, 1024)))
}

// PartNumbers returns the size of Out.Part in float64 numbers.
func (p *Pointwise) PartNumbers() int { return 2 * p.parts() * p.N }

func (p *Pointwise) launch(kernel, input string) (name string, l Launch) {
	if !p.Fits() {
		panic(fmt.Sprintf("kernels: a product of %d×%d with %d columns of %v", p.M, p.K, p.N, p.Element))
	}
	columns := pointwiseColumns(p.N)
	l = Launch{Grid: [3]uint32{uint32((p.N + columns - 1) / columns), uint32(p.parts()), 1},
		Block: [3]uint32{threads, 1, 1}, Shared: uint32(pointwiseShared(columns))}
	return p.Element.name(fmt.Sprintf("%s_%d_%s", kernel, columns, input)), l
}

// bothColumns is the columns of a tile of Both, by K: the gradients of so many filters fit in
// registers.
var bothColumns = map[int]int{64: 256, 128: 128, 256: 64, 512: 64}

// FitsBoth reports whether Both computes these gradients and moves less than two kernels: what it
// does not store and read again is more than the parts of the gradient of the filters.
func (p *Pointwise) FitsBoth() bool {
	if bothColumns[p.K] == 0 {
		return false
	}
	filters, _ := p.FilterBytes()
	return 2*filters < 2*p.M*p.K*p.Element.Size()
}

// MaxBothShared is the most shared memory of a block of Both, in bytes.
func MaxBothShared() (most int) {
	for k, columns := range bothColumns {
		most = max(most, bothShared(k, columns))
	}
	return most
}

// bothShared returns the size of BothMemory of pointwise.cu, in bytes.
func bothShared(k, columns int) int {
	const inner = 64
	return max(2*inner*pointwiseRows, 8*2*8*columns) + 2*k*columns + 2*2*pointwiseRows*columns + 8*16*threads +
		2*columns
}

// bothGrid returns the tiles of a block of Both, and the geometry.
func (p *Pointwise) bothGrid() (tiles int, l Launch) {
	columns := bothColumns[p.K]
	across, down := (p.N+columns-1)/columns, (p.M+pointwiseRows-1)/pointwiseRows
	parts := max(1, p.Blocks/across)
	tiles = (down + parts - 1) / parts
	return tiles, Launch{Grid: [3]uint32{uint32(across), uint32((down + tiles - 1) / tiles), 1},
		Block: [3]uint32{threads, 1, 1}, Shared: uint32(bothShared(p.K, columns))}
}

// FilterBytes returns the size of Filters, and of Out.Part of Both.
func (p *Pointwise) FilterBytes() (filters, part int) {
	_, l := p.bothGrid()
	return 4 * p.K * p.N * int(l.Grid[1]), 2 * 8 * p.N * int(l.Grid[1])
}

// Both is Grad that does not store what In makes, and computes DW, the gradient of the K filters of
// N numbers.
func (p *Pointwise) Both() []Call {
	o := p.gradOutput()
	g, inMask := p.In.gradient()
	tiles, l := p.bothGrid()
	in := p.In
	name := p.Element.name(fmt.Sprintf("pointwise_both_%d", p.K))
	return []Call{
		call(name, l, o.c, g, in.X, in.Mean, in.Scale, in.Shift, in.FactorA, in.FactorB, in.FactorE, inMask, p.W, p.M,
			p.N, tiles, o.Part, o.Arrived, o.Other, o.X, o.Mask, o.Mean, o.Scale, o.Shift, o.mask, o.Gamma, o.Variance,
			o.Eps, o.DGamma, o.DBeta, o.FactorA, o.FactorB, o.FactorE, p.Input, p.Filters),
		call(p.Element.name("add_filters"), blocks(p.K*p.N/4, 64), p.DW, p.Filters, p.K*p.N, int(l.Grid[1])),
	}
}

// Forward computes C = A·Wᵀ, where W has N rows of K numbers.
func (p *Pointwise) Forward() Call {
	in, out, kind, x, stored := p.In, p.Out, inputPlain, p.A, Address(0)
	switch {
	case in == nil:
		in = &Norm{}
	case in.MeanZ != 0:
		kind = inputAddMap
	case in.Epilogue == AddReLU:
		kind = inputAdd
	default:
		kind = inputReLU
	}
	if kind != inputPlain {
		in.checkMask()
		x, stored = in.X, in.Y
	}
	name, l := p.launch("pointwise", kind)
	return call(name, l, p.C, x, in.Z, stored, in.Mask, in.Mean, in.Scale, in.Shift, in.MeanZ, in.ScaleZ, in.ShiftZ,
		p.Height, p.Width, max(p.Stride, 1), p.W, p.M, p.N, p.K, p.tiles(), out.Part, out.Arrived, out.Gamma,
		out.Beta, out.Eps, out.Mean, out.Variance, out.Scale, out.Shift)
}

// Grad computes C = A·W, where W has K rows of N numbers, and A is the gradient that In makes. Where
// Out has a summand, DZ gets C + Other, masked by the ReLU, and C is not written.
func (p *Pointwise) Grad() Call {
	in, o := p.In, p.gradOutput()
	g, inMask := in.gradient()
	kind := inputPlain
	if inMask != reluNone {
		kind = inputReLU
	}
	name, l := p.launch("pointwise_grad", kind)
	return call(name, l, o.c, g, in.X, in.DX, in.Mean, in.Scale, in.Shift, in.FactorA, in.FactorB, in.FactorE,
		p.W, p.M, p.N, p.K, p.tiles(), o.Part, o.Arrived, o.Other, o.X, o.Mask, o.Mean, o.Scale, o.Shift, o.mask,
		o.Gamma, o.Variance, o.Eps, o.DGamma, o.DBeta, o.FactorA, o.FactorB, o.FactorE)
}

// gradOutput is what the gradient of an input writes: c, where the sums of Out take the ReLU mask
// from, and Out.
type gradOutput struct {
	*Norm
	c    Address
	mask int
}

func (p *Pointwise) gradOutput() gradOutput {
	if p.Out == nil {
		return gradOutput{&Norm{}, p.C, reluNone}
	}
	o := gradOutput{p.Out, p.C, p.Out.reluMask()}
	if p.Out.DZ != 0 {
		o.c = p.Out.DZ
	}
	return o
}
