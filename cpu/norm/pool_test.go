package norm

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

var poolKernels = []device.Kernel{device.MaxPool, device.MaxPoolGrad, device.AvgPool, device.AvgPoolGrad}

// poolLoops runs both loops over windows and returns the outputs with their guard words.
func poolLoops(k *loops, p windows, skip, odd int) [][]float32 {
	x := numbersAt("x", p.extent(p.step), skip, odd)
	y, at := bordered("y", p.pixels*p.channels, skip, 0), bordered("at", p.pixels*p.channels, skip, 0)
	k.maxPool(p, x, y[skip:][:p.pixels*p.channels], at[skip:][:p.pixels*p.channels])
	dy, places := numbersAt("dy", p.extent(p.channels), skip, odd), numbersAt("places", p.extent(p.channels), skip, 0)
	s := rng.New(3, "places")
	for i := range places {
		places[i] = float32(s.IntN(p.rows*p.cols+2) - 1)
	}
	n := (p.pixels-1)*p.step + p.channels
	dx := bordered("dx", n, skip, 0)
	k.maxPoolGrad[0](p, dy, places, dx[skip:][:n])
	all := [][]float32{y, at, dx}
	if skip == 0 && p.channels%kernel.LineFloats == 0 {
		streamed := bordered("streamed", n, skip, 0)
		k.maxPoolGrad[1](p, dy, places, streamed[:n])
		k.fence()
		all = append(all, streamed)
	}
	return all
}

// The loops over windows are bit-identical to those in Go, for channels around the widths of
// vectors and every alignment, and write nothing around or between their outputs.
func TestPoolLoops(t *testing.T) {
	for i, c := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65, 100} {
		for skip := range 16 {
			p := windows{pixels: 1 + skip%4, channels: c, rows: 1 + i%3, cols: 1 + (i+skip)%4, rowStride: 9*c + i%2,
				step: (1 + skip%3) * c, firstIndex: float32(i % 2), colStep: 1, rowStep: float32(skip % 2)}
			want := poolLoops(&plainLoops, p, skip, skip%2*6)
			for _, k := range isa.Available() {
				isa.With(k, func() {
					for o, got := range poolLoops(active(), p, skip, skip%2*6) {
						what := fmt.Sprintf("%s %+v, %d words in, output %d", k, p, skip, o)
						kerneltest.Compare(t, what, got, want[o])
					}
				})
			}
		}
	}
}

// poolCase returns operands of a pooling kernel.
func poolCase(k device.Kernel, dims []int, skip, odd int) *kernel.Args {
	e := signature.Of(k)
	o := &kernel.Args{Dims: dims}
	for i, shape := range e.In {
		o.In = append(o.In, numbersAt(fmt.Sprint(k, i), e.Size(shape, dims), skip, odd))
	}
	for i, shape := range e.Out {
		o.Out = append(o.Out, numbersAt(fmt.Sprint("out", i), e.Size(shape, dims), skip, 0))
	}
	if k == device.MaxPoolGrad { // any index, whether a window has it inside the image or not
		s := rng.New(4, "places")
		for i := range o.In[1] {
			o.In[1][i] = float32(s.IntN(dims[4] * dims[4]))
		}
	}
	return o
}

// definedMaxPool is the definition in pool.go, number by number, for each index of each window.
func definedMaxPool(dims []int, x []float32) (y, at []float32) {
	eachWindow(dims, func(to int) { y, at = append(y, 0), append(at, -1) }, func(to, from, place int) {
		if v := x[from]; at[to] < 0 || v > y[to] || v != v && y[to] == y[to] {
			y[to], at[to] = v, float32(place)
		}
	})
	return y, at
}

// definedMaxPoolGrad adds every dy to the element that it came from, window by window.
func definedMaxPoolGrad(dims []int, dy, at []float32) []float32 {
	dx := make([]float32, dims[0]*dims[1]*dims[2]*dims[3])
	eachWindow(dims, func(int) {}, func(to, from, place int) {
		if at[to] == float32(place) {
			dx[from] += dy[to]
		}
	})
	return dx
}

