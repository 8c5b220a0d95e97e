//go:build !noasm && !fspda_noasm

package vec

import "fspda/cpu/isa"

// loop is a loop in assembly over n numbers of dst, a and b.
type loop func(dst, a, b *float32, n int)

// elementwiseLoops are the loops of an element-wise function: in Go, and in assembly by instruction
// set, with ordinary and with non-temporal stores. The latter need whole cache lines of dst.
type elementwiseLoops struct {
	plain               func(dst, a, b []float32)
	cached, nonTemporal [isa.Count]loop
}

var (
	addLoops = elementwiseLoops{addsGo, [isa.Count]loop{isa.AVX2: addAVX2, isa.AVX512: addAVX512},
		[isa.Count]loop{isa.AVX2: addStreamAVX2, isa.AVX512: addStreamAVX512}}
	reluGradLoops = elementwiseLoops{reluGradsGo, [isa.Count]loop{isa.AVX2: reluGradsAVX2, isa.AVX512: reluGradsAVX512},
		[isa.Count]loop{isa.AVX2: reluGradsStreamAVX2, isa.AVX512: reluGradsStreamAVX512}}
	sigmoidGradLoops = elementwiseLoops{sigmoidGradsGo,
		[isa.Count]loop{isa.AVX2: sigmoidGradsAVX2, isa.AVX512: sigmoidGradsAVX512},
		[isa.Count]loop{isa.AVX2: sigmoidGradsStreamAVX2, isa.AVX512: sigmoidGradsStreamAVX512}}
	sigmoidLoops = elementwiseLoops{plain: func(dst, x, _ []float32) { sigmoidsGo(dst, x) },
		cached: [isa.Count]loop{isa.AVX2: unary(sigmoidsAVX2), isa.AVX512: unary(sigmoidsAVX512)}}
	swishLoops = elementwiseLoops{plain: swishesGo,
		cached: [isa.Count]loop{isa.AVX2: swishesAVX2, isa.AVX512: swishesAVX512}}
	reluLoops = elementwiseLoops{func(dst, x, _ []float32) { relusGo(dst, x) },
		[isa.Count]loop{isa.AVX2: unary(relusAVX2), isa.AVX512: unary(relusAVX512)},
		[isa.Count]loop{isa.AVX2: unary(relusStreamAVX2), isa.AVX512: unary(relusStreamAVX512)}}
)

// unary returns a loop over dst and a only.
func unary(f func(dst, x *float32, n int)) loop {
	return func(dst, x, _ *float32, n int) { f(dst, x, n) }
}

// run computes dst, with stream by non-temporal stores as far as it consists of whole cache lines.
func (e *elementwiseLoops) run(dst, a, b []float32, stream bool) {
	dst, b = dst[:len(a)], b[:len(a)]
	if isa.Active == isa.Go {
		e.plain(dst, a, b)
		return
	}
	begin, end := len(dst), len(dst)
	if stream {
		begin, end = wholeLines(dst)
	}
	e.cached[isa.Active].each(dst[:begin], a[:begin], b[:begin])
	e.nonTemporal[isa.Active].each(dst[begin:end], a[begin:end], b[begin:end])
	e.cached[isa.Active].each(dst[end:], a[end:], b[end:])
}

// each calls the loop for blocks of the vectors.
func (f loop) each(dst, a, b []float32) {
	for len(dst) > 0 {
		n := min(vecBlock, len(dst))
		f(pointer(dst), pointer(a), pointer(b), n)
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}
