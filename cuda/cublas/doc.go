// Package cublas is cuBLAS as a table of Go functions: matrix products on a GPU.
//
// [Bind] binds the [API] to the library that fspda/cuda/dynlib has found; no GPU is needed for that. Matrices are stored by columns, as everywhere in
// cuBLAS: [Handle.Gemm] takes them by rows.
package cublas
