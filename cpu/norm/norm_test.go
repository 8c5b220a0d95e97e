package norm

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/device/signature"
	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

// The kernels of normalization, by activation.
var (
	forwardNorms  = []device.Kernel{device.BatchNorm, device.BatchNormReLU, device.BatchNormAddReLU}
	backwardNorms = []device.Kernel{device.BatchNormGrad, device.BatchNormReLUGrad, device.BatchNormAddReLUGrad}
	givenNorms    = []device.Kernel{device.Normalize, device.NormalizeReLU, device.NormalizeAddReLU}
)

// specials are all kinds of float32, and numbers whose products are denormal or overflow.
var specials = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1.fffffcp-127, 0x1.5p-70,
	-0x1.3p-64, math.MaxFloat32, -math.MaxFloat32}

// numbersAt returns n numbers that begin skip words behind a cache line, with guard words around
// them. One in every `odd` is special, none if odd is 0.
func numbersAt(name string, n, skip, odd int) []float32 {
	return bordered(name, n, skip, odd)[skip:][:n]
}

// bordered is numbersAt with the guard words: skip before them, 16 behind.
func bordered(name string, n, skip, odd int) []float32 {
	s := rng.New(7, name, uint64(n))
	all := kernel.Aligned(skip + n + 16)
	const many = 100003 // after which they repeat
	for i := range all {
		if i >= many {
			all[i] = all[i-many]
			continue
		}
		all[i] = float32(s.Norm())
		if odd > 0 && s.IntN(odd) == 0 {
			all[i] = specials[s.IntN(len(specials))]
		}
	}
	return all
}

// around returns a slice with the guard words behind it.
func around(v []float32) []float32 { return v[:len(v)+16] }

func sameSums(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
			t.Fatalf("%s: sum %d of %d is %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
}

// runLoops runs every loop once on a span and returns all outputs.
func runLoops(k *loops, s span, skip, odd int) (matrices [][]float32, sums [][]float64) {
	n := s.length()
	matrix := func(name string) []float32 { return numbersAt(name, n, skip, odd) }
	column := func(name string) []float32 { return numbersAt(name, kernel.Padded(s.cols), 0, odd) }
	sum := func() []float64 {
		v := make([]float64, kernel.Padded(s.cols)+1)
		for j := range v {
			v[j] = float64(j) + 0.1
		}
		sums = append(sums, v)
		return v[:kernel.Padded(s.cols)]
	}
	out := func() []float32 {
		all := bordered("out", n, skip, odd)
		matrices = append(matrices, all)
		return all[skip:][:n]
	}
	x, y, z, dy := matrix("x"), matrix("y"), matrix("z"), matrix("dy")
	mean, a, b, e := column("mean"), column("a"), column("b"), column("e")
	k.moments(s, x, mean, sum(), sum())
	k.sums(s, x, sum())
	for stream := range 2 {
		if stream == 1 && (skip > 0 || s.stride%kernel.LineFloats != 0 || s.cols%kernel.LineFloats != 0) {
			continue
		}
		for activation := range 3 {
			k.affine[stream][activation](s, x, z, out(), mean, a, b)
			k.gradSums[stream][activation](s, x, dy, y, out(), mean, sum(), sum())
		}
		for activation := range 2 {
			k.gradient[stream][activation](s, x, dy, y, out(), mean, a, b, e)
		}
	}
	k.fence()
	// Sums of the padding are undefined.
	for _, v := range sums {
		clear(v[s.cols:kernel.Padded(s.cols)])
	}
	return matrices, sums
}

// Every loop is bit-identical to the one in Go, at widths around those of the vectors and every
// alignment, and writes nothing around its outputs or between their rows.
func TestNormLoops(t *testing.T) {
	widths := []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 81, 127, 128, 129,
		200, 1024}
	for i, cols := range widths {
		for j, rows := range []int{1, 2, 3, 17} {
			for skip := range 16 {
				if cols > 200 && skip%5 > 0 {
					continue
				}
				s := span{cols + []int{0, 5, (16 - cols%16) % 16}[(i+j+skip)%3], rows, cols, 64}
				odd := []int{0, 5}[skip%2]
				want, wantSums := runLoops(&plainLoops, s, skip, odd)
				for _, k := range isa.Available() {
					what := fmt.Sprintf("%s %+v, %d words in", k, s, skip)
					var got [][]float32
					var gotSums [][]float64
					isa.With(k, func() { got, gotSums = runLoops(active(), s, skip, odd) })
					for o := range want {
						kerneltest.Compare(t, fmt.Sprint(what, ", output ", o), got[o], want[o])
					}
					for o := range wantSums {
						sameSums(t, fmt.Sprint(what, ", sums ", o), gotSums[o], wantSums[o])
					}
				}
			}
		}
	}
}

