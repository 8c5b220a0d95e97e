package gemm

import (
	"fmt"
	"math"
	"testing"
	"time"

	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// BenchmarkPairs compares products of pairs with products of float32 numbers: GFLOP/s, with the
// rounding of the factors.
func BenchmarkPairs(b *testing.B) {
	for _, s := range [][3]int{{256, 100, 784}, {1024, 1024, 1024}, {1024, 384, 384}, {1024, 1536, 384},
		{2048, 768, 768}, {64, 384, 384}, {256, 10, 100}} {
		m, n, k := s[0], s[1], s[2]
		x, w, dy := kerneltest.Noise("x", m*k), kerneltest.Noise("w", n*k), kerneltest.Noise("dy", m*n)
		for _, c := range []struct {
			name device.Kernel
			o    kernel.Args
		}{
			{device.Product, kernel.Args{In: [][]float32{x, w}, Out: [][]float32{make([]float32, m*n)}}},
			{device.LinearGradX, kernel.Args{In: [][]float32{dy, w}, Out: [][]float32{make([]float32, m*k)}}},
			{device.ProductGradW, kernel.Args{In: [][]float32{x, dy}, Out: [][]float32{make([]float32, n*k)}}},
		} {
			for name, table := range map[string]kernel.Table{"numbers": Kernels, "pairs": PairKernels} {
				b.Run(fmt.Sprintf("%s/%d×%d×%d/%s", c.name, m, n, k, name), func(b *testing.B) {
					c.o.Dims = s[:]
					c.o.Scratch = make([]float32, table.Scratch(&device.Call{Kernel: c.name, Dims: s[:]}, 1))
					fastest := time.Duration(math.MaxInt64)
					for b.Loop() {
						start := time.Now()
						if err := table[c.name].Run(&c.o); err != nil {
							b.Fatal(err)
						}
						fastest = min(fastest, time.Since(start))
					}
					b.ReportMetric(2*float64(m)*float64(n)*float64(k)/float64(fastest.Nanoseconds()), "fastest-GFLOP/s")
				})
			}
		}
	}
}
