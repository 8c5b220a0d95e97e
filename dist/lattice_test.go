package dist

import (
	"errors"
	"math"
	"testing"

	"fspda/internal/rng"
)

func parseLattice(t testing.TB, spec string) *Lattice {
	t.Helper()
	l, err := ParseLattice(spec, 7)
	if err != nil {
		t.Fatal(err)
	}
	if l.String() != spec {
		t.Fatalf("%q became %q", spec, l)
	}
	return l
}

// Numbers computed by hand, with side 0.001 and 256 colours.
func TestLatticeExamples(t *testing.T) {
	l := parseLattice(t, "lattice(0.001,256)")
	for _, c := range []struct {
		x, ref float32
		code   float32
		m      float32 // the point in units of the side
	}{
		{0.1234, 0.13, 123, 123},
		{-0.0007, 0, 255, -1},
		{1.0005, 0.95, 232, 1000},
		{0.3, 0.5, 44, 556}, // too far from the reference: wrong by 256 units
		{-0.3, -0.3, 212, -300},
	} {
		x := []float32{c.x}
		if err := l.Encode(x, x, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		if x[0] != c.code {
			t.Errorf("code of %v is %v, want %v", c.x, x[0], c.code)
		}
		l.Decode(x, x, []float32{c.ref})
		if x[0] != c.m {
			t.Errorf("%v near %v is %v units, want %v", c.x, c.ref, x[0], c.m)
		}
	}
	if r := l.Radius(); math.Abs(r-0.1275) > 1e-15 || l.Bits() != 8 {
		t.Errorf("radius %v, %d bits", r, l.Bits())
	}
}

// Within the radius the decoded number is within s/2 of the true one (below s with stochastic
// rounding); beyond it, it is wrong by multiples of q·s.
func TestLatticeRadius(t *testing.T) {
	for _, spec := range []string{"lattice(0.0001,256)", "lattice(0.03,4)", "lattice(0.25,2)",
		"lattice(0.001,64,stochastic)", "lattice(0.0437,4096)"} {
		l := parseLattice(t, spec)
		bound := l.Side / 2
		if l.Stochastic {
			bound = l.Side
		}
		s := rng.New(1, spec)
		aliased := 0
		for i := range 20000 {
			x := float32(2 * s.Norm())
			inside := i%4 != 0
			away := l.Radius() * (2*s.Float64() - 1)
			if !inside {
				away = (l.Radius() + l.Side*float64(l.Colours)*(0.1+s.Float64())) * float64(1-2*s.IntN(2))
			}
			ref := float32(float64(x) + away)
			if inside && math.Abs(float64(ref)-float64(x)) > l.Radius() {
				continue // rounded beyond the radius
			}
			v := []float32{x}
			if err := l.Encode(v, v, i, 0, 0); err != nil {
				t.Fatal(err)
			}
			l.Decode(v, v, []float32{ref})
			e := l.Side*float64(v[0]) - float64(x)
			if inside && math.Abs(e) > bound*(1+1e-9) {
				t.Fatalf("%s: %v near %v is decoded %v off, more than %v", spec, x, ref, e, bound)
			}
			if period := l.Side * float64(l.Colours); math.Abs(e-period*math.Round(e/period)) > bound*(1+1e-9) {
				t.Fatalf("%s: %v near %v is off by %v, no multiple of %v", spec, x, ref, e, period)
			}
			if !inside && math.Abs(e) > bound {
				aliased++
			}
		}
		if aliased == 0 {
			t.Errorf("%s: nothing beyond the radius was decoded wrong", spec)
		}
	}
}

// Stochastic rounding has no bias, rounding to nearest has one.
func TestLatticeBias(t *testing.T) {
	x, ref := []float32{0.12344}, []float32{0.1234}
	bias := func(l *Lattice) float64 {
		sum := 0.0
		const rounds = 200000
		for i := range rounds {
			v := []float32{x[0]}
			if err := l.Encode(v, v, i, 1, 0); err != nil {
				t.Fatal(err)
			}
			l.Decode(v, v, ref)
			sum += (l.Side*float64(v[0]) - float64(x[0])) / rounds
		}
		return sum
	}
	if b := bias(parseLattice(t, "lattice(0.001,256,stochastic)")); math.Abs(b) > 3*0.0005/math.Sqrt(200000) {
		t.Errorf("stochastic rounding has a bias of %g", b)
	}
	if b := bias(parseLattice(t, "lattice(0.001,256)")); math.Abs(b+0.00044) > 1e-8 {
		t.Errorf("nearest rounding of 0.12344 to 0.001 is off by %g", b)
	}
}

// DecodeStats counts points near the border of the radius, and keeps the largest distance.
func TestLatticeCountsFarDecodes(t *testing.T) {
	l := parseLattice(t, "lattice(0.001,256)")
	x := []float32{0, 0.11, 0.12, -0.125, 0.3}
	if err := l.Encode(x, x, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	d := l.Decode(x, x, make([]float32, len(x)))
	if d.Total != 5 || d.Far != 2 || math.Abs(d.Largest-0.125) > 1e-12 {
		t.Errorf("%+v", d) // 0.12 and -0.125 lie beyond 0.9·0.1275; 0.3 became 0.044, which cannot be detected
	}
	var sum DecodeStats
	sum.Add(d)
	sum.Add(DecodeStats{Total: 1, Largest: 0.5})
	if sum.Total != 6 || sum.Far != 2 || sum.Largest != 0.5 {
		t.Errorf("%+v", sum)
	}
}

// The codec preserves codes and writes log2 q bits for each, as the ledger counts.
func TestLatticeCodec(t *testing.T) {
	for _, spec := range []string{"lattice(0.01,2)", "lattice(0.01,256)", "lattice(0.01,1024,stochastic)",
		"lattice(0.01,65536)"} {
		l := parseLattice(t, spec)
		s := rng.New(1, "codes")
		for _, vectors := range []int{1, 2} {
			p := Payload{Dim: 37}
			for which := range vectors {
				v := gauss(&s, 37)
				if err := l.Encode(v, v, 1, 2, which); err != nil {
					t.Fatal(err)
				}
				p.Vectors = append(p.Vectors, v)
			}
			c := l.Codec(vectors, 37)
			var back Payload
			for _, a := range []Accounting{SharedSeed, Packed, Reference} {
				checkCodec(t, c, p, &back, a, true)
			}
			var ledger Ledger
			if ledger.Send(c.Sent(p)); ledger.SharedSeed != uint64(vectors*37*l.Bits()) {
				t.Errorf("%s: %d bits", spec, ledger.SharedSeed)
			}
		}
	}
}

func TestLatticeRefuses(t *testing.T) {
	for _, spec := range []string{"lattice", "lattice(1)", "lattice(0,256)", "lattice(-1,4)", "lattice(1,3)",
		"lattice(1,1)", "lattice(1,131072)",
		"lattice(1,4,random)", "lattice(1,4,stochastic,5)", "lattice(Inf,4)", "lattice(NaN,4)", "latice(1,4)"} {
		if _, err := ParseLattice(spec, 1); err == nil {
			t.Errorf("%q was accepted", spec)
		}
	}
	if l, err := ParseLattice("identity", 1); l != nil || err != nil || l.String() != "identity" {
		t.Errorf("identity: %v, %v", l, err)
	}
	l := parseLattice(t, "lattice(1e-08,256)")
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1)), 1e20} {
		var e *NotFiniteError
		v := []float32{0, bad}
		if err := l.Encode(v, v, 0, 0, 0); !errors.As(err, &e) || e.At != 1 {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
