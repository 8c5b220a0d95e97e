package gemm

import (
	"fmt"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/cpu/tile"
	"fspda/internal/testing/kerneltest"
)

// Products that are computed as their transposes are bit-identical, and write nothing around C.
func TestTransposedTwins(t *testing.T) {
	someTransposed := false
	for _, l := range layouts {
		for _, s := range [][3]int{{100, 10, 256}, {256, 100, 20}, {515, 23, 390}, {33, 1, 5}, {300, 129, 7},
			{64, 8, 9}, {257, 15, 12}} {
			for pad := range 3 {
				p := problem{s[0], s[1], s[2], l.transA, l.transB, -0.5, 0, pad, pad}
				a, b, c, ldc := p.operands()
				want := append([]float32{}, c...)
				plainNumbers(p.m, p.n, p.k, p.alpha, a, b, 0, tile.RowMajor(want[p.skip:], ldc), epilogue{})
				for _, i := range isa.Available() {
					set := tile.SetOf(i)
					if set == nil {
						continue
					}
					someTransposed = someTransposed || worthTransposing(set, p.m, p.n, p.k, a, b, 0)
					got := append([]float32{}, c...)
					transposedProduct(set, p.m, p.n, p.k, p.alpha, a, kernel.ByteMatrix{}, b,
						tile.RowMajor(got[p.skip:], ldc), epilogue{})
					kerneltest.Compare(t, fmt.Sprint(i, ", transposed, ", p), got, want)
				}
			}
		}
	}
	if !someTransposed && isa.Active != isa.Go {
		t.Error("no product is computed as its transpose")
	}
}

// The first row of the table that fits stands for a processor, and the last one for all others.
func TestTuning(t *testing.T) {
	for _, c := range []struct {
		vendor      string
		cache, want int
	}{{"AuthenticAMD", 48 << 10, 160}, {"AuthenticAMD", 32 << 10, 64}, {"GenuineIntel", 48 << 10, 64}, {"", 0, 64}} {
		if got := tuningOf(c.vendor, c.cache); got.crowdedRows != c.want {
			t.Errorf("%s, %d bytes: %+v, want %d rows", c.vendor, c.cache, got, c.want)
		}
	}
}

// withTunings runs f with every row of the table of processors.
func withTunings(f func()) {
	defer func(old tuning) { tuned = old }(tuned)
	for _, tuned = range tunings {
		f()
	}
}

// Products have the same bits with every row of the table.
func TestTuningDoesNotMatter(t *testing.T) {
	for _, l := range layouts {
		for _, s := range [][3]int{{32, 192, 70}, {64, 384, 400}, {64, 512, 50}, {130, 192, 33}, {48, 170, 65},
			{33, 256, 100}} {
			p := problem{s[0], s[1], s[2], l.transA, l.transB, 1, 0, 0, 0}
			a, b, c, ldc := p.operands()
			want := append([]float32{}, c...)
			plainNumbers(p.m, p.n, p.k, 1, a, b, 0, tile.RowMajor(want[p.skip:], ldc), epilogue{})
			withTunings(func() {
				got := append([]float32{}, c...)
				product(tile.Numbers, p.m, p.n, p.k, 1, a, b, 0, tile.RowMajor(got[p.skip:], ldc), epilogue{})
				kerneltest.Compare(t, fmt.Sprint(tuned, ", ", p), got, want)
			})
		}
	}
}

// The shapes that are transposed are those that were measured to be faster.
func TestWorthTransposing(t *testing.T) {
	defer func(old tuning) { tuned = old }(tuned)
	tuned = tunings[0]
	if isa.Active != isa.AVX512 {
		t.Skip("the shapes are those of AVX-512")
	}
	for _, c := range []struct {
		transA, transB bool
		m, n, k        int
		beta           float32
		want           bool
	}{
		{true, false, 100, 10, 256, 0, true},
		{true, false, 100, 10, 256, 1, false}, // C is read
		{false, true, 256, 100, 784, 0, true},
		{false, true, 256, 10, 100, 0, false}, // transposing A costs more than the idle lanes
		{false, false, 256, 96, 784, 0, false},
		{true, false, 10, 100, 256, 0, false},
		{false, true, 64, 384, 384, 0, true}, // B is transposed for few rows
		{false, true, 64, 512, 512, 0, false},
		{false, true, 32, 512, 512, 0, true},
		{false, true, 96, 384, 384, 0, false},
		{false, false, 1024, 1000, 1024, 0, false},
	} {
		lda, ldb := strides(c.transA, c.transB, c.m, c.n, c.k)
		got := worthTransposing(tile.SetOf(isa.AVX512), c.m, c.n, c.k, stored(c.transA, nil, lda),
			stored(c.transB, nil, ldb), c.beta)
		if got != c.want {
			t.Errorf("%+v: transposed %t", c, got)
		}
	}
}

// A product whose transpose would be computed as a transpose again ends.
func TestTransposedOnce(t *testing.T) {
	withTunings(func() {
		for _, l := range layouts {
			for _, m := range []int{16, 34, 64, 100, 159} {
				for _, n := range []int{50, 159, 166, 200} {
					p := problem{m, n, 50, l.transA, l.transB, 1, 0, 0, 0}
					a, b, c, ldc := p.operands()
					want := append([]float32{}, c...)
					plainNumbers(m, n, p.k, p.alpha, a, b, 0, tile.RowMajor(want[p.skip:], ldc), epilogue{})
					for _, i := range isa.Available() {
						set := tile.SetOf(i)
						if set == nil {
							continue
						}
						got := append([]float32{}, c...)
						packedProduct(set, m, n, p.k, p.alpha, a, b, 0, tile.RowMajor(got[p.skip:], ldc), epilogue{})
						kerneltest.Compare(t, fmt.Sprint(i, ", ", p), got, want)
					}
					g := call{transA: l.transA, transB: l.transB, m: m, n: n, k: p.k, lda: a.RowStride * a.ColStride,
						ldb: b.RowStride * b.ColStride}
					if g.workspace() == 0 && isa.Active != isa.Go {
						t.Errorf("%v takes no memory from pools", p)
					}
				}
			}
		}
	})
}
