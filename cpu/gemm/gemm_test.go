package gemm

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/internal/testing/kerneltest"
)

// implementation is an implementation of the product other than plainProduct.
type implementation struct {
	name    string
	product func(m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue)
	peak    func() float64 // GFLOP/s
}

// layouts lists which operands of a product are stored transposed.
var layouts = []struct{ transA, transB bool }{{false, false}, {false, true}, {true, false}, {true, true}}

// strides returns the row strides of contiguous operands of a product.
func strides(transA, transB bool, m, n, k int) (lda, ldb int) {
	lda, ldb = k, n
	if transA {
		lda = m
	}
	if transB {
		ldb = k
	}
	return lda, ldb
}

// stored returns op(A), rows×cols, as a view of data whose rows lie ld apart.
func stored(trans bool, data []float32, ld int) tile.View {
	if trans {
		return tile.ColMajor(data, ld)
	}
	return tile.RowMajor(data, ld)
}

// problem is a product and the words around its C.
type problem struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float32
	pad, skip      int // words between rows, and before all operands
}

func (p problem) String() string {
	return fmt.Sprintf("%d×%d×%d, transA %t, transB %t, alpha %v, beta %v, rows %d words longer, %d words in",
		p.m, p.n, p.k, p.transA, p.transB, p.alpha, p.beta, p.pad, p.skip)
}

// operands returns a, b, c and ldc; c has skip words before it and a row behind it.
func (p problem) operands() (a, b tile.View, c []float32, ldc int) {
	lda, ldb := strides(p.transA, p.transB, p.m, p.n, p.k)
	lda, ldb, ldc = lda+p.pad, ldb+p.pad, p.n+p.pad
	a = stored(p.transA, kerneltest.Noise("a", p.skip+(p.m+p.k)*lda)[p.skip:], lda)
	b = stored(p.transB, kerneltest.Noise("b", p.skip+(p.n+p.k)*ldb)[p.skip:], ldb)
	return a, b, kerneltest.Noise("c", p.skip+(p.m+1)*ldc), ldc
}

// twins compares every implementation with plainProduct: each bit of C, and each word before,
// between and behind its rows.
func twins(t *testing.T, p problem) {
	t.Helper()
	a, b, c, ldc := p.operands()
	want := append([]float32{}, c...)
	plainNumbers(p.m, p.n, p.k, p.alpha, a, b, p.beta, tile.RowMajor(want[p.skip:], ldc), epilogue{})
	for _, with := range implementations() {
		got := kernel.Aligned(len(c)) // so that skip is the distance from a cache line
		copy(got, c)
		with.product(p.m, p.n, p.k, p.alpha, a, b, p.beta, tile.RowMajor(got[p.skip:], ldc), epilogue{})
		kerneltest.Compare(t, fmt.Sprint(with.name, ", ", p), got, want)
	}
}

var factors = []struct{ alpha, beta float32 }{{1, 0}, {-0.5, 1}, {1, -0.5}, {1, 1}, {-0.5, 0}, {-0.5, -0.5}}

// All heights and widths of tiles, in all layouts, with short blocks of products.
func TestGemmTwinsOfEveryTile(t *testing.T) {
	widths := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 41, 47, 48,
		49, 63, 64, 65}
	next, step := 0, 1
	if kerneltest.Race { // the race detector slows the loop in Go down and finds nothing in either
		step = 7
	}
	for _, l := range layouts {
		for m := 1; m <= 15; m += step {
			for _, n := range widths {
				for _, k := range []int{1, 2, 7} {
					f := factors[next%len(factors)]
					twins(t, problem{m, n, k, l.transA, l.transB, f.alpha, f.beta, next % 3, next % 5})
					next++
				}
			}
		}
	}
}