// eachWindow calls begin for each output, and look for each element of its window inside the image.
func eachWindow(dims []int, begin func(to int), look func(to, from, place int)) {
	images, g := poolingOf(dims)
	for to := range images * g.p * g.q * g.c {
		begin(to)
		c, q, p, n := to%g.c, to/g.c%g.q, to/g.c/g.q%g.p, to/g.c/g.q/g.p
		for place := range g.r * g.r {
			h, w := p*g.stride-g.pad+place/g.r, q*g.stride-g.pad+place%g.r
			if h >= 0 && h < g.h && w >= 0 && w < g.w {
				look(to, ((n*g.h+h)*g.w+w)*g.c+c, place)
			}
		}
	}
}

// Each kernel is bit-identical to its definition with every instruction set: windows that overlap,
// touch, leave gaps and overhang every border, with numbers of all kinds.
func TestPoolIsDefined(t *testing.T) {
	for r := 1; r <= 5; r++ {
		for stride := 1; stride <= 6; stride++ {
			for pad := range r {
				for i, c := range []int{1, 5, 16, 19} {
					dims := []int{1 + i%2, r + (stride+i)%5, r + (pad+2*i)%7, c, r, stride, pad}
					for _, k := range isa.Available() {
						what := fmt.Sprint(k, dims)
						o := poolCase(device.MaxPool, dims, i, i%2*4)
						isa.With(k, func() { run(t, device.MaxPool, o) })
						y, at := definedMaxPool(dims, o.In[0])
						kerneltest.Compare(t, what+" y", o.Out[0], y)
						kerneltest.Compare(t, what+" at", o.Out[1], at)
						o = poolCase(device.MaxPoolGrad, dims, i, i%2*4)
						isa.With(k, func() { run(t, device.MaxPoolGrad, o) })
						kerneltest.Compare(t, what+" dx", o.Out[0], definedMaxPoolGrad(dims, o.In[0], o.In[1]))
					}
				}
			}
		}
	}
}

// The first of equals leads, zeros of both signs are equal, and the first NaN stays.
func TestMaxPoolTies(t *testing.T) {
	nan, zero := float32(math.NaN()), float32(0)
	for _, c := range []struct{ x, want []float32 }{
		{[]float32{1, 2, 2, 1}, []float32{2, 1}},
		{[]float32{zero, zero, float32(math.Copysign(0, -1)), -1}, []float32{0, 0}},
		{[]float32{float32(math.Copysign(0, -1)), zero, -1, -1}, []float32{float32(math.Copysign(0, -1)), 0}},
		{[]float32{1, nan, 3, nan}, []float32{nan, 1}},
		{[]float32{nan, 1, 2, 3}, []float32{nan, 0}},
		{[]float32{float32(math.Inf(-1)), float32(math.Inf(-1)), float32(math.Inf(-1)), float32(math.Inf(-1))},
			[]float32{float32(math.Inf(-1)), 0}},
	} {
		for _, k := range isa.Available() {
			o := &kernel.Args{In: [][]float32{c.x}, Out: [][]float32{{0}, {0}}, Dims: []int{1, 2, 2, 1, 2, 1, 0}}
			isa.With(k, func() { run(t, device.MaxPool, o) })
			kerneltest.Compare(t, fmt.Sprint(k, c.x), []float32{o.Out[0][0], o.Out[1][0]}, c.want)
		}
	}
}

