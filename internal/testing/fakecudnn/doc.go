// Package fakecudnn implements cuDNN's graph API in Go, for tests without a GPU or without the
// library.
//
// A [Graph] accepts descriptors as the library does, and is stricter. An attribute whose name, type
// or count differs from NVIDIA's documentation, an attribute set twice, a node used before it is
// finalized, and a node destroyed twice are recorded in Graph.Faults. Heuristics recommend the
// engines that the test names, and a function of the test executes the plans.
package fakecudnn
