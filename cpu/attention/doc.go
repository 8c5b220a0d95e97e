// Package attention computes causal attention and rotary position embeddings.
//
// A row of qkv holds the queries, keys and values of a token, one head after the other. A head of a
// window is the unit of work: it owns its part of the results, so no sums cross workers. Windows of
// up to [Short] tokens use whole rows of scores (short.go); longer ones go through the keys in
// blocks, with a running maximum and sum for each row (blocks.go). So bits depend on the number of
// tokens, and not on threads or instruction sets.
//
// Products (product.go) run on the micro-kernels of fspda/cpu/tile, on the heads where they lie in
// qkv; without assembly they are in Go, with the same bits.
package attention
