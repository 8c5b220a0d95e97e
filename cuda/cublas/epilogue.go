package cublas

import "fspda/cuda/driver"

// Epilogue is what is done to a product C = A·B before it is written: a value of
// cublasLtEpilogue_t.
type Epilogue int32

const (
	WithBias         Epilogue = 4   // the bias, of C's type, is added to each row
	WithBiasReLU     Epilogue = 6   // and what is less than 0 becomes 0
	WithBiasReLUMask Epilogue = 134 // and a mask says which numbers did not
	Masked           Epilogue = 136 // what the mask lacks becomes 0: the gradient of ReLU
	// nothing; the sums over K of A, of C's type, are written where a bias would be read
	SumsOfA Epilogue = 512
)

// Beside is where lies what an epilogue reads or writes beside the matrices. What it does not want
// is 0.
type Beside struct {
	Bias driver.Pointer // N numbers of C's type; of SumsOfA, M
	Mask driver.Pointer // MaskBytes bytes
}

func (e Epilogue) masks() bool  { return e == WithBiasReLUMask || e == Masked }
func (e Epilogue) biased() bool { return e != Masked }

// maskLine is what the bits of a row of a mask are a multiple of: cublasLt.h says so at
// CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD.
const maskLine = 128

// maskRow is the bits from one row of a mask to the next, where C has rows of n numbers.
func maskRow(n int) int { return (n + maskLine - 1) / maskLine * maskLine }

// MaskBytes is the size of the mask of a C of m×n: a bit for each number, in rows as C's.
func MaskBytes(m, n int) int { return m * maskRow(n) / 8 }
