package kernels

import "fmt"

var _ = define("norm.cu",
	"norm_given mean:p variance:p gamma:p beta:p c:i eps:d mean_out:p scale:p shift:p",
)

var _ = defineEach("norm.cu", allElements,
	"norm_moments_%s part:p arrived:p x:p gamma:p beta:p m:l c:i rows:i eps:d mean:p variance:p scale:p shift:p",
	"norm_apply_%s y:p mask:p x:p z:p mean:p scale:p shift:p m:l c:i rows:i epilogue:i",
	"norm_apply_two_%s y:p mask:p x:p z:p mean:p scale:p shift:p mean_z:p scale_z:p shift_z:p m:l c:i rows:i",
	"norm_grad_sums_%s part:p arrived:p dz:p x:p dy:p other:p y:p mask:p mean:p scale:p shift:p m:l c:i rows:i "+
		"relu_mask:i gamma:p variance:p eps:d dgamma:p dbeta:p a:p b:p e:p",
	"norm_grad_apply_%s dx:p x:p dy:p y:p mask:p mean:p scale:p shift:p a:p b:p e:p m:l c:i rows:i relu_mask:i",
)

// NormEpilogue is the operation after the affine map of a normalisation.
type NormEpilogue int

const (
	Plain   NormEpilogue = iota
	ReLU                 // y = max(map(x), 0)
	AddReLU              // y = max(map(x) + z, 0)
)

// Sources of the ReLU mask for the gradient; norm.cu uses the same numbers.
const (
	reluNone = iota
	reluFromOutput
	reluFromBits
	reluFromInput
)

// Norm is the normalisation of an m×c matrix of Elements, and its gradient: device.BatchNorm and
// device.Normalize with an epilogue. Parameters, statistics and factors are float32 vectors of c
// numbers.
type Norm struct {
	Element  Element
	M, C     int
	Eps      float64
	Epilogue NormEpilogue

	X, Z, Y Address // Z is the summand; Y may be X
	Mask    Address // if not 0: one bit per number that is greater than 0, in MaskBytes
	Part    Address // scratch of PartNumbers float64 numbers
	Arrived Address // ArrivedBytes of memory for this purpose only, 0 before the first launch
	NormParams
	NormGrads
	SummandMap
}

// NormParams is the parameters and statistics of a normalisation.
type NormParams struct {
	Gamma, Beta    Address
	Mean, Variance Address
	Scale, Shift   Address // the affine map y = (x-mean)·scale + shift, also for a gradient that recomputes y
}

// NormGrads is the operands of a normalisation's gradient.
type NormGrads struct {
	DX, DY, DZ                Address // DX may be DY
	Other                     Address // if not 0: a second summand of DY; requires DZ
	DGamma, DBeta             Address
	FactorA, FactorB, FactorE Address // scratch
}

// SummandMap is the affine map of a second normalisation, which is applied to Z before it is added.
// It is unused if MeanZ is 0.
type SummandMap struct{ MeanZ, ScaleZ, ShiftZ Address }

const (
	normAcross = 8  // packs of columns per block
	normDown   = 32 // rows per step
)

// columnBlocks returns the number of blocks side by side.
func (n *Norm) columnBlocks() int {
	columns := normAcross * n.Element.Pack()
	return (n.C + columns - 1) / columns
}

// rows returns the rows per block that sums: enough blocks to fill any GPU, and at most 64 numbers
// per thread.
func (n *Norm) rows() int { return n.rowsFor(1024, 64*normDown) }

// rowsToMap returns the rows per block that maps without summing: smaller blocks, so that the last
// ones finish early.
func (n *Norm) rowsToMap() int {
	const mostDown = 65535 // limit of a grid
	least := (n.M/mostDown + normDown) / normDown * normDown
	return max(n.rowsFor(4096, 16*normDown), least)
}

// rowsFor returns the rows per block for a number of blocks: at most `most`, and at least the rows
// that a thread loads at once.
func (n *Norm) rowsFor(blocks, most int) int {
	want := (n.M*n.columnBlocks() + blocks - 1) / blocks
	return max(4*normDown, min(most, (want+normDown-1)/normDown*normDown))
}

// parts returns the number of blocks one below the other that sum.
func (n *Norm) parts() int { return (n.M + n.rows() - 1) / n.rows() }

func (n *Norm) PartNumbers() int { return 2 * n.parts() * n.C }

// MaskBytes returns the size of a bit mask, one byte per pack. The rows of the matrix must be whole
// packs.
func (n *Norm) MaskBytes() int { return n.M * n.C / n.Element.Pack() }

