//go:build !amd64 || noasm || fspda_noasm

package gemm

import (
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
)

// product is call.run without its checks.
func product(m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue) {
	plainProduct(m, n, k, alpha, a, b, beta, c, then)
}

// workspace returns the numbers of memory that the product takes from pools.
func (g *call) workspace() int { return 0 }

// togetherSize returns 0: a product in Go packs no factor.
func (g *call) togetherSize(int) int { return 0 }

func (g *call) packTogether([]float32, int, int) {}

func (g *call) finer(int) int { return 1 }

func (g *call) runPacked([]float32, int, int) {}

// TakesBytes reports whether products over so many examples can read them as bytes.
func TakesBytes(int) bool { return false }

func productOfBytesA(int, int, int, float32, kernel.ByteMatrix, tile.View, tile.View, epilogue) {
	panic(noBytes)
}

func productOfBytesB(int, int, int, float32, tile.View, kernel.ByteMatrix, tile.View, epilogue) {
	panic(noBytes)
}

const noBytes = "cpu: gemm: a product in Go cannot read bytes: ask TakesBytes first"
