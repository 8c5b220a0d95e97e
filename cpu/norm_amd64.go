//go:build !noasm

package cpu

import "fspda/cpu/isa"

import (
	"fmt"
	"unsafe"
)

// loopsOf holds the loops by instruction set.
var loopsOf = [isa.Count]*normLoops{isa.Go: &normGo, isa.AVX2: &normAVX2, isa.AVX512: &normAVX512}

var normAVX512 = normLoops{
	moments: momentsBy(momentsAVX512),
	sums:    sumsBy(sumsAVX512),
	fold:    foldBy(foldAVX512),
	fence:   storeFence,
	affine: [2][3]func(s normSpan, x, z, y, mean, scale, shift []float32){
		{affineBy(affineAVX512), affineBy(affineReLUAVX512), affineBy(affineAddReLUAVX512)},
		{wholeAffine(affineStreamAVX512), wholeAffine(affineReLUStreamAVX512), wholeAffine(affineAddReLUStreamAVX512)},
	},
	gradSums: [2][3]func(s normSpan, x, dy, y, dz, mean []float32, s1, s2 []float64){
		{gradSumsBy(gradSumsAVX512), gradSumsBy(gradSumsReLUAVX512), gradSumsBy(gradSumsAddReLUAVX512)},
		{gradSumsBy(gradSumsAVX512), gradSumsBy(gradSumsReLUAVX512), gradSumsBy(gradSumsAddReLUStreamAVX512)},
	},
	gradient: [2][2]func(s normSpan, x, dy, y, dx, mean, a, b, e []float32){
		{gradientBy(gradientAVX512), gradientBy(gradientReLUAVX512)},
		{wholeGradient(gradientStreamAVX512), wholeGradient(gradientReLUStreamAVX512)},
	},
	maxPool: maxPoolBy(maxPoolAVX512),
	maxPoolGrad: [2]func(p poolRun, dy, at, dx []float32){maxPoolGradBy(maxPoolGradAVX512),
		maxPoolGradBy(maxPoolGradStreamAVX512)},
}

var normAVX2 = normLoops{
	moments: momentsBy(momentsAVX2),
	sums:    sumsBy(sumsAVX2),
	fold:    foldBy(foldAVX2),
	fence:   storeFence,
	affine: [2][3]func(s normSpan, x, z, y, mean, scale, shift []float32){
		{affineBy(affineAVX2), affineBy(affineReLUAVX2), affineBy(affineAddReLUAVX2)},
		{wholeAffine(affineStreamAVX2), wholeAffine(affineReLUStreamAVX2), wholeAffine(affineAddReLUStreamAVX2)},
	},
	gradSums: [2][3]func(s normSpan, x, dy, y, dz, mean []float32, s1, s2 []float64){
		{gradSumsBy(gradSumsAVX2), gradSumsBy(gradSumsReLUAVX2), gradSumsBy(gradSumsAddReLUAVX2)},
		{gradSumsBy(gradSumsAVX2), gradSumsBy(gradSumsReLUAVX2), gradSumsBy(gradSumsAddReLUStreamAVX2)},
	},
	gradient: [2][2]func(s normSpan, x, dy, y, dx, mean, a, b, e []float32){
		{gradientBy(gradientAVX2), gradientBy(gradientReLUAVX2)},
		{wholeGradient(gradientStreamAVX2), wholeGradient(gradientReLUStreamAVX2)},
	},
	maxPool: maxPoolBy(maxPoolAVX2),
	maxPoolGrad: [2]func(p poolRun, dy, at, dx []float32){maxPoolGradBy(maxPoolGradAVX2),
		maxPoolGradBy(maxPoolGradStreamAVX2)},
}

// first returns the place of a matrix, or of nothing where the loop has none. The assembly trusts
// what it is given, so this panics unless all of the span is there.
func (s normSpan) first(matrix []float32) *float32 {
	if matrix != nil {
		holds(s.length(), len(matrix))
	}
	return unsafe.SliceData(matrix)
}

// holds panics if there are fewer numbers than wanted.
func holds(want, got int) {
	if want > got || want < 1 {
		panic(fmt.Sprintf("cpu: a normalisation reaches for number %d of %d", want, got))
	}
}

// whole panics unless the rows of a span are whole vectors.
func (s normSpan) whole() {
	if s.cols%perLine != 0 {
		panic(fmt.Sprintf("cpu: a normalisation past the cache of %d columns, want a multiple of %d", s.cols,
			perLine))
	}
}

// column returns the place of what belongs to columns.
func column[T float32 | float64](s normSpan, values []T) *T {
	holds(padded(s.cols), len(values))
	return unsafe.SliceData(values)
}

