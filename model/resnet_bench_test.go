package model

import (
	"fmt"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/device"
)

// BenchmarkResNet measures a gradient on one core and on two: images per second, floating-point
// operations per second of the fastest run, and the percentage of time per group of kernels.
func BenchmarkResNet(b *testing.B) {
	for _, c := range []struct{ depth, side, batch, threads int }{{20, 32, 64, 1}, {20, 32, 64, 2}, {50, 224, 8, 1},
		{50, 224, 8, 2}, {50, 224, 16, 2}} {
		b.Run(fmt.Sprintf("%d/%dpx/batch=%d/threads=%d", c.depth, c.side, c.batch, c.threads), func(b *testing.B) {
			net := resNetOf(b, ResNetOptions{Depth: c.depth, Height: c.side, Width: c.side, WeightDecay: 1e-4})
			code := mustPlan(b, net, c.batch, Train).Code()
			dev := cpu.New(cpu.Threads(c.threads))
			loaded, err := dev.Load(code)
			if err != nil {
				b.Fatal(err)
			}
			program, x, grad := loaded.(*cpu.Program), vectorOf(dev, net.Init(1)), dev.NewVector(net.Dim())
			batch := device.Batch{X: round(random(c.batch*net.inputs, 51)), Y: randomLabels(c.batch, net.classes, 52)}
			took := map[string]time.Duration{}
			out, fastest := make([]float64, 1), time.Hour
			for b.Loop() {
				begin := time.Now()
				times, err := program.Timed(x, grad, batch, out)
				if err != nil {
					b.Fatal(err)
				}
				fastest = min(fastest, time.Since(begin))
				for i, d := range times {
					took[kernelGroup(code.Calls[i].Kernel)] += d
				}
			}
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N*c.batch)/seconds, "images/s")
			b.ReportMetric(float64(c.batch)/fastest.Seconds(), "best-images/s")
			b.ReportMetric(code.FLOPs/fastest.Seconds()/1e9, "best-GFLOP/s")
			for group, d := range took {
				b.ReportMetric(100*d.Seconds()/seconds, "%"+group)
			}
		})
	}
}

// kernelGroup returns the group of a kernel in the benchmark.
func kernelGroup(k device.Kernel) string {
	switch k {
	case device.Conv, device.ConvGradX, device.ConvGradW:
		return string(k)
	case device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU:
		return "norm"
	case device.BatchNormGrad, device.BatchNormReLUGrad, device.BatchNormAddReLUGrad:
		return "norm-grad"
	case device.Add, device.AddScaled, device.HalfSquare:
		return "sums"
	}
	return "rest"
}
