// Package fakecudnn is cuDNN's graph API in Go, for tests without a GPU or without the library.
//
// A [Graph] takes descriptors as the library does, and is stricter: an attribute of another name,
// type or count than NVIDIA documents, one that is set twice, a node that is used before it is
// complete, or given back twice, are faults that [Graph.Faults] lists. Heuristics offer the engines
// that a test names, and what a plan computes is up to the test.
package fakecudnn