// Sizes around the ends of blocks of products, rows and columns, and rows that lie a page apart.
func TestGemmTwinsOfBlocks(t *testing.T) {
	next := 0
	for _, l := range layouts {
		for _, s := range [][3]int{
			{1, 1, 383}, {15, 17, 384}, {14, 33, 385}, {3, 9, 800}, {27, 5, 769},
			{513, 10, 9}, {560, 3, 2}, {1121, 33, 17}, {1125, 1, 3}, {2245, 5, 400}, {3, 256, 10}, {2, 257, 33}, {9,
				520, 5}, {530, 40, 390},
			{20, 4100, 7}, {16, 4096, 389}, // many blocks of columns
		} {
			f := factors[next%len(factors)]
			twins(t, problem{s[0], s[1], s[2], l.transA, l.transB, f.alpha, f.beta, next % 4, 0})
			next++
		}
		// packed because of their stride
		for _, s := range [][3]int{{15, 129, 390}, {65, 128, 11}, {29, 200, 8}, {7, 1024, 5}} {
			p := problem{s[0], s[1], s[2], l.transA, l.transB, -0.5, 1, 0, 0}
			_, _, c, ldc := p.operands()
			a, b := stored(l.transA, kerneltest.Noise("a", 1024*400), 1024), stored(l.transB,
				kerneltest.Noise("b", 1024*1024), 1024)
			want := append([]float32{}, c...)
			plainNumbers(p.m, p.n, p.k, p.alpha, a, b, p.beta, tile.RowMajor(want, ldc), epilogue{})
			for _, with := range implementations() {
				got := append([]float32{}, c...)
				with.product(p.m, p.n, p.k, p.alpha, a, b, p.beta, tile.RowMajor(got, ldc), epilogue{})
				kerneltest.Compare(t, fmt.Sprint(with.name, ", rows a page apart, ", p), got, want)
			}
		}
	}
}

// Results do not depend on the alignment of any operand.
func TestGemmEveryAlignment(t *testing.T) {
	for _, l := range layouts {
		for skip := range 16 {
			twins(t, problem{15, 41, 33, l.transA, l.transB, 1, 1, 0, skip})
			twins(t, problem{15, 41, 33, l.transA, l.transB, 1, 0, 7, skip})
		}
	}
}

// tryGemm compares Multiply with sums in float64.
func tryGemm(t *testing.T, p problem) {
	t.Helper()
	a, b, c, ldc := p.operands()
	old := append([]float32{}, c...)
	Multiply(p.transA, p.transB, p.m, p.n, p.k, p.alpha, a.Data, max(a.RowStride, a.ColStride), b.Data,
		max(b.RowStride, b.ColStride), p.beta, c[p.skip:], ldc)
	for i := range p.m {
		for j := range p.n {
			sum, size := 0.0, 0.0
			for l := range p.k {
				x := float64(a.Data[i*a.RowStride+l*a.ColStride]) * float64(b.Data[l*b.RowStride+j*b.ColStride])
				sum, size = sum+x, size+math.Abs(x)
			}
			at := p.skip + i*ldc + j
			got, want := float64(c[at]), float64(p.alpha)*sum+float64(p.beta)*float64(old[at])
			size = math.Abs(float64(p.alpha))*size + math.Abs(float64(p.beta)*float64(old[at]))
			steps := min(p.k, tile.Depth) + (p.k+tile.Depth-1)/tile.Depth + 2
			// a thousandth for higher orders
			if bound := 1.001 * float64(steps) * 0x1p-24 * size; !(math.Abs(got-want) <= bound) {
				t.Fatalf("%v: element %d,%d is %v, want %v within %v", p, i, j, got, want, bound)
			}
		}
	}
}

func TestGemmError(t *testing.T) {
	for _, l := range layouts {
		for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {64, 128, 9}, {65, 129, 17}, {63, 127, 3}, {130, 300, 5},
			{2, 2, 2000}, {7, 33, 800}} {
			for _, f := range factors {
				if kerneltest.Race && s[0]*s[1]*s[2] > 1e5 {
					continue
				}
				tryGemm(t, problem{s[0], s[1], s[2], l.transA, l.transB, f.alpha, f.beta, s[0] % 4, s[1] % 4})
			}
		}
	}
}

