//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package dist

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// The assembly gives the same results as the Go code: codes, points, counts and errors,
// also next to halves, for numbers too large for it, and if source and destination are the same.
func TestLatticeTwins(t *testing.T) {
	if !useLattice {
		t.Skip("this processor has no assembly")
	}
	defer func() { useLattice = true }()
	for _, spec := range []string{"lattice(0.0001,256)", "lattice(0.5,2)", "lattice(0.03,65536)", "lattice(1e-30,16)",
		"lattice(1e-12,256)"} {
		l := parseLattice(t, spec)
		s := rng.New(3, spec)
		for _, n := range []int{0, 1, 3, 4, 7, 100, latticeBlock, latticeBlock + 5, 3*latticeBlock + 2} {
			for kind := range 6 {
				x, ref := make([]float32, n), make([]float32, n)
				for i := range x {
					switch {
					case kind == 1 && i%40 == 0: // a half, or next to one
						x[i] = float32((float64(s.IntN(2001)-1000) + 0.5) * l.Side)
					case kind == 2 && i%90 == 50:
						x[i] = float32(math.Ldexp(l.Side, 20+s.IntN(40)))
					case kind == 3 && i == n/2:
						x[i] = float32(math.NaN())
					case kind == 4 && i == n-1:
						x[i] = float32(math.Inf(-1))
					default:
						x[i] = float32(s.Norm() * l.Side * 1000)
					}
					ref[i] = x[i] + float32(s.Norm()*l.Radius()*0.6)
				}
				if kind == 5 && n > 2 {
					ref[n/2] = float32(math.NaN())
				}
				latticeTwins(t, l, x, ref)
			}
		}
	}
}

func latticeTwins(t *testing.T, l *Lattice, x, ref []float32) {
	t.Helper()
	type result struct {
		codes, points []float32
		err           error
		decodes       DecodeStats
	}
	var results [2]result
	for k := range results {
		useLattice = k == 1
		r := &results[k]
		r.codes = slices.Clone(x)
		r.err = l.Encode(r.codes, r.codes, 0, 0, 0)
		if r.err != nil {
			for i := range r.codes {
				r.codes[i] = float32(i % l.Colours)
			}
		}
		r.points = slices.Clone(ref)
		r.decodes = l.Decode(r.points, r.codes, r.points)
	}
	a, b := results[0], results[1]
	if (a.err == nil) != (b.err == nil) || a.err != nil && a.err.Error() != b.err.Error() {
		t.Fatalf("%v, %d numbers: error %v, want %v", l, len(x), b.err, a.err)
	}
	bits := func(v []float32) []uint32 {
		w := make([]uint32, len(v))
		for i := range v {
			if w[i] = math.Float32bits(v[i]); v[i] != v[i] {
				w[i] = 0
			}
		}
		return w
	}
	if !slices.Equal(bits(a.codes), bits(b.codes)) || !slices.Equal(bits(a.points), bits(b.points)) {
		t.Fatalf("%v, %d numbers: codes or points differ", l, len(x))
	}
	same := a.decodes.Largest == b.decodes.Largest || a.decodes.Largest != a.decodes.Largest &&
		b.decodes.Largest != b.decodes.Largest
	if a.decodes.Total != b.decodes.Total || a.decodes.Far != b.decodes.Far || !same {
		t.Fatalf("%v, %d numbers: %+v, want %+v", l, len(x), b.decodes, a.decodes)
	}
}

func BenchmarkLattice(b *testing.B) {
	const n = 79510
	l := parseLattice(b, "lattice(0.0001,256)")
	x, ref, codes, points := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	s := rng.New(1, "lattice")
	for i := range x {
		x[i] = float32(0.05 * s.Norm())
		ref[i] = x[i] + float32(0.001*s.Norm())
	}
	fast := useLattice
	defer func() { useLattice = fast }()
	for _, in := range []struct {
		name string
		fast bool
	}{{"assembly", fast}, {"go", false}} {
		useLattice = in.fast
		b.Run("encode/"+in.name, func(b *testing.B) {
			b.SetBytes(8 * n)
			for b.Loop() {
				if err := l.Encode(codes, x, 0, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("decode/"+in.name, func(b *testing.B) {
			b.SetBytes(12 * n)
			for b.Loop() {
				l.Decode(points, codes, ref)
			}
		})
	}
}