func TestFold(t *testing.T) {
	for _, k := range isa.Available() {
		for n := 16; n <= 1024; n += 16 {
			total, part, want := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
			for i := range total {
				total[i], part[i] = float64(i)/3, 1/float64(i+1)
				want[i] = total[i] + part[i]
			}
			want[n], part[n] = total[n], 5
			isa.With(k, func() { active().fold(total[:n], part[:n]) })
			sameSums(t, k.String(), total, want)
			for i, v := range part {
				if v != 0 != (i == n) {
					t.Fatalf("%s: part %d of %d is %v", k, i, n, v)
				}
			}
		}
	}
}

// definedNorm is the forward pass as defined in norm.go, number by number.
func definedNorm(o *kernel.Args, activation int) (y, mean, variance []float32) {
	m, c := o.Dims[0], o.Dims[1]
	x := o.In[0]
	y, mean, variance = make([]float32, m*c), make([]float32, c), make([]float32, c)
	for j := range c {
		var s1, s2 float64
		for first := 0; first < m; first += blockRows {
			var b1, b2 float64
			for i := first; i < min(m, first+blockRows); i++ {
				d := float64(x[i*c+j]) - float64(x[j])
				b1 += d
				b2 = math.FMA(d, d, b2)
			}
			s1, s2 = s1+b1, s2+b2
		}
		d := s1 / float64(m)
		v := max((s2-float64(s1*d))/float64(m), 0)
		mu := float64(x[j]) + d
		k := float64(o.In[1][j]) / math.Sqrt(v+o.Attr)
		mean[j], variance[j] = float32(mu), float32(v)
		shift := float32(float64(o.In[2][j]) - float64((mu-float64(mean[j]))*k))
		for i := range m {
			out := float32(float32(float32(x[i*c+j]-mean[j])*float32(k)) + shift)
			if activation == withAddReLU {
				out += o.In[3][i*c+j]
			}
			if activation != plain && out <= 0 {
				out = 0
			}
			y[i*c+j] = out
		}
	}
	return y, mean, variance
}

// definedNormGrad is the backward pass as defined in norm.go.
func definedNormGrad(o *kernel.Args, activation int) (dx, dz, dgamma, dbeta []float32) {
	m, c := o.Dims[0], o.Dims[1]
	x, rest := o.In[0], o.In[1:]
	g := append([]float32{}, rest[0]...)
	if activation != plain {
		g = append([]float32{}, rest[1]...)
		for i, y := range rest[0] {
			if !(y > 0) {
				g[i] = 0
			}
		}
		rest = rest[1:]
	}
	gamma, mean, variance := rest[1], rest[2], rest[3]
	dx, dgamma, dbeta = make([]float32, m*c), make([]float32, c), make([]float32, c)
	for j := range c {
		var a, b float64
		for first := 0; first < m; first += blockRows {
			var partA, partB float64
			for i := first; i < min(m, first+blockRows); i++ {
				partA += float64(g[i*c+j])
				partB = math.FMA(float64(g[i*c+j]), float64(x[i*c+j])-float64(mean[j]), partB)
			}
			a, b = a+partA, b+partB
		}
		inv := 1 / math.Sqrt(float64(variance[j])+o.Attr)
		k := float64(gamma[j]) * inv
		dbeta[j], dgamma[j] = float32(a), float32(b*inv)
		slope, constant := float32(-((k*inv)*(b*inv))/float64(m)), float32(-(k*a)/float64(m))
		for i := range m {
			t := float32(float32(float32(x[i*c+j]-mean[j])*slope) + constant)
			dx[i*c+j] = float32(float32(k)*g[i*c+j]) + t
		}
	}
	return dx, g, dgamma, dbeta
}