func FuzzGemm(f *testing.F) {
	f.Add(uint8(0), uint16(63), uint16(128), uint16(9), uint8(0), float32(1), float32(0))
	f.Add(uint8(3), uint16(1), uint16(200), uint16(33), uint8(5), float32(-2), float32(1))
	f.Add(uint8(2), uint16(599), uint16(3), uint16(390), uint8(77), float32(0.5), float32(-1))
	f.Add(uint8(1), uint16(14), uint16(300), uint16(12), uint8(255), float32(1e30), float32(1e30))
	f.Fuzz(func(t *testing.T, trans uint8, m, n, k uint16, shift uint8, alpha, beta float32) {
		p := problem{int(m)%700 + 1, int(n)%400 + 1, int(k)%900 + 1, trans&1 != 0, trans&2 != 0, alpha, beta,
			int(shift) % 16, int(shift) / 16}
		if p.m*p.n*p.k > 3e6 || alpha == 0 {
			t.Skip("too much for one case, or no product")
		}
		twins(t, p)
		for _, v := range []float32{alpha, beta} {
			if !(v == 0 || math.Abs(float64(v)) > 1e-3 && math.Abs(float64(v)) < 1e3) {
				return // the bound is for numbers that neither overflow nor underflow
			}
		}
		tryGemm(t, p)
	})
}

// Cᵀ = Bᵀ·Aᵀ to the last bit, and a row or column computed separately is the same: results do not
// depend on where in its tile an element lies.
func TestGemmPositionDoesNotMatter(t *testing.T) {
	const m, n, k = 31, 45, 400
	a, b, c := kerneltest.Noise("a", m*k), kerneltest.Noise("b", k*n), make([]float32, m*n)
	Multiply(false, false, m, n, k, 1, a, k, b, n, 0, c, n)
	transposed, row, column := make([]float32, n*m), make([]float32, n), make([]float32, m)
	Multiply(true, true, n, m, k, 1, b, n, a, k, 0, transposed, m)
	for i := range m {
		Multiply(false, false, 1, n, k, 1, a[i*k:], k, b, n, 0, row, n)
		for j := range n {
			Multiply(false, false, m, 1, k, 1, a, k, b[j:], n, 0, column, 1)
			if v := c[i*n+j]; !kerneltest.Same(v, transposed[j*m+i]) || !kerneltest.Same(v,
				row[j]) || !kerneltest.Same(v, column[i]) {
				t.Fatalf("element %d,%d is %x; transposed %x, in its row %x, in its column %x", i, j, v,
					transposed[j*m+i], row[j], column[i])
			}
		}
	}
}

// Infinities, NaN, denormal and huge numbers give the same in all implementations, and affect only
// their own elements.
func TestGemmOfSpecials(t *testing.T) {
	const m, n, k = 17, 35, 9
	inf := float32(math.Inf(1))
	for _, special := range []float32{inf, -inf, float32(math.NaN()), 0x1p-149, -0x1p-130, 0x1p127} {
		for _, other := range []float32{0, 1, 0x1p-20, inf} {
			a, b := kerneltest.Noise("a", m*k), kerneltest.Noise("b", k*n)
			a[5*k+2], b[2*n+33] = special, other
			for i := range 7 {
				b[2*n+i] = 0
			}
			a[3*k+1], b[n+1] = 0x1p-100, 0x1p-45 // a denormal product
			want := make([]float32, m*n)
			plainNumbers(m, n, k, 1, tile.RowMajor(a, k), tile.RowMajor(b, n), 0, tile.RowMajor(want, n), epilogue{})
			for _, with := range implementations() {
				got := make([]float32, m*n)
				with.product(m, n, k, 1, tile.RowMajor(a, k), tile.RowMajor(b, n), 0, tile.RowMajor(got, n), epilogue{})
				kerneltest.Compare(t, with.name, got, want)
			}
			got := make([]float32, m*n)
			Multiply(false, false, m, n, k, 1, a, k, b, n, 0, got, n)
			for i, v := range got {
				touched := i/n == 5 || i%n == 33
				if !touched && !isFinite(v) {
					t.Fatalf("%v·%v made element %d,%d %v", special, other, i/n, i%n, v)
				}
			}
			if v := got[5*n]; !isFinite(special) && v == v { // the factor in B is zero
				t.Fatalf("%v·0 made %v, want NaN", special, v)
			}
		}
	}
}

