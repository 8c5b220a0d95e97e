//go:build !amd64 || noasm || fspda_noasm

package gemm

// implementations is empty: there is only the product in Go.
func implementations() []implementation { return nil }
