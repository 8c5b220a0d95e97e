// Package algotest plays algorithms on any device, on a problem of which an independent program
// knows the trajectories.
//
// A [Golden] is an algorithm with the models that six iterations lead to. [Golden.Error] plays
// them: to ten digits on a device that computes in float64, and within the roundings of float32
// elsewhere, whose bound is [Float32Bound]. Masks, exchanges over an edge, mixing with fixed
// weights and rounds of several iterations are all in it, so a device that passes moves vectors as
// the algorithms mean it. Not in it are the asynchronous form, broadcasts of compressed vectors and
// codes on a lattice, which go through the same operations.
package algotest
