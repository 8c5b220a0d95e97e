//go:build !amd64 || noasm

package cpu

// normal is the loops of a normalisation.
var normal = &normGo

// normSets is what this build can do.
func normSets() []*normKernels { return []*normKernels{&normGo} }