func momentsBy(f func(stride, rows, cols, ahead int, x, shift *float32, s1, s2 *float64)) func(s normSpan, x,
	shift []float32, s1, s2 []float64) {
	return func(s normSpan, x, shift []float32, s1, s2 []float64) {
		f(s.stride, s.rows, s.cols, s.ahead, s.first(x), column(s, shift), column(s, s1), column(s, s2))
	}
}

func sumsBy(f func(stride, rows, cols, ahead int, x *float32, s1 *float64)) func(s normSpan, x []float32,
	s1 []float64) {
	return func(s normSpan, x []float32, s1 []float64) {
		f(s.stride, s.rows, s.cols, s.ahead, s.first(x), column(s, s1))
	}
}

func foldBy(f func(n int, total, part *float64)) func(total, part []float64) {
	return func(total, part []float64) {
		n := len(total)
		if n%perLine != 0 {
			panic(fmt.Sprintf("cpu: %d sums are no whole number of vectors", n))
		}
		holds(n, len(part))
		f(n, &total[0], &part[0])
	}
}

func affineBy(f func(stride, rows, cols, ahead int, x, z, y, mean, scale, shift *float32)) func(s normSpan, x, z, y,
	mean, scale, shift []float32) {
	return func(s normSpan, x, z, y, mean, scale, shift []float32) {
		f(s.stride, s.rows, s.cols, s.ahead, s.first(x), s.first(z), s.first(y), column(s, mean), column(s, scale),
			column(s, shift))
	}
}

// wholeAffine is affineBy for a loop that knows whole vectors only.
func wholeAffine(f func(stride, rows, cols, ahead int, x, z, y, mean, scale, shift *float32)) func(s normSpan, x, z, y,
	mean, scale, shift []float32) {
	run := affineBy(f)
	return func(s normSpan, x, z, y, mean, scale, shift []float32) {
		s.whole()
		run(s, x, z, y, mean, scale, shift)
	}
}

func gradSumsBy(f func(stride, rows, cols, ahead int, x, dy, y, dz, mean *float32, s1, s2 *float64)) func(s normSpan, x,
	dy, y, dz, mean []float32, s1, s2 []float64) {
	return func(s normSpan, x, dy, y, dz, mean []float32, s1, s2 []float64) {
		f(s.stride, s.rows, s.cols, s.ahead, s.first(x), s.first(dy), s.first(y), s.first(dz), column(s, mean),
			column(s, s1), column(s, s2))
	}
}

func gradientBy(f func(stride, rows, cols, ahead int, x, dy, y, dx, mean, a, b, e *float32)) func(s normSpan, x, dy, y,
	dx, mean, a, b, e []float32) {
	return func(s normSpan, x, dy, y, dx, mean, a, b, e []float32) {
		f(s.stride, s.rows, s.cols, s.ahead, s.first(x), s.first(dy), s.first(y), s.first(dx),
			column(s, mean), column(s, a), column(s, b), column(s, e))
	}
}

// wholeGradient is gradientBy for a loop that knows whole vectors only.
func wholeGradient(f func(stride, rows, cols, ahead int, x, dy, y, dx, mean, a, b, e *float32)) func(s normSpan, x, dy,
	y, dx, mean, a, b, e []float32) {
	run := gradientBy(f)
	return func(s normSpan, x, dy, y, dx, mean, a, b, e []float32) {
		s.whole()
		run(s, x, dy, y, dx, mean, a, b, e)
	}
}

func maxPoolBy(f func(pixels, channels, rows, cols, line int, first, across, down float32, x *float32, step, ahead int,
	y, at *float32)) func(p poolRun, x, y, at []float32) {
	return func(p poolRun, x, y, at []float32) {
		holds(p.reach(p.step), len(x))
		holds(p.pixels*p.channels, min(len(y), len(at)))
		f(p.pixels, p.channels, p.rows, p.cols, p.line, p.first, p.across, p.down, &x[0], p.step, p.ahead, &y[0],
			&at[0])
	}
}

func maxPoolGradBy(f func(pixels, channels, rows, cols, line int, first, across, down float32, dy, at, dx *float32,
	step int)) func(p poolRun, dy, at, dx []float32) {
	return func(p poolRun, dy, at, dx []float32) {
		holds(p.reach(p.channels), min(len(dy), len(at)))
		holds((p.pixels-1)*p.step+p.channels, len(dx))
		f(p.pixels, p.channels, p.rows, p.cols, p.line, p.first, p.across, p.down, &dy[0], &at[0], &dx[0], p.step)
	}
}
