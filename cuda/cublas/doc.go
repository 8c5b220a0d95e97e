// Package cublas binds cuBLAS and cuBLASLt to tables of Go functions: matrix products on a GPU.
//
// [Bind] binds [API] to the library that fspda/cuda/dynlib has found; that needs no GPU. cuBLAS
// stores matrices by columns; [Handle.Gemm] takes them by rows.
//
// [BindLt] and [Lt] bind cuBLASLt, which adds an epilogue to a product in the same kernel: a bias,
// a ReLU, or the gradient of a bias. A [Matmul] has an algorithm that is chosen once, for given
// shapes and alignments. If the library has no algorithm, [Lt.NewMatmul] returns [ErrUnsupported]
// and the caller must compute the product in another way.
package cublas