// normCase returns operands of a kernel; some columns are far from zero, some are constant.
func normCase(k device.Kernel, m, c, skip, odd int) *kernel.Args {
	e := signature.Of(k)
	o := &kernel.Args{Dims: []int{m, c}, Attr: 1e-5}
	for i, shape := range e.In {
		v := numbersAt(fmt.Sprint(k, i), e.Size(shape, o.Dims), skip, odd)
		if i == 0 {
			for p := range v {
				switch p % c % 3 {
				case 1:
					v[p] += 1000
				case 2:
					if p%c%9 == 2 {
						v[p] = 7.1
					}
				}
			}
		}
		if shape == "c" && i == len(e.In)-1 { // a variance
			for j := range v {
				v[j] = max(v[j], -v[j])
			}
		}
		o.In = append(o.In, v)
	}
	for i, shape := range e.Out {
		o.Out = append(o.Out, numbersAt(fmt.Sprint("out", i), e.Size(shape, o.Dims), skip, 0))
	}
	return o
}

var normCases = [][2]int{{1, 1}, {1, 40}, {2, 3}, {7, 1}, {511, 5}, {512, 17}, {513, 64}, {1100, 33}, {3, 1024},
	{5, 1040}, {4, 2100}, {1537, 1}, {9, 129}}

// Each kernel is bit-identical to its definition with every instruction set.
func TestBatchNormIsDefined(t *testing.T) {
	for _, k := range isa.Available() {
		for i, s := range normCases {
			for activation := range 3 {
				o := normCase(forwardNorms[activation], s[0], s[1], i, i%2*50)
				isa.With(k, func() { run(t, forwardNorms[activation], o) })
				y, mean, variance := definedNorm(o, activation)
				what := fmt.Sprint(k, " ", forwardNorms[activation], " ", s)
				kerneltest.Compare(t, what+" mean", o.Out[1], mean)
				kerneltest.Compare(t, what+" var", o.Out[2], variance)
				kerneltest.Compare(t, what, o.Out[0], y)

				g := normCase(backwardNorms[activation], s[0], s[1], i, i%2*50)
				isa.With(k, func() { run(t, backwardNorms[activation], g) })
				dx, dz, dgamma, dbeta := definedNormGrad(g, activation)
				what = fmt.Sprint(k, " ", backwardNorms[activation], " ", s)
				want := [][]float32{dx, dgamma, dbeta}
				if activation == withAddReLU {
					want = [][]float32{dx, dz, dgamma, dbeta}
				}
				for j := range want {
					kerneltest.Compare(t, fmt.Sprint(what, " output ", j), g.Out[j], want[j])
				}
			}
		}
	}
}

func run(t testing.TB, k device.Kernel, o *kernel.Args) {
	t.Helper()
	if err := Kernels[k].Run(o); err != nil {
		t.Fatal(err)
	}
}

