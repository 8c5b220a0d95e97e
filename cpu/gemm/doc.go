// Package gemm computes matrix products and the fully connected layers.
//
// [Multiply] is sgemm of the BLAS for row-major matrices; gemm.go defines every element of its
// result to the last bit. [Kernels] are the layers: a product, its gradients, and an epilogue
// (epilogue.go) that adds the bias and applies the activation while a strip of the product is in
// the first-level cache.
//
// With assembly a product runs in blocks (packed.go): a block of op(B) is packed into panels for
// the second-level cache, strips of op(A) pass over it, and the micro-kernels of fspda/cpu/tile
// compute the tiles. While they run, they prefetch the operands of the next strip and block
// (prefetch.go). A product with few columns is computed as its transpose if that fills the vectors
// better (transposed.go). An operand may be a matrix of bytes, which is decoded while it is packed
// (bytes.go). [Orthogonalize] lays its matrices out so that nothing is packed (direct.go). Without
// assembly a product is in Go (plain.go), with the same bits.
//
// [PairKernels] are the layers with factors that are rounded to bfloat16 (pairs.go).
//
// A product runs on the calling goroutine; [Kernels] divide C among the workers of a Program, which
// pack a small factor that all of them read together (together.go).
// [Peak] measures the limit that no product exceeds.
package gemm
