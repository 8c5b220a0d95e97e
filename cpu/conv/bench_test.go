package conv

import (
	"fmt"
	"math"
	"testing"
	"time"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// directions are the three kernels of a convolution.
var directions = []device.Kernel{device.Conv, device.ConvGradX, device.ConvGradW}

// smallConvs are convolutions of networks for images of 32×32 pixels.
var smallConvs = []devicetest.ConvShape{
	{N: 64, H: 32, W: 32, C: 3, K: 16, R: 3, S: 3, Stride: 1, Pad: 1},
	{N: 64, H: 32, W: 32, C: 16, K: 16, R: 3, S: 3, Stride: 1, Pad: 1},
	{N: 64, H: 32, W: 32, C: 16, K: 32, R: 3, S: 3, Stride: 2, Pad: 1},
	{N: 64, H: 16, W: 16, C: 32, K: 32, R: 3, S: 3, Stride: 1, Pad: 1},
	{N: 64, H: 8, W: 8, C: 64, K: 64, R: 3, S: 3, Stride: 1, Pad: 1},
}

// timeConv returns a function that runs a convolution in one direction on random numbers.
func timeConv(table kernel.Table, s devicetest.ConvShape, k device.Kernel) func() error {
	c := &device.Call{Kernel: k, Dims: s.Dims()}
	e, err := signature.Find(c)
	if err != nil {
		return func() error { return err }
	}
	o := kernel.Args{Dims: c.Dims, Scratch: kernel.Aligned(table.Scratch(c, 1))}
	for _, shape := range e.In {
		o.In = append(o.In, kerneltest.Noise(shape, e.Size(shape, c.Dims)))
	}
	o.Out = [][]float32{kernel.Aligned(e.Size(e.Out[0], c.Dims))}
	return func() error { return table[k].Run(&o) }
}

// fastest returns the shortest time of f during repeated runs for a time of d.
func fastest(f func() error, d time.Duration) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for begin, rounds := time.Now(), 0; rounds < 2 || time.Since(begin) < d; rounds++ {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
	}
	return best, nil
}

// BenchmarkConv reports the rate of the fastest convolution, as a part of the peak of one core, and
// the total for the convolutions of ResNet-50.
func BenchmarkConv(b *testing.B) {
	peak := func() float64 { return tile.Peak(time.Millisecond) }
	one := func(s devicetest.ConvShape, k device.Kernel) float64 {
		best := 0.0
		b.Run(fmt.Sprintf("%s/%dx%dx%dx%d-%dx%dx%d-s%d", k, s.N, s.H, s.W, s.C, s.K, s.R, s.S, s.Stride),
			func(b *testing.B) {
				f := timeConv(Kernels, s, k)
				for b.Loop() {
					t, err := fastest(f, 30*time.Millisecond)
					if err != nil {
						b.Fatal(err)
					}
					best = max(best, s.FLOPs()/float64(t.Nanoseconds()))
				}
				b.ReportMetric(best, "best-GFLOP/s")
				if p := peak(); p > 0 {
					b.ReportMetric(100*best/p, "%peak")
				}
			})
		return best
	}
	flops, time := map[device.Kernel]float64{}, map[device.Kernel]float64{}
	for i, s := range devicetest.ResNet50(8) {
		for _, k := range directions {
			if i == 0 && k == device.ConvGradX {
				continue
			}
			if rate := one(s, k); rate > 0 {
				work := float64(s.Count) * s.FLOPs()
				flops[k] += work
				time[k] += work / rate
			}
		}
	}
	for _, s := range smallConvs {
		for _, k := range directions {
			one(s, k)
		}
	}
	total := func(name string, kernels ...device.Kernel) {
		b.Run("ResNet50/"+name, func(b *testing.B) {
			work, took := 0.0, 0.0
			for _, k := range kernels {
				work, took = work+flops[k], took+time[k]
			}
			for b.Loop() {
			}
			b.ReportMetric(work/took, "best-GFLOP/s")
			if p := peak(); p > 0 {
				b.ReportMetric(100*work/took/p, "%peak")
			}
		})
	}
	for _, k := range directions {
		total(string(k), k)
	}
	total("all", directions...)
}

// BenchmarkPairs compares convolutions of ResNet-50 with factors of bfloat16 and of float32: the
// rate of the fastest, and the time of all of a gradient.
func BenchmarkPairs(b *testing.B) {
	tables := []struct {
		name  string
		table kernel.Table
	}{{"numbers", Kernels}, {"pairs", PairKernels}}
	for _, k := range directions {
		var total [2]time.Duration
		for i, s := range devicetest.ResNet50(8) {
			if i == 0 && k == device.ConvGradX {
				continue
			}
			for j, t := range tables {
				b.Run(fmt.Sprintf("%s/%dx%dx%d-%dx%dx%d-s%d/%s", k, s.H, s.W, s.C, s.K, s.R, s.S, s.Stride, t.name),
					func(b *testing.B) {
						f, best := timeConv(t.table, s, k), time.Duration(math.MaxInt64)
						for b.Loop() {
							took, err := fastest(f, 0)
							if err != nil {
								b.Fatal(err)
							}
							best = min(best, took)
						}
						b.ReportMetric(s.FLOPs()/float64(best.Nanoseconds()), "fastest-GFLOP/s")
						total[j] += time.Duration(s.Count) * best
					})
			}
		}
		b.Logf("%s: float32 %.1f ms, bfloat16 %.1f ms", k, total[0].Seconds()*1e3, total[1].Seconds()*1e3)
	}
}
