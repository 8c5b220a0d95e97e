// Package golden compares the kernels of language models with results of PyTorch in float64, in the
// file gpt-tiny-golden.json, which is not part of the repository. It is apart from devicetest,
// which is a part of the program: tests of both engines use it.
package golden
