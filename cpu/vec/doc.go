// Package vec computes on vectors and on rows of a matrix.
//
// [Ops] holds the operations of a device.Device on vectors: combinations (combine.go,
// differences.go), scalar products (reduce.go) and access by an [Index] (sparse.go, scatter.go).
// [Kernels] lists the element-wise kernels (elementwise.go, activation.go) and those over rows of
// logits (softmax.go, loss.go, score.go). ReLUs, Sigmoids and the like are the loops of kernels for
// other packages: an epilogue of a product uses them.
//
// Each loop is written twice: in Go, in a function whose name ends in Go, which defines it to the
// last bit and runs without assembly; and in assembly for AVX-512, AVX2 and NEON, by the command in
// tools/asm/vecgen. Each product is rounded before it is added, except in GELU (curve.go) and the
// exponentials of rows (power.go), which have fused multiply-adds.
//
// Beyond the caches a core waits for a limited number of cache lines. The loops therefore prefetch
// into the second-level cache, which allows most, about forty lines ahead in total over all their
// vectors, and write long outputs by non-temporal stores (nontemporal.go). [Bandwidth] measures the
// limit that reading and writing alone have.
package vec
