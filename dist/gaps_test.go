package dist

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// gapPlain is a reference implementation: each coordinate is skipped with probability 1-p, by the
// survival of one step.
func gapPlain(g *gapSampler, u uint64) int {
	k := 0
	for k < g.longest && u < g.survival[k+1] {
		k++
	}
	return k
}

// The guide never skips the answer.
func TestGuideAgreesWithSearch(t *testing.T) {
	for _, p := range []float64{1e-6, 0.001, 0.0131, 0.1, 0.5, 0.9, 1 - 1e-9} {
		g := newGaps(p, 1<<20)
		s := rng.New(1, "test")
		check := func(u uint64) {
			k := g.gap(u)
			if want := gapPlain(g, u); k != want {
				t.Fatalf("p=%v, u=%x: gap %d, want %d", p, u, k, want)
			}
		}
		for range 300 {
			check(s.Uint64())
		}
		for b := range uint64(1 << (64 - guideShift)) {
			check(b << guideShift)
			check(b<<guideShift | (1<<guideShift - 1))
		}
	}
}

// The survival is (1-p)^g, nearly to the last bit of float64.
func TestSurvival(t *testing.T) {
	for _, p := range []float64{1e-4, 0.01, 0.1, 0.7} {
		g := newGaps(p, 1000)
		for k := 1; k <= g.longest; k++ {
			want := math.Pow(1-p, float64(k)) * 0x1p64
			if want < 0x1p20 { // truncation to integers is visible here
				break
			}
			if got := float64(g.survival[k]); math.Abs(got/want-1) > 1e-12+float64(k)/want {
				t.Fatalf("p=%v: survival[%d] is %v, want %v", p, k, got, want)
			}
		}
	}
}

// Gaps have the mean (1-p)/p of the geometric distribution and its variance (1-p)/p², also where
// they are longer than the table.
func TestGapMoments(t *testing.T) {
	for _, p := range []float64{1e-4, 0.003, 0.05, 0.3, 0.8} {
		const draws = 40000
		g := newGaps(p, math.MaxInt)
		s := rng.New(2, "test")
		sum, square := 0.0, 0.0
		for range draws {
			v := float64(g.next(&s))
			sum += v
			square += v * v
		}
		mean, variance := (1-p)/p, (1-p)/(p*p)
		if got := sum / draws; math.Abs(got-mean) > 5*math.Sqrt(variance/draws) {
			t.Errorf("p=%v: mean gap %v, want %v", p, got, mean)
		}
		// The standard deviation of a squared gap is 2.2 (small p) to 3.4 (p=0.8) times its mean:
		// five standard errors are at most 17.
		if got, want := square/draws, variance+mean*mean; math.Abs(got-want) > 17*want/math.Sqrt(draws) {
			t.Errorf("p=%v: mean square %v, want %v", p, got, want)
		}
	}
}

func TestGapsAtTheEnds(t *testing.T) {
	s := rng.New(3, "test")
	if g := newGaps(1, 10); g.next(&s) != 0 {
		t.Error("p=1 skips")
	}
	if g := newGaps(1e-300, 10); g.next(&s) < 10 { // 2^-64 is the smallest probability
		t.Error("p=1e-300 takes one of 10")
	}
}

// Filling in one piece or several gives the same coordinates as single gaps.
func TestGapsFill(t *testing.T) {
	for _, p := range []float64{1e-5, 0.0007, 0.02, 0.3, 0.95, 1} {
		for _, d := range []int{1, 2, 100, 50000} {
			g := newGaps(p, d)
			single, filled := rng.New(4, "test", uint64(d)), rng.New(4, "test", uint64(d))
			var want, got []uint32
			for c := g.next(&single); c < d; c += 1 + g.next(&single) {
				want = append(want, uint32(c))
			}
			part := make([]uint32, 1+d/7)
			for n, c := len(part), 0; n == len(part); {
				n, c = g.fill(part, c, &filled)
				got = append(got, part[:n]...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("p=%v of %d: %d coordinates, want %d", p, d, len(got), len(want))
			}
		}
	}
}
