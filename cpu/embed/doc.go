// Package embed computes the rows of tokens: the embedding with its gradients, and the choice of the
// last row of each window.
//
// The gradient of a token's row is the sum of the rows of dy with that token, in ascending order and
// in float64. Workers divide the tokens, after a counting sort of the batch, so no sums cross them.
package embed
