package cpu

import (
	"fmt"
	"math"
	"runtime"
	"testing"
)

// gemmShapes are those of the network of the paper's first figure, forward and backward, and one larger.
var gemmShapes = []struct {
	transA, transB bool
	m, n, k        int
}{
	{false, true, 256, 100, 784},
	{true, false, 100, 784, 256},
	{false, true, 256, 10, 100},
	{false, false, 256, 100, 10},
	{true, false, 10, 100, 256},
	{false, false, 256, 784, 100},
	{false, false, 512, 512, 512},
}

// strides returns the distances of rows of the packed operands of a product.
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

// tryGemm compares gemm with sums in float64, for rows pad words apart, and reports words written between and around the rows
// of C.
func tryGemm(t *testing.T, transA, transB bool, m, n, k, pad int, alpha, beta float32) {
	t.Helper()
	lda, ldb := strides(transA, transB, m, n, k)
	lda, ldb = lda+pad, ldb+pad
	ldc := n + pad
	a, b, c := noise("a", (m+k)*lda), noise("b", (n+k)*ldb), noise("c", m*ldc+2)
	old := append([]float32{}, c...)
	gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c[1:len(c)-1], ldc)
	for i := range m {
		for j := range ldc {
			got, want := float64(c[1+i*ldc+j]), float64(old[1+i*ldc+j])
			if j >= n {
				if got != want {
					t.Fatalf("word %d behind row %d was overwritten", j-n, i)
				}
				continue
			}
			sum, size := 0.0, 0.0
			for l := range k {
				x, y := a[i*lda+l], b[l*ldb+j]
				if transA {
					x = a[l*lda+i]
				}
				if transB {
					y = b[j*ldb+l]
				}
				sum += float64(x) * float64(y)
				size += math.Abs(float64(x) * float64(y))
			}
			want = float64(alpha)*sum + float64(beta)*want
			size = math.Abs(float64(alpha))*size + math.Abs(float64(beta)*float64(old[1+i*ldc+j]))
			if bound := float64(k+3) * 0x1p-24 * size; math.Abs(got-want) > bound {
				t.Fatalf("%t %t %dx%dx%d: element %d,%d is %v, want %v within %v", transA, transB, m, n, k, i, j, got, want, bound)
			}
		}
	}
	if c[0] != old[0] || c[len(c)-1] != old[len(c)-1] {
		t.Fatalf("words around C were overwritten")
	}
}

func TestGemm(t *testing.T) {
	for _, transA := range []bool{false, true} {
		for _, transB := range []bool{false, true} {
			for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {64, 128, 9}, {65, 129, 17}, {63, 127, 3}, {130, 300, 5}, {2, 2, 200}} {
				tryGemm(t, transA, transB, s[0], s[1], s[2], 0, 1, 0)
				tryGemm(t, transA, transB, s[0], s[1], s[2], 3, -0.5, 1)
				tryGemm(t, transA, transB, s[0], s[1], s[2], 1, 2, 0.25)
			}
		}
	}
}

func FuzzGemm(f *testing.F) {
	f.Add(uint8(0), uint8(63), uint8(128), uint8(9), uint8(0), float32(1), float32(0))
	f.Add(uint8(3), uint8(1), uint8(200), uint8(33), uint8(5), float32(-2), float32(1))
	f.Fuzz(func(t *testing.T, trans, m, n, k, pad uint8, alpha, beta float32) {
		for _, v := range []float32{alpha, beta} {
			if !(v == 0 || math.Abs(float64(v)) > 1e-3 && math.Abs(float64(v)) < 1e3) {
				t.Skip("the bound is for numbers that neither overflow nor underflow")
			}
		}
		tryGemm(t, trans&1 != 0, trans&2 != 0, int(m)+1, int(n)+1, int(k)+1, int(pad)%8, alpha, beta)
	})
}

// A beta of zero overwrites: what C held does not matter, even NaN.
func TestGemmOverwrites(t *testing.T) {
	c := []float32{float32(math.NaN()), float32(math.Inf(1))}
	gemm(false, false, 1, 2, 1, 1, []float32{2}, 1, []float32{3, 4}, 2, 0, c, 2)
	if c[0] != 6 || c[1] != 8 {
		t.Errorf("got %v, want [6 8]", c)
	}
}

// A product neither depends on the number of cores nor leaves its goroutine: gonum's parallel path would allocate channels.
func TestGemmStaysOnItsGoroutine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, s := range gemmShapes {
		lda, ldb := strides(s.transA, s.transB, s.m, s.n, s.k)
		a, b := noise("a", s.m*s.k), noise("b", s.n*s.k)
		var c [2][]float32
		for i, cores := range []int{1, 4} {
			runtime.GOMAXPROCS(cores)
			c[i] = make([]float32, s.m*s.n)
			product := func() { gemm(s.transA, s.transB, s.m, s.n, s.k, 1, a, lda, b, ldb, 0, c[i], s.n) }
			product()
			if n := testing.AllocsPerRun(1, product); n != 0 {
				t.Errorf("%+v allocates %v times", s, n)
			}
		}
		for i := range c[0] {
			if math.Float32bits(c[0][i]) != math.Float32bits(c[1][i]) {
				t.Fatalf("%+v: element %d is %v on one core, %v on four", s, i, c[0][i], c[1][i])
			}
		}
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, s := range gemmShapes {
		b.Run(fmt.Sprintf("transA=%t,transB=%t/%dx%dx%d", s.transA, s.transB, s.m, s.n, s.k), func(b *testing.B) {
			x, y, z := noise("a", s.m*s.k), noise("b", s.n*s.k), make([]float32, s.m*s.n)
			lda, ldb := strides(s.transA, s.transB, s.m, s.n, s.k)
			for b.Loop() {
				gemm(s.transA, s.transB, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, z, s.n)
			}
			reportFLOPs(b, 2*float64(s.m)*float64(s.n)*float64(s.k))
		})
	}
}

// reportFLOPs reports the rate of a benchmark whose iteration has that many floating-point operations.
func reportFLOPs(b *testing.B, perIteration float64) {
	b.ReportMetric(perIteration*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
