package cublas

import "fspda/cuda/driver"

// Epilogue is the operation applied to a product C = A·B before it is written: a value of
// cublasLtEpilogue_t.
type Epilogue int32

const (
	epilogueNone     Epilogue = 1
	EpilogueBias     Epilogue = 4 // add a bias of C's type to each row
	EpilogueReLUBias Epilogue = 6 // add the bias, then apply ReLU
	// add the bias, apply ReLU, and write a bit mask of the positive numbers
	EpilogueReLUMaskBias Epilogue = 134
	EpilogueReLUGrad     Epilogue = 136 // multiply by the mask: the gradient of ReLU
	// apply GELU in its tanh form, and write the numbers that it is applied to
	EpilogueGELU     Epilogue = 160
	EpilogueGELUBias Epilogue = 164 // EpilogueGELU after adding the bias
	EpilogueGELUGrad Epilogue = 192 // multiply by the slope of GELU at the numbers that it was applied to
	// leave C; write the sums of A over K, of C's type, to the bias: the gradient of a bias
	EpilogueBiasGrad Epilogue = 512
)

// Operands holds the addresses that an epilogue reads or writes besides the matrices. Unused ones
// are 0.
type Operands struct {
	Bias driver.Pointer // N numbers of C's type; M for EpilogueBiasGrad
	// Aux is MaskBytes(M, N) bytes of a mask, or M·N numbers of C's type that GELU is applied to.
	Aux driver.Pointer
}

func (e Epilogue) hasBias() bool {
	return e != epilogueNone && e != EpilogueReLUGrad && e != EpilogueGELU && e != EpilogueGELUGrad
}

func (e Epilogue) hasMask() bool { return e == EpilogueReLUMaskBias || e == EpilogueReLUGrad }

// hasGELU reports whether an epilogue reads or writes the numbers that GELU is applied to.
func (e Epilogue) hasGELU() bool {
	return e == EpilogueGELU || e == EpilogueGELUBias || e == EpilogueGELUGrad
}

func (e Epilogue) hasAux() bool { return e.hasMask() || e.hasGELU() }

// auxRow returns the length from one row of an epilogue's Aux to the next, if C has n columns: bits
// of a mask, or numbers.
func (e Epilogue) auxRow(n int) int {
	if e.hasMask() {
		return maskRow(n)
	}
	return n
}

// geluColumns divides the columns of a product with GELU.
const geluColumns = 8

// maskAlignment divides the number of bits in a row of a mask: see
// CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD in cublasLt.h.
const maskAlignment = 128

// maskRow returns the number of bits from one row of a mask to the next, if C has n columns.
func maskRow(n int) int { return (n + maskAlignment - 1) / maskAlignment * maskAlignment }

// MaskBytes returns the size of the mask of an m×n matrix: one bit per number, stored by rows.
func MaskBytes(m, n int) int { return m * maskRow(n) / 8 }
