package vec

import (
	"fspda/cpu/isa"
	"fspda/cpu/kernel"
)

// scale: y = a·x.
var scale = inParts(func(o *kernel.Args, from, to int) {
	times(o.Out[0][from:to], float32(o.Attr), o.In[0][from:to], nonTemporal(o.Out[0], o.In[0]))
})

// scaleBy: y = (a·s)·x.
func scaleBy(o *kernel.Args) error {
	times(o.Out[0], float32(o.Attr)*o.In[1][0], o.In[0], nonTemporal(o.Out[0], o.In[0]))
	return nil
}

// times writes a·x to y, which may be x. With stream it uses non-temporal stores; y must then not
// be x.
func times(y []float32, a float32, x []float32, stream bool) {
	c := combination{}.plus(a, x)
	combine(y, &c, stream)
}

// add: y = a + b.
var add = inParts(func(o *kernel.Args, from, to int) {
	if o.Half.Any() {
		addHalves(o, from, to)
		return
	}
	adds(o.Out[0][from:to], o.In[0][from:to], o.In[1][from:to], nonTemporal(o.Out[0], o.In[0], o.In[1]))
})

// addsGo writes a + b to dst.
func addsGo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i, v := range a {
		dst[i] = v + b[i]
	}
}

// addScaled: y = a + c·b.
var addScaled = inParts(func(o *kernel.Args, from, to int) {
	AddScaled(o.Out[0][from:to], o.In[0][from:to], float32(o.Attr), o.In[1][from:to],
		nonTemporal(o.Out[0], o.In[0], o.In[1]))
})

// AddScaled computes dst = a + c·b, the product rounded first; dst may be a or b. With stream it
// uses non-temporal stores; dst must then be neither.
func AddScaled(dst, a []float32, c float32, b []float32, stream bool) {
	sum := combination{}.plus(1, a).plus(c, b)
	combine(dst, &sum, stream)
}

// halfSquare: s = a/2·Σx².
func halfSquare(o *kernel.Args) error {
	x := o.In[0]
	o.Out[0][0] = float32(o.Attr / 2 * dot(x, x))
	return nil
}

// moveAverage: y = (1-momentum)·avg + momentum·(a·x), in float64 and rounded once at the end. There
// are few numbers: one for each channel.
func moveAverage(o *kernel.Args) error {
	x, avg, y := o.In[0], o.In[1], o.Out[0]
	momentum := float64(o.In[2][0])
	for i, v := range x {
		y[i] = float32(float64((1-momentum)*float64(avg[i])) + float64(momentum*float64(o.Attr*float64(v))))
	}
	return nil
}

// loop is a loop in assembly over n numbers of dst, a and b.
type loop func(dst, a, b *float32, n int)

// elementwiseLoops are the loops of an element-wise function: in Go, and in assembly with ordinary
// and with non-temporal stores. The latter need whole cache lines of dst.
type elementwiseLoops struct {
	plain               func(dst, a, b []float32)
	cached, nonTemporal loop
}

var (
	addLoops         = elementwiseLoops{addsGo, addAsm, addStreamAsm}
	reluGradLoops    = elementwiseLoops{reluGradsGo, reluGradsAsm, reluGradsStreamAsm}
	sigmoidGradLoops = elementwiseLoops{sigmoidGradsGo, sigmoidGradsAsm, sigmoidGradsStreamAsm}
	sigmoidLoops     = elementwiseLoops{plain: unaryGo(sigmoidsGo), cached: unary(sigmoidsAsm)}
	swishLoops       = elementwiseLoops{plain: swishesGo, cached: swishesAsm}
	reluLoops        = elementwiseLoops{unaryGo(relusGo), unary(relusAsm), unary(relusStreamAsm)}
)

// unaryGo returns a loop over dst and a only, in Go.
func unaryGo(f func(dst, x []float32)) func(dst, a, b []float32) {
	return func(dst, x, _ []float32) { f(dst, x) }
}

// unary returns a loop over dst and a only.
func unary(f func(dst, x *float32, n int)) loop {
	return func(dst, x, _ *float32, n int) { f(dst, x, n) }
}

// run computes dst, with stream by non-temporal stores as far as it consists of whole cache lines.
func (e *elementwiseLoops) run(dst, a, b []float32, stream bool) {
	dst, b = dst[:len(a)], b[:len(a)]
	if !isa.Assembly() {
		e.plain(dst, a, b)
		return
	}
	begin, end := len(dst), len(dst)
	if stream {
		begin, end = wholeLines(dst)
	}
	e.cached.each(dst[:begin], a[:begin], b[:begin])
	e.nonTemporal.each(dst[begin:end], a[begin:end], b[begin:end])
	e.cached.each(dst[end:], a[end:], b[end:])
}

// each calls the loop for blocks of the vectors.
func (f loop) each(dst, a, b []float32) {
	for len(dst) > 0 {
		n := min(vecBlock, len(dst))
		f(pointer(dst), pointer(a), pointer(b), n)
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}
