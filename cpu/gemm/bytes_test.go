package gemm

import (
	"fmt"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// Products of bytes have the bits of products of the decoded numbers, whole and in parts.
func TestGemmOfBytes(t *testing.T) {
	for _, code := range isa.Available() {
		isa.With(code, func() {
			for _, s := range [][3]int{{32, 1, 1}, {33, 10, 15}, {64, 100, 16}, {256, 100, 784}, {257, 3, 385},
				{300, 40, 65}, {520, 12, 33}, {45, 300, 50}} {
				m, n, k := s[0], s[1], s[2]
				if !TakesBytes(m) {
					continue
				}
				bytes, x := kerneltest.Bytes(m, k)
				bias := kerneltest.Noise("bias", n)
				forward := call{transB: true, m: m, n: n, k: k, alpha: 1, lda: k, b: kerneltest.Noise("w", n*k), ldb: k,
					ldc: n, epilogue: epilogue{op: biasSigmoid, operand: bias}}
				gradient := call{transA: true, m: n, n: k, k: m, alpha: 1, a: kerneltest.Noise("dy", m*n), lda: n,
					ldb: k, ldc: k}
				for _, parts := range []int{1, 2, 3} {
					f, g := forward, gradient
					f.a, g.b = x, x
					want := [2][]float32{inParts(f, parts), inParts(g, parts)}
					f, g = forward, gradient
					f.bytesA, g.bytesB = bytes, bytes
					got := [2][]float32{inParts(f, parts), inParts(g, parts)}
					for i, what := range []string{"forward", "gradient"} {
						kerneltest.Compare(t, fmt.Sprintf("%v, %s of %d×%d×%d in %d parts", code, what, m, n, k,
							parts), got[i], want[i])
					}
				}
			}
		})
	}
}

func inParts(g call, parts int) []float32 {
	g.c = kerneltest.Noise("old", g.m*g.n)
	for part := range parts {
		p := g.part(part, parts, 1)
		p.run()
	}
	return g.c
}

// A matrix of bytes that is too small is a bug of the caller and panics.
func TestGemmOfBytesPanics(t *testing.T) {
	if !TakesBytes(64) {
		t.Skip("products in Go cannot read bytes")
	}
	for what, spoil := range map[string]func(v *kernel.ByteMatrix){
		"too few rows":  func(v *kernel.ByteMatrix) { v.Starts = v.Starts[1:] },
		"bytes missing": func(v *kernel.ByteMatrix) { v.Bytes = v.Bytes[:v.Starts[5]+19] },
		"a row before":  func(v *kernel.ByteMatrix) { v.Starts[7] = -1 },
	} {
		v, _ := kerneltest.Bytes(64, 20)
		spoil(&v)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			g := call{transB: true, m: 64, n: 5, k: 20, alpha: 1, bytesA: v, b: kerneltest.Noise("w", 100), ldb: 20,
				c: make([]float32, 320), ldc: 5}
			g.run()
		}()
	}
}
