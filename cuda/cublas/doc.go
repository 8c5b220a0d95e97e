// Package cublas is cuBLAS as a table of Go functions: matrix products on a GPU.
//
// [Bind] binds the [API] to the library that fspda/cuda/dynlib has found; no GPU is needed for
// that. Matrices are stored by columns, as everywhere in cuBLAS: [Handle.Gemm] takes them by rows.
//
// [BindLt] and [Lt] are cuBLASLt, which adds a bias to a product, or sums up a factor, in the same
// kernel. A [Matmul] is chosen once, for shapes and alignments; what the library has no algorithm
// for is the caller's.
package cublas
