package tile

import (
	"fmt"
	"math"
	"testing"

	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

// anyBits returns n numbers of any bits: NaN, infinities and numbers below 2⁻¹²⁶ too, and half of
// them near 1.
func anyBits(name string, n int) []float32 {
	s, v := rng.New(1, name), make([]float32, n)
	for i := range v {
		u := uint32(s.Uint64())
		if s.IntN(2) == 0 {
			u = u&0x80ffffff | 0x3f000000
		}
		v[i] = math.Float32frombits(u)
	}
	return v
}

// Rounding to bfloat16 is rounding to 8 bits, to even, except for numbers below 2⁻¹²⁶.
func TestPair(t *testing.T) {
	for _, x := range anyBits("pair", 100000) {
		got := math.Float32frombits(math.Float32bits(Pair(x, 1)) << 16)
		if p := math.Float32bits(Pair(1, x)); p>>16 != math.Float32bits(got)>>16 || p&0xffff != 0x3f80 {
			t.Fatalf("%v: the pair with 1 is %#x, the number is %v", x, p, got)
		}
		exact, exponent := math.Frexp(float64(x))
		want := float32(math.Ldexp(math.RoundToEven(exact*256), exponent-8))
		switch {
		case math.Abs(float64(x)) < 0x1p-126:
			want = float32(math.Copysign(0, float64(x)))
		case math.IsInf(float64(x), 0):
			want = x
		}
		if !kerneltest.Same(got, want) {
			t.Fatalf("%v is rounded to %v, want %v", x, got, want)
		}
	}
}

// The assembly makes the pairs of the definition, and writes nothing behind them.
func TestNarrow(t *testing.T) {
	if Pairs.Set() == nil {
		t.Skip("the processor has no instructions on bfloat16 numbers")
	}
	for _, n := range []int{1, 2, 15, 31, 32, 33, 63, 64, 100, 515} {
		a, b := anyBits("a", n), anyBits("b", n)
		got, want := make([]float32, n+9), make([]float32, n+9)
		Between(got, a, b)
		for i := range a {
			want[i] = Pair(a[i], b[i])
		}
		kerneltest.Compare(t, fmt.Sprintf("between of %d", n), got, want)
		clear(got)
		clear(want)
		Narrow(got, a)
		for i := 0; i < n; i += 2 {
			want[i/2] = Pair(a[i], append(a, 0)[i+1])
		}
		kerneltest.Compare(t, fmt.Sprintf("narrow of %d", n), got, want)
		clear(got)
		NarrowStream(got[n%2:], a) // half of them do not begin at a cache line
		Fence()
		kerneltest.Compare(t, fmt.Sprintf("narrow of %d past the caches", n), got[n%2:], want[:len(want)-n%2])

		got, want = make([]float32, 2*n+9), make([]float32, 2*n+9)
		Widen(got, a)
		for i, x := range a {
			u := math.Float32bits(x)
			want[2*i], want[2*i+1] = math.Float32frombits(u<<16), math.Float32frombits(u&0xffff0000)
		}
		kerneltest.Compare(t, fmt.Sprintf("widen of %d", n), got, want)
		for _, second := range [][]float32{b, nil} {
			clear(got)
			Interleave(got, a, second)
			for i, x := range a {
				u, v := math.Float32bits(x), uint32(0)
				if second != nil {
					v = math.Float32bits(second[i])
				}
				want[2*i] = math.Float32frombits(u&0xffff | v<<16)
				want[2*i+1] = math.Float32frombits(u>>16 | v&0xffff0000)
			}
			kerneltest.Compare(t, fmt.Sprintf("interleave of %d", n), got, want)
		}
	}
}

// testedPairSets returns the micro-kernels of pairs that can run, of which a test needs one.
func testedPairSets(t *testing.T) []*Set {
	t.Helper()
	all := pairSetsOfProcessor()
	if len(all) == 0 {
		t.Skip("the processor has no instructions on bfloat16 numbers")
	}
	return all
}

// Every micro-kernel of pairs has the bits of its definition, whatever the factors, in several runs
// and groups.
func TestPairTiles(t *testing.T) {
	const ars, brs, ldc, more = 1100, 37, 41, 16
	for which, s := range testedPairSets(t) {
		for rows := range len(s.Tiles) {
			for vectors := range 2 {
				for _, c := range []struct{ k, runs, groups int }{{1, 1, 1}, {2, 1, 0}, {17, 2, 2}, {16, 3, 1},
					{80, 1, 1}} {
					last, height := 1+(rows*3+c.k)%s.Lanes, rows+1
					a, b := anyBits("a", 33*ars), anyBits("b", 900*brs)
					if c.k > 2 { // few sums of any bits are numbers
						a, b = kerneltest.Noise("a", 33*ars), kerneltest.Noise("b", 900*brs)
					}
					for i := range a {
						a[i] = Pair(a[i], a[len(a)-1-i])
					}
					for i := range b {
						b[i] = Pair(b[i], b[len(b)-1-i])
					}
					got, half := kerneltest.Noise("c", 33*ldc), (height+1)/2
					want := append([]float32{}, got...)
					wide := (c.k + more - 1) / more * more // each run with zeros behind it
					cols, depth := vectors*s.Lanes+last, max(1, c.groups)*c.runs*wide
					x, y := RowMajor(make([]float32, height*depth), depth), RowMajor(make([]float32, depth*brs), brs)
					for run := range max(1, c.groups) * c.runs {
						from := run*(c.k+3) + run/c.runs*5 // a jump of 3 between runs, and 5 more between groups
						for i := range height {
							copy(x.Data[i*depth+run*wide:][:c.k], a[i*ars+from:])
						}
						copy(y.Data[run*wide*brs:][:c.k*brs], b[from*brs:])
					}
					for i := 0; i < height; i += PlainRows {
						for j := 0; j < cols; j += PlainCols {
							var row [PlainRows]int
							for k := range row {
								row[k] = min(k, height-i-1) * depth
							}
							var col [PlainCols]int
							for k := range col {
								col[k] = min(k, cols-j-1)
							}
							plainTile(s.sums(depth, x.From(i, 0), row, y.From(0, j), col), min(PlainRows, height-i),
								min(PlainCols, cols-j), -0.5, 1, RowMajor(want[i*ldc+j:], ldc))
						}
					}
					args := Args{A: &a[0], A2: &a[half*ars], ARow: 4 * ars, ACol: 4, B: &b[0], BRow: 4 * brs, K: c.k,
						Runs: c.runs, Groups: c.groups, AJump: 4 * 3, BJump: 4 * 3 * brs,
						Gaps: Gaps{AGap: 4 * 5, BGap: 4 * 5 * brs}, C: &got[0], C2: &got[half*ldc], CRow: 4 * ldc,
						Last: last, Alpha: -0.5, Beta: 1}
					s.Tiles[rows][vectors](&args)
					kerneltest.Compare(t, fmt.Sprintf("set %d, %d×%d of %+v", which, height, cols, c), got, want)
				}
			}
		}
	}
}