// Products that are denormal or underflow to zero.
func TestGemmDenormals(t *testing.T) {
	const m, n, k = 15, 33, 20
	a, b := kerneltest.Noise("a", m*k), kerneltest.Noise("b", k*n)
	for i := range a {
		a[i] *= 0x1p-100
	}
	for i := range b {
		b[i] *= 0x1p-40
	}
	want, few := make([]float32, m*n), 0
	plainNumbers(m, n, k, 1, tile.RowMajor(a, k), tile.RowMajor(b, n), 0, tile.RowMajor(want, n), epilogue{})
	for _, v := range want {
		if v != 0 && math.Abs(float64(v)) < 0x1p-126 {
			few++
		}
	}
	if few < m*n/2 {
		t.Fatalf("only %d of %d results are denormal", few, m*n)
	}
	for _, with := range implementations() {
		got := make([]float32, m*n)
		with.product(m, n, k, 1, tile.RowMajor(a, k), tile.RowMajor(b, n), 0, tile.RowMajor(got, n), epilogue{})
		kerneltest.Compare(t, with.name, got, want)
	}
}

// beta = 0 overwrites: old contents of C do not matter, even NaN, in any number of blocks; nor does
// the sign of the zero.
func TestGemmOverwrites(t *testing.T) {
	zero := float32(0)
	for _, k := range []int{0, 1, tile.Depth + 1} {
		for _, beta := range []float32{zero, -zero} {
			for _, n := range []int{2, 35} {
				a, b, c := make([]float32, k+1), make([]float32, k*n), make([]float32, 2*n)
				for i := range c {
					c[i] = float32(math.NaN())
				}
				for p := range k {
					a[p] = 1
					for j := range n {
						b[p*n+j] = float32(j)
					}
				}
				Multiply(false, false, 1, n, k, 1, a, max(k, 1), b, n, beta, c, n)
				for j := range n {
					if c[j] != float32(k*j) {
						t.Errorf("k = %d: column %d is %v, want %d", k, j, c[j], k*j)
					}
					if c[n+j] == c[n+j] {
						t.Errorf("k = %d: word %d behind C was overwritten", k, j)
					}
				}
			}
		}
	}
}

// Without products C is scaled, and A and B are not read.
func TestGemmWithoutProducts(t *testing.T) {
	nan := []float32{float32(math.NaN()), float32(math.NaN())}
	for _, s := range []struct {
		k     int
		alpha float32
	}{{0, 1}, {1, 0}} {
		c := []float32{1, 2, 3, 4, 5, 6}
		Multiply(false, true, 2, 2, s.k, s.alpha, nan, 1, nan, 1, -0.5, c, 3)
		for i, want := range []float32{-0.5, -1, 3, -2, -2.5, 6} {
			if c[i] != want {
				t.Errorf("k = %d, alpha = %v: word %d is %v, want %v", s.k, s.alpha, i, c[i], want)
			}
		}
	}
	Multiply(false, false, 0, 5, 5, 1, nil, 5, nil, 5, 0, nil, 5)
	Multiply(false, false, 5, 0, 5, 1, nil, 5, nil, 1, 0, nil, 1)
}

