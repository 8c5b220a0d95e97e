//go:build !noasm && !fspda_noasm

package norm

import (
	"fmt"
	"unsafe"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

// sets holds the loops by instruction set.
var sets = [isa.Count]*loops{isa.Go: &plainLoops, isa.AVX2: &avx2Loops, isa.AVX512: &avx512Loops}

var avx512Loops = loops{
	moments: wrapMoments(momentsAVX512),
	sums:    wrapSums(sumsAVX512),
	fold:    wrapFold(foldAVX512),
	fence:   storeFence,
	affine: [2][3]affineLoop{
		{wrapAffine(affineAVX512, false), wrapAffine(affineReLUAVX512, false), wrapAffine(affineAddReLUAVX512, false)},
		{wrapAffine(affineStreamAVX512, true), wrapAffine(affineReLUStreamAVX512, true),
			wrapAffine(affineAddReLUStreamAVX512, true)},
	},
	gradSums: [2][3]gradSumsLoop{
		{wrapGradSums(gradSumsAVX512), wrapGradSums(gradSumsReLUAVX512), wrapGradSums(gradSumsAddReLUAVX512)},
		{wrapGradSums(gradSumsAVX512), wrapGradSums(gradSumsReLUAVX512), wrapGradSums(gradSumsAddReLUStreamAVX512)},
	},
	gradient: [2][2]gradientLoop{
		{wrapGradient(gradientAVX512, false), wrapGradient(gradientReLUAVX512, false)},
		{wrapGradient(gradientStreamAVX512, true), wrapGradient(gradientReLUStreamAVX512, true)},
	},
	maxPool: wrapMaxPool(maxPoolAVX512),
	maxPoolGrad: [2]func(p windows, dy, at, dx []float32){wrapMaxPoolGrad(maxPoolGradAVX512),
		wrapMaxPoolGrad(maxPoolGradStreamAVX512)},
}

var avx2Loops = loops{
	moments: wrapMoments(momentsAVX2),
	sums:    wrapSums(sumsAVX2),
	fold:    wrapFold(foldAVX2),
	fence:   storeFence,
	affine: [2][3]affineLoop{
		{wrapAffine(affineAVX2, false), wrapAffine(affineReLUAVX2, false), wrapAffine(affineAddReLUAVX2, false)},
		{wrapAffine(affineStreamAVX2, true), wrapAffine(affineReLUStreamAVX2, true),
			wrapAffine(affineAddReLUStreamAVX2, true)},
	},
	gradSums: [2][3]gradSumsLoop{
		{wrapGradSums(gradSumsAVX2), wrapGradSums(gradSumsReLUAVX2), wrapGradSums(gradSumsAddReLUAVX2)},
		{wrapGradSums(gradSumsAVX2), wrapGradSums(gradSumsReLUAVX2), wrapGradSums(gradSumsAddReLUStreamAVX2)},
	},
	gradient: [2][2]gradientLoop{
		{wrapGradient(gradientAVX2, false), wrapGradient(gradientReLUAVX2, false)},
		{wrapGradient(gradientStreamAVX2, true), wrapGradient(gradientReLUStreamAVX2, true)},
	},
	maxPool: wrapMaxPool(maxPoolAVX2),
	maxPoolGrad: [2]func(p windows, dy, at, dx []float32){wrapMaxPoolGrad(maxPoolGradAVX2),
		wrapMaxPoolGrad(maxPoolGradStreamAVX2)},
}

// pointer returns the address of a matrix, nil if the loop has none. The assembly does not check
// bounds, so this panics unless all of the span lies in the slice.
func (s span) pointer(matrix []float32) *float32 {
	if matrix != nil {
		checkSize(s.length(), len(matrix))
	}
	return unsafe.SliceData(matrix)
}

// checkSize panics if there are fewer numbers than wanted.
func checkSize(want, got int) {
	if want > got || want < 1 {
		panic(fmt.Sprintf("cpu: norm: an operand has %d numbers, want %d", got, want))
	}
}

// checkWholeVectors panics unless the rows of a span are whole vectors.
func (s span) checkWholeVectors() {
	if s.cols%kernel.LineFloats != 0 {
		panic(fmt.Sprintf("cpu: norm: non-temporal stores of %d columns, want a multiple of %d", s.cols,
			kernel.LineFloats))
	}
}

// columnPointer returns the address of values that belong to columns.
func columnPointer[T float32 | float64](s span, values []T) *T {
	checkSize(kernel.Padded(s.cols), len(values))
	return unsafe.SliceData(values)
}

func wrapMoments(f func(stride, rows, cols, ahead int, x, shift *float32, s1, s2 *float64)) func(s span, x,
	shift []float32, s1, s2 []float64) {
	return func(s span, x, shift []float32, s1, s2 []float64) {
		f(s.stride, s.rows, s.cols, s.prefetch, s.pointer(x), columnPointer(s, shift), columnPointer(s, s1),
			columnPointer(s, s2))
	}
}

func wrapSums(f func(stride, rows, cols, ahead int, x *float32, s1 *float64)) func(s span, x []float32, s1 []float64) {
	return func(s span, x []float32, s1 []float64) {
		f(s.stride, s.rows, s.cols, s.prefetch, s.pointer(x), columnPointer(s, s1))
	}
}

func wrapFold(f func(n int, total, part *float64)) func(total, part []float64) {
	return func(total, part []float64) {
		n := len(total)
		if n%kernel.LineFloats != 0 {
			panic(fmt.Sprintf("cpu: norm: %d sums are not a whole number of vectors", n))
		}
		checkSize(n, len(part))
		f(n, &total[0], &part[0])
	}
}

// wrapAffine wraps a loop; with non-temporal stores it handles whole vectors only.
func wrapAffine(f func(stride, rows, cols, ahead int, x, z, y, mean, scale, shift *float32), stream bool) affineLoop {
	return func(s span, x, z, y, mean, scale, shift []float32) {
		if stream {
			s.checkWholeVectors()
		}
		f(s.stride, s.rows, s.cols, s.prefetch, s.pointer(x), s.pointer(z), s.pointer(y), columnPointer(s, mean),
			columnPointer(s, scale), columnPointer(s, shift))
	}
}

func wrapGradSums(f func(stride, rows, cols, ahead int, x, dy, y, dz, mean *float32, s1, s2 *float64)) gradSumsLoop {
	return func(s span, x, dy, y, dz, mean []float32, s1, s2 []float64) {
		f(s.stride, s.rows, s.cols, s.prefetch, s.pointer(x), s.pointer(dy), s.pointer(y), s.pointer(dz),
			columnPointer(s, mean), columnPointer(s, s1), columnPointer(s, s2))
	}
}

// wrapGradient wraps a loop; with non-temporal stores it handles whole vectors only.
func wrapGradient(f func(stride, rows, cols, ahead int, x, dy, y, dx, mean, a, b, e *float32),
	stream bool) gradientLoop {
	return func(s span, x, dy, y, dx, mean, a, b, e []float32) {
		if stream {
			s.checkWholeVectors()
		}
		f(s.stride, s.rows, s.cols, s.prefetch, s.pointer(x), s.pointer(dy), s.pointer(y), s.pointer(dx),
			columnPointer(s, mean), columnPointer(s, a), columnPointer(s, b), columnPointer(s, e))
	}
}

func wrapMaxPool(f func(pixels, channels, rows, cols, line int, first, across, down float32, x *float32, step,
	ahead int, y, at *float32)) func(p windows, x, y, at []float32) {
	return func(p windows, x, y, at []float32) {
		checkSize(p.extent(p.step), len(x))
		checkSize(p.pixels*p.channels, min(len(y), len(at)))
		f(p.pixels, p.channels, p.rows, p.cols, p.rowStride, p.firstIndex, p.colStep, p.rowStep, &x[0], p.step,
			p.prefetch, &y[0], &at[0])
	}
}

func wrapMaxPoolGrad(f func(pixels, channels, rows, cols, line int, first, across, down float32, dy, at, dx *float32,
	step int)) func(p windows, dy, at, dx []float32) {
	return func(p windows, dy, at, dx []float32) {
		checkSize(p.extent(p.channels), min(len(dy), len(at)))
		checkSize((p.pixels-1)*p.step+p.channels, len(dx))
		f(p.pixels, p.channels, p.rows, p.cols, p.rowStride, p.firstIndex, p.colStep, p.rowStep, &dy[0], &at[0],
			&dx[0], p.step)
	}
}
