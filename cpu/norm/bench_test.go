package norm

import (
	"fmt"
	"testing"
	"time"

	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// normShapes are m and c of the batch norms of ResNet-50 at a batch of eight.
var normShapes = [][2]int{{100352, 64}, {25088, 64}, {25088, 256}, {6272, 128}, {6272, 512}, {1568, 256}, {1568, 1024},
	{392, 512}, {392, 2048}}

// moved is how many matrices of the size of x a kernel must read or write; what both passes need is
// read twice.
var moved = map[device.Kernel]int{
	device.BatchNorm: 3, device.BatchNormReLU: 3, device.BatchNormAddReLU: 4,
	device.BatchNormGrad: 5, device.BatchNormReLUGrad: 7, device.BatchNormAddReLUGrad: 8,
	device.Normalize: 2, device.NormalizeReLU: 2, device.NormalizeAddReLU: 3,
}

// normOperands returns random operands of a kernel over m×c numbers.
func normOperands(k device.Kernel, m, c int) *kernel.Args {
	e := signature.Of(k)
	o := &kernel.Args{Dims: []int{m, c}, Attr: 1e-5}
	for i, shape := range e.In {
		v := kerneltest.Noise(fmt.Sprint(k, i), e.Size(shape, o.Dims))
		for j := range v {
			if shape == "c" {
				v[j] = max(v[j], -v[j]) // a variance
			}
		}
		o.In = append(o.In, v)
	}
	for _, shape := range e.Out {
		o.Out = append(o.Out, kerneltest.Noise("out", e.Size(shape, o.Dims)))
	}
	return o
}

// copyRate returns the bytes per nanosecond that copy reads and writes for an operand of n numbers,
// measured in the same run for comparison.
func copyRate(n int) float64 {
	from, to := kerneltest.Noise("from", n), kerneltest.Noise("to", n)
	best := time.Hour
	for range 5 {
		repeat := 1 + 4<<20/n
		begin := time.Now()
		for range repeat {
			copy(to, from)
		}
		best = min(best, time.Since(begin)/time.Duration(repeat))
	}
	return 8 * float64(n) / float64(best.Nanoseconds())
}

// benchKernel reports the bytes that must be read and written, in GB/s and as a part of the speed
// of copy.
func benchKernel(b *testing.B, run func(*kernel.Args) error, o *kernel.Args, numbers, copied int) {
	rate := copyRate(copied)
	best := time.Hour
	for b.Loop() {
		begin := time.Now()
		if err := run(o); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	rate2 := 4 * float64(numbers) / float64(best.Nanoseconds())
	b.ReportMetric(rate2, "GB/s")
	b.ReportMetric(rate2/rate, "of-copy")
	b.ReportMetric(rate, "copy-GB/s")
}

func benchNorm(b *testing.B, all ...device.Kernel) {
	for _, k := range all {
		for _, s := range normShapes {
			b.Run(fmt.Sprintf("%s/%dx%d", k, s[0], s[1]), func(b *testing.B) {
				benchKernel(b, Kernels[k].Run, normOperands(k, s[0], s[1]), moved[k]*s[0]*s[1], s[0]*s[1])
			})
		}
	}
}

func BenchmarkBatchNorm(b *testing.B) {
	benchNorm(b, device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU)
}

func BenchmarkBatchNormGrad(b *testing.B) {
	benchNorm(b, device.BatchNormGrad, device.BatchNormReLUGrad, device.BatchNormAddReLUGrad)
}

func BenchmarkNormalize(b *testing.B) {
	benchNorm(b, device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU)
}