// Non-temporal stores change no bit of the outputs.
func TestNonTemporalStoresChangeNothing(t *testing.T) {
	const m, c = nonTemporalBytes/4/80 + 1, 80
	for _, k := range append(append([]device.Kernel{}, forwardNorms...), backwardNorms...) {
		streamed, other := normCase(k, m, c, 0, 0), normCase(k, m, c, 0, 0)
		for i, v := range other.Out {
			other.Out[i] = numbersAt("elsewhere", len(v), 1, 0)
		}
		if nonTemporal(streamed.Out[0], c, nonTemporalBytes) != 1 || nonTemporal(other.Out[0], c,
			nonTemporalBytes) != 0 {
			t.Fatal("the operands do not select non-temporal stores")
		}
		run(t, k, streamed)
		run(t, k, other)
		for i := range other.Out {
			kerneltest.Compare(t, fmt.Sprint(k, " output ", i), streamed.Out[i], other.Out[i])
		}
	}
}

// interpret computes a kernel in float64.
func interpret(k device.Kernel, o *kernel.Args) (want [][]float64) {
	wide := func(all [][]float32) (w [][]float64) {
		for _, v := range all {
			x := make([]float64, len(v))
			for i := range v {
				x[i] = float64(v[i])
			}
			w = append(w, x)
		}
		return w
	}
	want = wide(o.Out)
	devicetest.Interpret(&device.Call{Kernel: k, Dims: o.Dims, Attr: o.Attr}, wide(o.In), want)
	return want
}

// If the mean is a thousand or a million times the standard deviation, y still has only its
// rounding errors.
func TestBatchNormFarFromZero(t *testing.T) {
	for _, far := range []float32{0, 1e3, 1e6} {
		const m, c = 5000, 3
		o := normCase(device.BatchNorm, m, c, 0, 0)
		for i := range o.In[0] {
			o.In[0][i] = far + float32(math.Mod(float64(i)*0.618033988749895, 1))
		}
		o.Attr = 1e-9
		run(t, device.BatchNorm, o)
		want := interpret(device.BatchNorm, o)
		for i, y := range o.Out[0] {
			j := i % c
			if d := math.Abs(float64(y) - want[0][i]); d > 0x1p-24*(6*math.Abs(float64(o.In[1][j]))*2+2*math.Abs(
				float64(o.In[2][j]))) {
				t.Fatalf("mean %v: y is %v, want %v", far, y, want[0][i])
			}
		}
		for j, v := range o.Out[2] {
			if math.Abs(float64(v)-want[2][j]) > 0x1p-23*want[2][j] ||
				float64(o.Out[1][j]) != float64(float32(want[1][j])) {
				t.Errorf("mean %v: got mean %v and variance %v, want %v and %v", far, o.Out[1][j], v, want[1][j],
					want[2][j])
			}
		}
	}
}

// A first row far from all others is the worst shift; the variance is still right.
func TestVarianceOfAnOutlier(t *testing.T) {
	const m = 20000
	o := normCase(device.BatchNorm, m, 1, 0, 0)
	for i := range o.In[0] {
		o.In[0][i] = 1 + float32(i%7)*0x1p-12
	}
	o.In[0][0] = 1e4
	run(t, device.BatchNorm, o)
	if want := interpret(device.BatchNorm, o)[2][0]; math.Abs(float64(o.Out[2][0])-want) > 0x1p-24*want {
		t.Errorf("variance %v, want %v", o.Out[2][0], want)
	}
}

// One row, and constant columns, have no variance: y is beta.
func TestNoVariance(t *testing.T) {
	for _, m := range []int{1, 3, 600} {
		o := normCase(device.BatchNorm, m, 20, 0, 0)
		for i := range o.In[0] {
			o.In[0][i] = float32(i%20) * 1.1
		}
		run(t, device.BatchNorm, o)
		for j, v := range o.Out[2] {
			if v != 0 || o.Out[1][j] != o.In[0][j] || o.Out[0][j] != o.In[2][j] {
				t.Errorf("%d rows: mean %v of %v, variance %v, y %v, want %v", m, o.Out[1][j], o.In[0][j], v,
					o.Out[0][j], o.In[2][j])
			}
		}
	}
}

