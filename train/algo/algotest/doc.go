// Package algotest tests a device by running every algorithm on it and comparing the models with
// known trajectories.
//
// A [Golden] is an algorithm with its models after six iterations, computed by an independent
// program. [Golden.Error] runs the algorithm and returns the error, which is below 1e-10 on a
// device that computes in float64 and below [Float32Bound] elsewhere. The cases cover masks,
// exchanges over an edge, mixing with fixed weights and rounds of several iterations. They do not
// cover the asynchronous form, broadcasts of compressed vectors and lattice codes, which use the
// same device operations.
package algotest