// A mean is the sum in float64, from the first pixel to the last, times 1/m.
func TestAvgPoolIsDefined(t *testing.T) {
	for i, dims := range [][]int{{1, 1, 1}, {2, 49, 33}, {3, 5, 1030}, {1, 700, 17}, {2, 3, 2100}} {
		for _, k := range isa.Available() {
			o := poolCase(device.AvgPool, dims, i, i%2*30)
			isa.With(k, func() { run(t, device.AvgPool, o) })
			g := poolCase(device.AvgPoolGrad, dims, i, i%2*30)
			isa.With(k, func() { run(t, device.AvgPoolGrad, g) })
			m, c := dims[1], dims[2]
			for j := range o.Out[0] {
				sum := 0.0
				for p := range m {
					from := (j/c*m+p)*c + j%c
					sum += float64(o.In[0][from])
					if want := g.In[0][j] / float32(m); !kerneltest.Same(g.Out[0][from], want) {
						t.Fatalf("%s %v: dx is %v, want %v", k, dims, g.Out[0][from], want)
					}
				}
				if want := float32(sum * (1 / float64(m))); !kerneltest.Same(o.Out[0][j], want) {
					t.Fatalf("%s %v: mean is %v, want %v", k, dims, o.Out[0][j], want)
				}
			}
		}
	}
}

func TestPoolAllocatesNothing(t *testing.T) {
	if kerneltest.Race {
		t.Skip("the race detector makes pools drop values")
	}
	for _, k := range poolKernels {
		dims := []int{2, 9, 8, 20, 3, 2, 1}
		if k == device.AvgPool || k == device.AvgPoolGrad {
			dims = []int{2, 49, 70}
		}
		o := poolCase(k, dims, 0, 0)
		if n := testing.AllocsPerRun(20, func() { run(t, k, o) }); n > 0 {
			t.Errorf("%s allocates %v times", k, n)
		}
	}
}

// FuzzPool compares the kernels with their definition, for any geometry.
func FuzzPool(f *testing.F) {
	f.Add(uint8(9), uint8(11), uint8(33), uint8(2), uint8(1), uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, h, w, c, r, stride, pad, odd uint8) {
		side := int(r)%9 + 1
		dims := []int{2, side + int(h)%20, side + int(w)%20, int(c)%70 + 1, side, int(stride)%8 + 1, int(pad) % side}
		for _, k := range isa.Available() {
			o := poolCase(device.MaxPool, dims, int(odd)%16, int(odd))
			isa.With(k, func() { run(t, device.MaxPool, o) })
			y, at := definedMaxPool(dims, o.In[0])
			kerneltest.Compare(t, "y", o.Out[0], y)
			kerneltest.Compare(t, "at", o.Out[1], at)
			g := poolCase(device.MaxPoolGrad, dims, int(odd)%16, int(odd))
			isa.With(k, func() { run(t, device.MaxPoolGrad, g) })
			kerneltest.Compare(t, "dx", g.Out[0], definedMaxPoolGrad(dims, g.In[0], g.In[1]))
		}
	})
}

func benchPool(b *testing.B, k device.Kernel, dims ...int) {
	o := poolCase(k, dims, 0, 0)
	numbers := 0
	for _, v := range append(append([][]float32{}, o.In...), o.Out...) {
		numbers += len(v)
	}
	if k == device.MaxPoolGrad {
		m := poolCase(device.MaxPool, dims, 0, 0)
		run(b, device.MaxPool, m)
		o.In[1] = m.Out[1]
	}
	benchKernel(b, Kernels[k].Run, o, numbers, max(len(o.In[0]), len(o.Out[0])))
}

func BenchmarkMaxPool(b *testing.B)     { benchPool(b, device.MaxPool, 8, 112, 112, 64, 3, 2, 1) }
func BenchmarkMaxPoolGrad(b *testing.B) { benchPool(b, device.MaxPoolGrad, 8, 112, 112, 64, 3, 2, 1) }
func BenchmarkAvgPool(b *testing.B)     { benchPool(b, device.AvgPool, 8, 49, 2048) }
func BenchmarkAvgPoolGrad(b *testing.B) { benchPool(b, device.AvgPoolGrad, 8, 49, 2048) }
