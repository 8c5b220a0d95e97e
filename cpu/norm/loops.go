package norm

import (
	"fmt"
	"unsafe"

	"fspda/cpu/kernel"
)

// asmLoops calls assembly.
var asmLoops = loops{
	moments: wrapMoments(momentsAsm),
	sums:    wrapSums(sumsAsm),
	fold:    wrapFold(foldAsm),
	fence:   storeFenceAsm,
	affine: [2][3]affineLoop{
		{wrapAffine(affineAsm, false), wrapAffine(affineReLUAsm, false), wrapAffine(affineAddReLUAsm, false)},
		{wrapAffine(affineStreamAsm, true), wrapAffine(affineReLUStreamAsm, true),
			wrapAffine(affineAddReLUStreamAsm, true)},
	},
	gradSums: [2][3]gradSumsLoop{
		{wrapGradSums(gradSumsAsm), wrapGradSums(gradSumsReLUAsm), wrapGradSums(gradSumsAddReLUAsm)},
		{wrapGradSums(gradSumsAsm), wrapGradSums(gradSumsReLUAsm), wrapGradSums(gradSumsAddReLUStreamAsm)},
	},
	gradient: [2][2]gradientLoop{
		{wrapGradient(gradientAsm, false), wrapGradient(gradientReLUAsm, false)},
		{wrapGradient(gradientStreamAsm, true), wrapGradient(gradientReLUStreamAsm, true)},
	},
	maxPool: wrapMaxPool(maxPoolAsm),
	maxPoolGrad: [2]func(p windows, dy, at, dx []float32){wrapMaxPoolGrad(maxPoolGradAsm),
		wrapMaxPoolGrad(maxPoolGradStreamAsm)},
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
