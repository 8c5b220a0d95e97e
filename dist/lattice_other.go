//go:build !amd64 || noasm

package dist

// encodeFast leaves all to the Go code, and so does decodeFast.
func (l *Lattice) encodeFast(dst, x []float32) int { return 0 }

func (l *Lattice) decodeFast(dst, codes, ref []float32) DecodeStats { return DecodeStats{} }
