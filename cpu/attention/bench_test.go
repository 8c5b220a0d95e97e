package attention_test

import (
	"fmt"
	"testing"

	"fspda/cpu/attention"
	"fspda/device"
	"fspda/internal/rng"
)

// The rate counts what causal attention needs: half of its products.
func BenchmarkAttention(b *testing.B) {
	for _, dims := range [][]int{{12, 64, 4, 32}, {2, 256, 6, 64}, {1, 1024, 12, 64}} {
		windows, tokens, heads, width := dims[0], dims[1], dims[2], dims[3]
		rows, c, random := windows*tokens, heads*width, rng.New(1, "attention")
		numbers := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = 2*random.Float32() - 1
			}
			return v
		}
		qkv, dy, y, lse, dqkv := numbers(3*rows*c), numbers(rows*c), numbers(rows*c), numbers(rows*heads),
			numbers(3*rows*c)
		work := 4 * float64(windows*heads*width) * float64(tokens) * float64(tokens+1) / 2
		for _, pass := range []struct {
			call    device.Call
			in, out [][]float32
			times   float64
		}{
			{device.Call{Kernel: device.Attention, Dims: dims}, [][]float32{qkv}, [][]float32{y, lse}, 1},
			{device.Call{Kernel: device.AttentionGrad, Dims: dims}, [][]float32{qkv, y, lse, dy},
				[][]float32{dqkv}, 2},
		} {
			b.Run(fmt.Sprintf("%s-%d-tokens", pass.call.Kernel, tokens), func(b *testing.B) {
				for b.Loop() {
					if err := attention.Kernels.Call(&pass.call, pass.in, pass.out); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(pass.times*work*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
