package norm

import (
	"fmt"
	"unsafe"

	"fspda/cpu/kernel"
)

// asmLoops calls assembly.
var asmLoops = loops{
	moments: wrapMoments(1, momentsAsm),
	sums:    wrapSums(sumsAsm),
	fold:    wrapFold(foldAsm),
	fence:   storeFenceAsm,
	affine: [2][3]affineLoop{
		{wrapAffine(1, affineAsm, false), wrapAffine(1, affineReLUAsm, false), wrapAffine(1, affineAddReLUAsm, false)},
		{wrapAffine(1, affineStreamAsm, true), wrapAffine(1, affineReLUStreamAsm, true),
			wrapAffine(1, affineAddReLUStreamAsm, true)},
	},
	gradSums: [2][3]gradSumsLoop{
		{wrapGradSums(1, gradSumsAsm), wrapGradSums(1, gradSumsReLUAsm), wrapGradSums(1, gradSumsAddReLUAsm)},
		{wrapGradSums(1, gradSumsAsm), wrapGradSums(1, gradSumsReLUAsm), wrapGradSums(1, gradSumsAddReLUStreamAsm)},
	},
	gradient: [2][2]gradientLoop{
		{wrapGradient(1, gradientAsm, false), wrapGradient(1, gradientReLUAsm, false)},
		{wrapGradient(1, gradientStreamAsm, true), wrapGradient(1, gradientReLUStreamAsm, true)},
	},
	maxPool: wrapMaxPool(maxPoolAsm),
	maxPoolGrad: [2]func(p windows, dy, at, dx []float32){wrapMaxPoolGrad(maxPoolGradAsm),
		wrapMaxPoolGrad(maxPoolGradStreamAsm)},
}

// loopsOfHalves returns the loops over numbers of 16 bits of a normalization.
func loopsOfHalves(moments func(stride, rows, cols, ahead int, x, shift *float32, s1, s2 *float64),
	affine [2][3]func(stride, rows, cols, ahead int, x, z, y, mean, scale, shift *float32),
	gradSums [4]func(stride, rows, cols, ahead int, x, dy, y, dz, mean *float32, s1, s2 *float64),
	gradient [2][2]func(stride, rows, cols, ahead int, x, dy, y, dx, mean, a, b, e *float32)) *loops {
	k := &loops{moments: wrapMoments(2, moments)}
	for stream := range 2 {
		for activation := range affine[stream] {
			k.affine[stream][activation] = wrapAffine(2, affine[stream][activation], stream == 1)
		}
		for activation := range k.gradSums[stream] {
			k.gradSums[stream][activation] = wrapGradSums(2, gradSums[activation])
		}
		for activation := range gradient[stream] {
			k.gradient[stream][activation] = wrapGradient(2, gradient[stream][activation], stream == 1)
		}
	}
	k.gradSums[1][withAddReLU] = wrapGradSums(2, gradSums[3])
	return k
}

// pointer returns the address of a matrix, nil if the loop has none. The assembly does not check
// bounds, so this panics unless all of the span lies in the slice.
func (s span) pointer(matrix []float32) *float32 { return s.words(1, matrix) }

// words is pointer for a matrix with so many numbers to a word.
func (s span) words(numbers int, matrix []float32) *float32 {
	if matrix != nil {
		checkSize((s.length()+numbers-1)/numbers, len(matrix))
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

// wrapMoments wraps a loop over a matrix with so many numbers to a word, and so do the next three.
func wrapMoments(numbers int, f func(stride, rows, cols, ahead int, x, shift *float32, s1, s2 *float64)) func(s span,
	x, shift []float32, s1, s2 []float64) {
	return func(s span, x, shift []float32, s1, s2 []float64) {
		f(s.stride, s.rows, s.cols, s.prefetch, s.words(numbers, x), columnPointer(s, shift), columnPointer(s, s1),
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
func wrapAffine(numbers int, f func(stride, rows, cols, ahead int, x, z, y, mean, scale, shift *float32),
	stream bool) affineLoop {
	return func(s span, x, z, y, mean, scale, shift []float32) {
		if stream {
			s.checkWholeVectors()
		}
		f(s.stride, s.rows, s.cols, s.prefetch, s.words(numbers, x), s.words(numbers, z), s.words(numbers, y),
			columnPointer(s, mean),
			columnPointer(s, scale), columnPointer(s, shift))
	}
}

func wrapGradSums(numbers int,
	f func(stride, rows, cols, ahead int, x, dy, y, dz, mean *float32, s1, s2 *float64)) gradSumsLoop {
	return func(s span, x, dy, y, dz, mean []float32, s1, s2 []float64) {
		f(s.stride, s.rows, s.cols, s.prefetch, s.words(numbers, x), s.words(numbers, dy), s.words(numbers, y),
			s.words(numbers, dz),
			columnPointer(s, mean), columnPointer(s, s1), columnPointer(s, s2))
	}
}

// wrapGradient wraps a loop; with non-temporal stores it handles whole vectors only.
func wrapGradient(numbers int, f func(stride, rows, cols, ahead int, x, dy, y, dx, mean, a, b, e *float32),
	stream bool) gradientLoop {
	return func(s span, x, dy, y, dx, mean, a, b, e []float32) {
		if stream {
			s.checkWholeVectors()
		}
		f(s.stride, s.rows, s.cols, s.prefetch, s.words(numbers, x), s.words(numbers, dy), s.words(numbers, y),
			s.words(numbers, dx),
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