// The assembly does not check bounds, so Multiply must.
func TestGemmPanics(t *testing.T) {
	v := make([]float32, 12)
	for name, call := range map[string]func(){
		"A too short":  func() { Multiply(false, false, 3, 2, 4, 1, v[:11], 4, v, 2, 0, v, 2) },
		"B too short":  func() { Multiply(false, true, 3, 2, 4, 1, v, 4, v[:7], 4, 0, v, 2) },
		"C too short":  func() { Multiply(false, false, 3, 2, 4, 1, v, 4, v, 2, 0, v[:5], 2) },
		"A too narrow": func() { Multiply(true, false, 3, 2, 4, 1, v, 2, v, 2, 0, v, 2) },
		"C too narrow": func() { Multiply(false, false, 3, 2, 4, 1, v, 4, v, 2, 0, v, 1) },
		"negative":     func() { Multiply(false, false, -1, 2, 4, 1, v, 4, v, 2, 0, v, 2) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// gemmShapes are those of the network of the paper's first figure, forward and backward; some of
// convolutions; and large and small ones.
var gemmShapes = []struct {
	transA, transB bool
	m, n, k        int
}{
	{false, true, 256, 100, 784},
	{false, false, 256, 100, 784},
	{true, false, 100, 784, 256},
	{true, false, 784, 100, 256},
	{false, true, 256, 10, 100},
	{false, false, 256, 10, 100},
	{false, false, 256, 100, 10},
	{false, true, 256, 100, 10},
	{true, false, 10, 100, 256},
	{true, false, 100, 10, 256},
	{false, false, 256, 784, 100},
	{false, false, 1024, 1024, 1024},
	{true, false, 1024, 1024, 1024},
	{false, true, 1024, 1024, 1024},
	{false, false, 3136, 64, 576},
	{false, false, 12544, 64, 147},
	{false, true, 1568, 1024, 256}, // 1×1 convolutions of ResNet-50 and their gradients, batch 8
	{false, false, 392, 512, 2048},
	{true, false, 64, 256, 25088},
	{true, false, 512, 1024, 1568},
	{false, false, 10, 10, 10},
	{false, true, 1, 100, 784},
	{false, true, 16, 100, 784},
}

// A product does not depend on the number of cores, stays on its goroutine, and allocates nothing.
func TestGemmStaysOnItsGoroutine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, s := range gemmShapes {
		if s.m*s.n*s.k > 1<<25 {
			continue
		}
		lda, ldb := strides(s.transA, s.transB, s.m, s.n, s.k)
		a, b := kerneltest.Noise("a", s.m*s.k), kerneltest.Noise("b", s.n*s.k)
		var c [2][]float32
		for i, cores := range []int{1, 4} {
			runtime.GOMAXPROCS(cores)
			c[i] = make([]float32, s.m*s.n)
			product := func() { Multiply(s.transA, s.transB, s.m, s.n, s.k, 1, a, lda, b, ldb, 0, c[i], s.n) }
			product()
			n := testing.AllocsPerRun(1, product)
			for tries := 0; n != 0 && tries < 3; tries++ { // a garbage collection may have emptied the pools meanwhile
				n = testing.AllocsPerRun(1, product)
			}
			if n != 0 && !kerneltest.Race {
				t.Errorf("%+v allocates %v times", s, n)
			}
		}
		kerneltest.Compare(t, fmt.Sprintf("%+v on four cores", s), c[1], c[0])
	}
}

// plainNumbers is plainProduct of float32 numbers.
func plainNumbers(m, n, k int, alpha float32, a, b tile.View, beta float32, c tile.View, then epilogue) {
	plainProduct(tile.Numbers, m, n, k, alpha, a, b, beta, c, then)
}

// BenchmarkGemm reports the mean rate, the rate of the fastest product, and the latter as a part of
// the peak of one core.
func BenchmarkGemm(b *testing.B) {
	for _, with := range append(implementations(), implementation{"go", plainNumbers, func() float64 { return 0 }}) {
		for _, s := range gemmShapes {
			if with.name == "go" && s.m*s.n*s.k > 1<<25 {
				continue
			}
			name := fmt.Sprintf("%s/transA=%t,transB=%t/%dx%dx%d", with.name, s.transA, s.transB, s.m, s.n, s.k)
			b.Run(name, func(b *testing.B) {
				lda, ldb := strides(s.transA, s.transB, s.m, s.n, s.k)
				x, y := stored(s.transA, kerneltest.Noise("a", s.m*s.k), lda), stored(s.transB,
					kerneltest.Noise("b", s.n*s.k), ldb)
				z := tile.RowMajor(kernel.Aligned(s.m*s.n), s.n)
				fastest := time.Duration(math.MaxInt64)
				for b.Loop() {
					begin := time.Now()
					with.product(s.m, s.n, s.k, 1, x, y, 0, z, epilogue{})
					fastest = min(fastest, max(1, time.Since(begin)))
				}
				operations := 2 * float64(s.m) * float64(s.n) * float64(s.k)
				reportFLOPs(b, operations)
				best := operations / float64(fastest.Nanoseconds())
				b.ReportMetric(best, "best-GFLOP/s")
				if peak := with.peak(); peak > 0 {
					b.ReportMetric(100*best/peak, "%peak")
				}
			})
		}
	}
}

// reportFLOPs reports the rate of a benchmark whose iteration has that many floating-point
// operations.
func reportFLOPs(b *testing.B, perIteration float64) {
	b.ReportMetric(perIteration*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

// isFinite reports whether v is neither infinite nor NaN.
func isFinite(v float32) bool { return v-v == 0 }
