//go:build !amd64 || noasm

package gemm

// implementations is empty: there is only the Go one.
func implementations() []implementation { return nil }
