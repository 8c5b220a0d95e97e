package gemm

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"fspda/cpu/tile"
	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// What a product takes from empty pools is what the forecast counts, within two percent and the
// rounding to whole pages.
func TestPooled(t *testing.T) {
	if tile.Active() == nil {
		t.Skip("products in Go take nothing from pools")
	}
	if kerneltest.Race {
		t.Skip("under the race detector pools drop values on purpose")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // each processor has a pool of its own
	for _, c := range []device.Call{
		{Kernel: device.Product, Dims: []int{768, 128, 512}},      // packs a matrix at once
		{Kernel: device.Product, Dims: []int{768, 65, 128}},       // as its transpose
		{Kernel: device.ProductGradW, Dims: []int{64, 1024, 256}}, // packs both factors
		{Kernel: device.LinearGradX, Dims: []int{96, 64, 64}},
	} {
		t.Run(fmt.Sprint(c.Kernel, c.Dims), func(t *testing.T) {
			m, n, k := c.Dims[0], c.Dims[1], c.Dims[2]
			in, out := [][]float32{make([]float32, m*k), make([]float32, n*k)}, [][]float32{make([]float32, m*n)}
			switch c.Kernel {
			case device.ProductGradW:
				in[1], out[0] = make([]float32, m*n), make([]float32, n*k)
			case device.LinearGradX:
				in[0], out[0] = make([]float32, m*n), make([]float32, m*k)
			}
			runtime.GC() // two collections empty a sync.Pool
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := Kernels.Call(&c, in, out); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			took, want := float64(after.TotalAlloc-before.TotalAlloc), float64(4*Kernels.Pooled(&c, 1))
			if took > 1.02*want+16384 || took < 0.98*want {
				t.Errorf("%.0f bytes, forecast %.0f", took, want)
			}
		})
	}
}
