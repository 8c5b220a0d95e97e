// Package orthogonal computes device.Orthogonalize on a GPU. Matrices of one shape, of one vector
// and of vectors of several agents, are a batch: three products of cuBLASLt for each step of the
// iteration.
package orthogonal
