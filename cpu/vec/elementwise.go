package vec

import (
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