// Normalizing with the statistics of the data gives BatchNorm, except for the rounding of the
// statistics.
func TestNormalizeIsBatchNorm(t *testing.T) {
	for activation := range 3 {
		o := normCase(forwardNorms[activation], 100, 30, 0, 0)
		run(t, forwardNorms[activation], o)
		g := &kernel.Args{Dims: o.Dims, Attr: o.Attr, Out: [][]float32{make([]float32, 3000)},
			In: append([][]float32{o.In[0], o.In[1], o.In[2], o.Out[1], o.Out[2]}, o.In[3:]...)}
		run(t, givenNorms[activation], g)
		for i, y := range g.Out[0] {
			if math.Abs(float64(y-o.Out[0][i])) > 3e-4 {
				t.Fatalf("%s: element %d is %v, with given statistics %v", forwardNorms[activation], i, o.Out[0][i], y)
			}
		}
	}
}

func TestNormAllocatesNothing(t *testing.T) {
	if kerneltest.Race {
		t.Skip("the race detector makes pools drop values")
	}
	for _, k := range append(append(append([]device.Kernel{}, forwardNorms...), backwardNorms...), givenNorms...) {
		o := normCase(k, 70, 90, 0, 0)
		if n := testing.AllocsPerRun(20, func() { run(t, k, o) }); n > 0 {
			t.Errorf("%s allocates %v times", k, n)
		}
	}
}

// FuzzNorm compares all instruction sets with Go, for any shape.
func FuzzNorm(f *testing.F) {
	f.Add(uint16(3), uint16(5), uint8(1), uint8(0))
	f.Add(uint16(600), uint16(70), uint8(0), uint8(9))
	f.Fuzz(func(t *testing.T, rows, cols uint16, skip, odd uint8) {
		m, c := int(rows)%1500+1, int(cols)%300+1
		for _, k := range append(append(append([]device.Kernel{}, forwardNorms...), backwardNorms...), givenNorms...) {
			want := normCase(k, m, c, int(skip)%16, int(odd))
			isa.With(isa.Go, func() { run(t, k, want) })
			for _, set := range isa.Available() {
				got := normCase(k, m, c, int(skip)%16, int(odd))
				isa.With(set, func() { run(t, k, got) })
				for i := range want.Out {
					kerneltest.Compare(t, fmt.Sprint(set, k, m, c), around(got.Out[i]), around(want.Out[i]))
				}
			}
		}
	})
}

// All kernels give the same bits for given operands on every machine.
func TestNormBitsEverywhere(t *testing.T) {
	hash := fnv.New64a()
	add := func(o *kernel.Args) {
		for _, v := range o.Out {
			for _, x := range v {
				binary.Write(hash, binary.LittleEndian, x)
			}
		}
	}
	uniform := func(o *kernel.Args) { // numbers that depend on no library function
		s := rng.New(9, "bits")
		for i, v := range o.In {
			for j := range v {
				v[j] = s.Float32()
				if i == 0 {
					v[j] = 2*v[j] - 1
				}
			}
		}
	}
	for _, k := range append(append(append([]device.Kernel{}, forwardNorms...), backwardNorms...), givenNorms...) {
		o := normCase(k, 700, 37, 0, 0)
		uniform(o)
		run(t, k, o)
		add(o)
	}
	for _, k := range poolKernels {
		dims := []int{2, 9, 8, 21, 3, 2, 1}
		if k == device.AvgPool || k == device.AvgPoolGrad {
			dims = []int{2, 49, 37}
		}
		o := poolCase(k, dims, 0, 0)
		uniform(o)
		if k == device.MaxPoolGrad {
			for i, v := range o.In[1] {
				o.In[1][i] = float32(int(v * 9))
			}
		}
		run(t, k, o)
		add(o)
	}
	if got, want := fmt.Sprintf("%016x", hash.Sum64()), "cdcadf799a15f4c8"; got != want {
		t.Errorf("hash of all outputs %s, want %s", got, want)
	}
}
