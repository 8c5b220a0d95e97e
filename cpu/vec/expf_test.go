package vec

import (
	"math"
	"os"
	"testing"

	"fspda/internal/testing/kerneltest"
)

// ulps returns the distance of got from want, in steps of float32 at want.
func ulps(got float32, want float64) float64 {
	if math.IsInf(want, 0) || want > math.MaxFloat32 {
		if got > math.MaxFloat32 {
			return 0
		}
	}
	_, e := math.Frexp(want)
	step := math.Ldexp(1, max(e, -125)-24) // below 2^-126 steps no longer shrink
	return math.Abs(float64(got)-want) / step
}

// Every 997th float32 and the borders of every binade agree with the float64 library.
func TestExpf(t *testing.T) {
	worst, at := 0.0, float32(0)
	try := func(x float32) {
		if u := ulps(expf(x), math.Exp(float64(x))); u > worst {
			worst, at = u, x
		}
	}
	for bits := uint64(0); bits < 1<<32; bits += 997 * 16 {
		if x := math.Float32frombits(uint32(bits)); x == x {
			try(x)
		}
	}
	for x := float32(-110); x < 95; x += 0x1p-9 {
		try(x)
	}
	for e := range 256 {
		for _, low := range []uint32{0, 1, 0x7fffff} {
			if x := math.Float32frombits(uint32(e)<<23 | low); x == x {
				try(x)
				try(-x)
			}
		}
	}
	if worst > 0.6 {
		t.Errorf("expf(%v) is %v, wrong by %.3f ulp, want at most 0.6", at, expf(at), worst)
	}
}

func TestExpfSpecials(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct{ x, want float32 }{
		{0, 1}, {float32(math.Copysign(0, -1)), 1}, {inf, inf}, {-inf, 0}, {88.73, inf}, {89, inf}, {1e30,
			inf}, {math.MaxFloat32, inf},
		{-104, 0}, {-1e30, 0}, {-103.5, math.SmallestNonzeroFloat32}, {math.SmallestNonzeroFloat32, 1}, {1, math.E},
	} {
		if got := expf(c.x); got != c.want {
			t.Errorf("expf(%v) is %v, want %v", c.x, got, c.want)
		}
	}
	if got := expf(float32(math.NaN())); got == got {
		t.Errorf("expf(NaN) is %v", got)
	}
}

// exps has a relative error of 2^-27 where the kernels use its float64 result.
func TestExps(t *testing.T) {
	for x := -149.0; x < 149; x += 0.00731 {
		want, v := math.Exp(x), [1]float64{x}
		exps(v[:])
		if e := math.Abs(v[0]-want) / want; e > 0x1p-27 {
			t.Fatalf("the exponential of %v is %v, want %v: relative error %v", x, v[0], want, e)
		}
	}
}

// The exponentials of float32 are within 1.5 ulp where they are from 2⁻¹²⁶ to 2¹²⁷.
// Larger ones may be infinite, smaller ones are 0. With FSPDA_LONG=1 every number from 2⁻³⁰ to 88
// is tested, of both signs.
func TestFloatExp(t *testing.T) {
	step := uint32(4099)
	if os.Getenv("FSPDA_LONG") != "" {
		step = 1
	}
	var x, e [1024]float32
	zero := []float32{0}
	sums := make([]float64, 1)
	worst, where := 0.0, float32(0)
	for at := math.Float32bits(0x1p-30); at <= math.Float32bits(88); {
		for i := 0; i < len(x); i += 2 {
			x[i] = math.Float32frombits(min(at, math.Float32bits(88)))
			x[i+1] = max(-x[i], -87.3)
			at += step
		}
		ExpRows(e[:], sums, x[:], zero, len(x))
		for i, v := range x {
			if u := ulps(e[i], math.Exp(float64(v))); !(u <= worst) {
				worst, where = u, v
			}
		}
	}
	if !(worst <= 1.5) {
		t.Errorf("the exponential of %v is off by %.3f ulp, want at most 1.5", where, worst)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	ExpRows(e[:7], sums, []float32{0, -88, -1e30, -inf, 89, inf, nan}, zero, 7)
	for i, want := range []float32{1, 0, 0, 0, inf, inf, nan} {
		if e[i] != want && want == want || want != want && e[i] == e[i] {
			t.Errorf("special %d: %v, want %v", i, e[i], want)
		}
	}
}

func BenchmarkExps(b *testing.B) {
	x, v := make([]float64, 1024), make([]float64, 1024)
	for i, w := range kerneltest.Noise("exp", 1024) {
		x[i] = float64(w)
	}
	b.SetBytes(8 * 1024)
	for b.Loop() {
		copy(v, x)
		exps(v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/number")
}
