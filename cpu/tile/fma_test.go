package tile

import (
	"math"
	"math/big"
	"testing"

	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

// exactFMA returns a·b + s, computed without rounding and then rounded once.
func exactFMA(a, b, s float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	t := exact(a)
	t.Mul(t, exact(b)).Add(t, exact(s))
	if t.Sign() == 0 {
		return float32(float64(a)*float64(b) + float64(s)) // the sign of a zero does not depend on rounding
	}
	r, _ := t.Float32()
	return r
}

func finite(v float32) bool { return v-v == 0 }

func checkFMA(t *testing.T, a, b, s float32) {
	t.Helper()
	if !finite(a) || !finite(b) || !finite(s) {
		return
	}
	if got, want := float32(FMA(float64(a), float64(b), float64(s))), exactFMA(a, b, s); !kerneltest.Same(got, want) {
		t.Errorf("FMA(%x, %x, %x) = %x, want %x", a, b, s, got, want)
	}
}

func TestFMA(t *testing.T) {
	r := rng.New(1, "fused")
	// a random number with few bits, so that halfway points are frequent
	float := func(exponents, lowest int) float32 {
		mantissa := 1 + float64(r.Uint64()%8)/8*float64(r.Uint64()%2) + float64(r.Uint64()%4)*0x1p-23
		v := math.Ldexp(mantissa, lowest+int(r.Uint64()%uint64(exponents)))
		if r.Uint64()%2 == 0 {
			v = -v
		}
		return float32(v)
	}
	for range 30000 {
		checkFMA(t, float(30, -15), float(30, -15), float(60, -30))
		checkFMA(t, float(80, -140), float(20, -20), float(20, -149)) // denormal results
		checkFMA(t, float(6, 60), float(6, 60), float(2, 126))        // results that overflow
	}
}

// Cases where rounding to 53 bits and then to 24 is wrong: 1 + 2⁻²⁴ is halfway between two float32,
// and 2⁻⁷⁰ more or less decides.
func TestFMADoubleRounding(t *testing.T) {
	const next = 1 + 0x1p-23
	for _, c := range []struct{ a, b, s, want float32 }{
		{0x1p-35, 0x1p-35, 1, 1},
		{1 + 0x1p-12, 1 - 0x1p-12, 0x1p-24, 1}, // 1 + 2⁻²⁴ − 2⁻²⁴
		{0x1.000002p-24, 0x1.fffffep-1, 1, next},
		{0x1.fffffep-25, 1, 1, 1},
		{0x1p-140, 0x1p-10, 0, 0},
		{0x1.000002p-126, 0x1p-24, 0, 0x1p-149},
	} {
		checkFMA(t, c.a, c.b, c.s)
		if got := float32(FMA(float64(c.a), float64(c.b), float64(c.s))); got != c.want {
			t.Errorf("FMA(%x, %x, %x) = %x, want %x", c.a, c.b, c.s, got, c.want)
		}
	}
}

func TestFMAOfSpecials(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range [][3]float64{{0, inf, 1}, {inf, 1, -inf}, {math.NaN(), 0, 0}, {1, 1, math.NaN()}} {
		if got := FMA(c[0], c[1], c[2]); got == got {
			t.Errorf("FMA%v = %v, want NaN", c, got)
		}
	}
	if got := FMA(inf, -2, 5); got != -inf {
		t.Errorf("∞·−2 + 5 = %v", got)
	}
}

func FuzzFMA(f *testing.F) {
	f.Add(uint32(0x3f800001), uint32(0x33800000), uint32(0x3f800000))
	f.Add(uint32(1), uint32(0x3f000000), uint32(1))
	f.Fuzz(func(t *testing.T, a, b, s uint32) {
		checkFMA(t, math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(s))
	})
}
