//go:build !amd64 || noasm || fspda_noasm

package norm

// halfLoops returns nil: only AVX-512 has loops over numbers of 16 bits.
func halfLoops() *loops { return nil }
