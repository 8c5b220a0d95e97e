package dist

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// Every 16-bit number is decoded and encoded as itself; a number between two is rounded to the
// nearer one, halves to even.
func TestValuesExhaustive(t *testing.T) {
	for _, f := range []ValueFormat{FP16, BF16} {
		one := func(h uint16) float32 {
			var v [1]float32
			f.Read(v[:], []byte{byte(h), byte(h >> 8)})
			return v[0]
		}
		round := func(x float32) float32 { v := []float32{x}; f.Round(v); return v[0] }
		for h := range uint16(math.MaxUint16) {
			x := one(h)
			if math.IsNaN(float64(x)) {
				if y := round(x); !math.IsNaN(float64(y)) {
					t.Fatalf("%s: %#x is NaN, and is rounded to %g", f, h, y)
				}
				continue
			}
			if b := f.Append(nil, []float32{x}); b[0] != byte(h) || b[1] != byte(h>>8) {
				t.Fatalf("%s: %#x is %g, which is encoded as %x", f, h, x, b)
			}
			y := one(h + 1) // the next one away from zero
			if math.IsNaN(float64(y)) || math.IsInf(float64(y), 0) ||
				math.Signbit(float64(x)) != math.Signbit(float64(y)) {
				continue
			}
			middle := float32((float64(x) + float64(y)) / 2) // exact: float32 has more bits
			even := x
			if h&1 == 1 {
				even = y
			}
			if got := round(middle); got != even {
				t.Fatalf("%s: %g, halfway between %g and %g, is rounded to %g", f, middle, x, y, got)
			}
			if math.Float32bits(middle) == math.Float32bits(x) {
				continue // the largest float32
			}
			below, above := math.Nextafter32(middle, x), math.Nextafter32(middle, y)
			if round(below) != x || round(above) != y {
				t.Fatalf("%s: around %g: %g and %g, want %g and %g", f, middle, round(below), round(above), x, y)
			}
		}
	}
}

func TestValuesEnds(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		f    ValueFormat
		x, y float32
	}{
		{FP16, 65504, 65504}, {FP16, 65519.996, 65504}, {FP16, 65520, inf}, {FP16, -1e9, -inf}, {FP16, inf, inf},
		{FP16, 1 << 10, 1 << 10}, {FP16, float32(math.Ldexp(1, -25)), 0}, {FP16, float32(math.Ldexp(1.5, -25)),
			float32(math.Ldexp(1, -24))},
		{BF16, math.MaxFloat32, inf}, {BF16, 1, 1}, {BF16, -inf, -inf}, {FP32, 0.1, 0.1},
	} {
		v := []float32{c.x}
		if c.f.Round(v); v[0] != c.y {
			t.Errorf("%s of %g is %g, want %g", c.f, c.x, v[0], c.y)
		}
	}
	zero := []float32{float32(math.Copysign(0, -1))}
	if FP16.Round(zero); !math.Signbit(float64(zero[0])) {
		t.Error("the sign of zero is lost")
	}
}

// Rounded values are sent without a loss.
func TestValuesRoundTrip(t *testing.T) {
	s := rng.New(4, "values")
	v := make([]float32, 1000)
	for i := range v {
		v[i] = float32(s.Norm() * math.Pow(2, float64(s.IntN(40)-30)))
	}
	for _, f := range []ValueFormat{FP32, FP16, BF16} {
		sent := slices.Clone(v)
		f.Round(sent)
		b := f.Append(nil, sent)
		if len(b) != len(v)*f.Bits()/8 {
			t.Errorf("%s: %d bytes", f, len(b))
		}
		got := make([]float32, len(v))
		if f.Read(got, b); !slices.Equal(got, sent) {
			t.Errorf("%s: received values differ from those sent", f)
		}
	}
}

func BenchmarkValues(b *testing.B) {
	v := make([]float32, 1<<16)
	s := rng.New(4, "values")
	for i := range v {
		v[i] = float32(s.Norm())
	}
	for _, f := range []ValueFormat{FP16, BF16} {
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(int64(4 * len(v)))
			for b.Loop() {
				f.Round(v)
			}
		})
	}
}
