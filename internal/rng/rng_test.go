package rng

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The derivation must be equal in all processes and versions: change these numbers only together
// with Version.
func TestStreamIsPinned(t *testing.T) {
	s := New(1, "mask", 7, 0, 3)
	got := fmt.Sprintf("%016x %016x", s.Uint64(), s.Uint64())
	const want = "5cc72fdbceaf27aa 8ad6c3c4707e2a6b"
	if got != want {
		t.Errorf("Version %d stream changed: got %s, want %s", Version, got, want)
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	add := func(what string, s Stream) {
		v := s.Uint64()
		if old, ok := seen[v]; ok {
			t.Errorf("%s and %s begin alike", what, old)
		}
		seen[v] = what
	}
	for seed := range uint64(20) {
		for _, name := range []string{"", "edges", "mask", "mas", "batch"} {
			add(fmt.Sprint(seed, name), New(seed, name))
			for k := range uint64(20) {
				add(fmt.Sprint(seed, name, k), New(seed, name, k))
				add(fmt.Sprint(seed, name, k, 0), New(seed, name, k, 0))
				add(fmt.Sprint(seed, name, 0, k, 1), New(seed, name, 0, k, 1))
				add(fmt.Sprint(seed, name, k, "sub"), New(seed, name, k).Sub(1))
			}
		}
	}
}

func TestIntNIsUniform(t *testing.T) {
	const n, draws = 7, 70000
	var count [n]int
	s := New(3, "test")
	for range draws {
		count[s.IntN(n)]++
	}
	chi := 0.0
	for _, c := range count {
		d := float64(c) - draws/n
		chi += d * d / (draws / n)
	}
	if chi > 22.5 { // 6 degrees of freedom: exceeded once in 1000
		t.Errorf("chi-square %.1f of counts %v", chi, count)
	}
}

// The first two moments of each distribution are right, within five standard errors.
func TestMoments(t *testing.T) {
	const n = 200000
	for _, c := range []struct {
		name      string
		draw      func(*Stream) float64
		mean, sd  float64
		meanOfSq  float64
		tolerance float64
	}{
		{"Float64", (*Stream).Float64, 0.5, math.Sqrt(1.0 / 12), 1.0 / 3, 0.005},
		{"Float32", func(s *Stream) float64 { return float64(s.Float32()) }, 0.5, math.Sqrt(1.0 / 12), 1.0 / 3, 0.005},
		{"Norm", (*Stream).Norm, 0, 1, 1, 0.02},
		{"Exp", (*Stream).Exp, 1, 1, 2, 0.06},
		{"Gamma(0.3)", func(s *Stream) float64 { return s.Gamma(0.3) }, 0.3, math.Sqrt(0.3), 0.39, 0.02},
		{"Gamma(4)", func(s *Stream) float64 { return s.Gamma(4) }, 4, 2, 20, 0.2},
	} {
		s := New(9, c.name)
		sum, sq := 0.0, 0.0
		for range n {
			v := c.draw(&s)
			sum += v
			sq += v * v
		}
		if got := sum / n; math.Abs(got-c.mean) > 5*c.sd/math.Sqrt(n) {
			t.Errorf("%s: mean %v, want %v", c.name, got, c.mean)
		}
		if got := sq / n; math.Abs(got-c.meanOfSq) > c.tolerance {
			t.Errorf("%s: mean square %v, want %v", c.name, got, c.meanOfSq)
		}
	}
}

func TestDirichletSumsToOne(t *testing.T) {
	for _, a := range []float64{1e-3, 0.1, 1, 100} {
		s := New(4, "dir")
		p := make([]float64, 10)
		s.Dirichlet(p, a)
		sum := 0.0
		for _, v := range p {
			if v < 0 || math.IsNaN(v) {
				t.Fatalf("a=%v: component %v", a, v)
			}
			sum += v
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("a=%v: sum %v", a, sum)
		}
	}
}

func TestPermuteReachesEveryPermutation(t *testing.T) {
	seen := map[[4]int32]int{}
	s := New(5, "shuffle")
	for range 24000 {
		p := [4]int32{0, 1, 2, 3}
		s.Permute(p[:])
		seen[p]++
	}
	if len(seen) != 24 {
		t.Fatalf("%d permutations of 24", len(seen))
	}
	for p, c := range seen {
		if c < 840 || c > 1160 { // 1000, five standard deviations
			t.Errorf("%v came %d times of 1000 expected", p, c)
		}
	}
}

func TestIntNRefusesEmptyRange(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("IntN(0) did not panic")
		}
	}()
	s := New(1, "x")
	s.IntN(0)
}

func BenchmarkUint64(b *testing.B) {
	s := New(1, "bench")
	b.SetBytes(8)
	for b.Loop() {
		s.Uint64()
	}
}

// Skipping numbers is equivalent to drawing them.
func TestSkip(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		a, b := New(3, "mask", 1), New(3, "mask", 1)
		a.Skip(uint64(n))
		for range n {
			b.Uint64()
		}
		if x, y := a.Uint64(), b.Uint64(); x != y {
			t.Errorf("after %d numbers %x, want %x", n, x, y)
		}
	}
}

// Permute makes the exchanges of Fisher and Yates that IntN draws.
func TestPermute(t *testing.T) {
	for _, n := range []int{0, 1, 2, 6000} {
		a, b := New(5, "batch", uint64(n)), New(5, "batch", uint64(n))
		p, q := make([]int32, n), make([]int32, n)
		for i := range p {
			p[i], q[i] = int32(i), int32(i)
		}
		for i := n - 1; i > 0; i-- {
			j := a.IntN(i + 1)
			p[i], p[j] = p[j], p[i]
		}
		b.Permute(q)
		if !slices.Equal(p, q) || a.Uint64() != b.Uint64() {
			t.Errorf("Permute of %d exchanges other numbers than IntN draws", n)
		}
	}
}