func (n *Norm) launch(rows int) Launch {
	down := (n.M + rows - 1) / rows
	if down > 65535 {
		panic(fmt.Sprintf("kernels: normalising %d rows of %d columns, want at most %d rows", n.M, n.C, 65535*rows))
	}
	return Launch{Grid: [3]uint32{uint32(n.columnBlocks()), uint32(down), 1}, Block: [3]uint32{threads, 1, 1}}
}

// ArrivedBytes returns the size of Arrived: the counts of the blocks that have written their sums.
func (n *Norm) ArrivedBytes() int { return 4 * n.columnBlocks() * (normDown + 1) }

// Statistics computes Mean, Variance, Scale and Shift from X.
func (n *Norm) Statistics() Call {
	return call(n.Element.name("norm_moments"), n.launch(n.rows()), n.Part, n.Arrived, n.X, n.Gamma, n.Beta, n.M, n.C,
		n.rows(), n.Eps, n.Mean, n.Variance, n.Scale, n.Shift)
}

// Given computes Scale and Shift from Mean and Variance.
func (n *Norm) Given() Call {
	return call("norm_given", over(n.C), n.Mean, n.Variance, n.Gamma, n.Beta, n.C, n.Eps, n.Mean, n.Scale, n.Shift)
}

// Apply computes Y, and Mask if set, from X, Mean, Scale and Shift: after Statistics, after Given,
// or again if Y was not kept.
func (n *Norm) Apply() Call {
	n.checkMask()
	rows := n.rowsToMap()
	if n.MeanZ != 0 {
		if n.Epilogue != AddReLU {
			panic("kernels: MeanZ is set, but the epilogue has no summand")
		}
		return call(n.Element.name("norm_apply_two"), n.launch(rows), n.Y, n.Mask, n.X, n.Z, n.Mean, n.Scale, n.Shift,
			n.MeanZ, n.ScaleZ, n.ShiftZ, n.M, n.C, rows)
	}
	return call(n.Element.name("norm_apply"), n.launch(rows), n.Y, n.Mask, n.X, n.Z, n.Mean, n.Scale, n.Shift, n.M, n.C,
		rows, int(n.Epilogue))
}

func (n *Norm) checkMask() {
	if n.Mask != 0 && n.C%n.Element.Pack() != 0 {
		panic(fmt.Sprintf("kernels: a bitmask of %d columns, want a multiple of %d", n.C, n.Element.Pack()))
	}
}

// Grad computes DX, DGamma and DBeta, and DZ if there is a summand, from DY or DY + Other. The ReLU
// mask comes from Mask if set, else from Y if set, else, without a summand, from X, Scale and
// Shift.
func (n *Norm) Grad() []Call { return []Call{n.GradSums(), n.GradApply()} }

// GradSums is the first kernel of Grad: all outputs but DX, and the factors of DX.
func (n *Norm) GradSums() Call {
	n.checkMask()
	if n.Other != 0 && n.DZ == 0 {
		panic("kernels: the gradient of a normalisation with Other needs DZ, which gets the sum")
	}
	return call(n.Element.name("norm_grad_sums"), n.launch(n.rows()), n.Part, n.Arrived, n.DZ, n.X, n.DY, n.Other,
		n.Y, n.Mask, n.Mean, n.Scale, n.Shift, n.M, n.C, n.rows(), n.reluMask(), n.Gamma, n.Variance, n.Eps, n.DGamma,
		n.DBeta, n.FactorA, n.FactorB, n.FactorE)
}

// GradApply is the second kernel of Grad.
func (n *Norm) GradApply() Call {
	g, reluMask := n.gradient()
	rows := n.rowsToMap()
	return call(n.Element.name("norm_grad_apply"), n.launch(rows), n.DX, n.X, g, n.Y, n.Mask, n.Mean, n.Scale,
		n.Shift, n.FactorA, n.FactorB, n.FactorE, n.M, n.C, rows, reluMask)
}

// gradient returns the gradient of which DX is made, and the source of its ReLU mask.
func (n *Norm) gradient() (g Address, reluMask int) {
	if n.DZ != 0 { // it holds the masked gradient
		return n.DZ, reluNone
	}
	return n.DY, n.reluMask()
}

func (n *Norm) reluMask() int {
	switch {
	case n.Epilogue == Plain:
		return reluNone
	case n.Mask != 0:
		return reluFromBits
	case n.Y != 0:
		return reluFromOutput
	case n.Epilogue == ReLU:
		return reluFromInput
	}
	panic("kernels: the gradient of a normalisation with a summand needs Y or Mask")
}
