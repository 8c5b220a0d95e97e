package vec

import (
	"math"
	"os"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// geluReference is GELU and its derivative in float64.
func geluReference(form GELUForm, x float64) (y, slope float64) {
	if form == Erf {
		phi := math.Erfc(-x/math.Sqrt2) / 2
		return x * phi, phi + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}
	const twice = 1.5957691216057308 // 2·sqrt(2/π)
	x = max(min(x, 20), -20)         // beyond it nothing changes, but the square overflows
	s := 1 / (1 + math.Exp(-twice*(x+0.044715*x*x*x)))
	return x * s, s + x*s*(1-s)*twice*(1+3*0.044715*x*x)
}

// Both forms and their derivatives are within half of the tolerance of 2.4e-7 of their size plus
// 1e-8, and from −5 on they keep their digits. With FSPDA_LONG=1 every float32 from 2⁻³⁰ to 16 is
// tested, of both signs.
func TestGELU(t *testing.T) {
	step := uint32(4099)
	if os.Getenv("FSPDA_LONG") != "" {
		step = 1
	}
	var x, y, slope, one [1024]float32
	for i := range one {
		one[i] = 1
	}
	first, last := math.Float32bits(0x1p-30), math.Float32bits(16)
	for at := first; at <= last; {
		for i := 0; i < len(x); i += 2 {
			x[i] = math.Float32frombits(at)
			x[i+1] = -x[i]
			at += step
		}
		for _, form := range []GELUForm{Tanh, Erf} {
			GELUs(form, y[:], x[:])
			GELUGrads(form, slope[:], x[:], one[:])
			for i, v := range x {
				wantY, wantSlope := geluReference(form, float64(v))
				off, allowed := math.Abs(float64(y[i])-wantY), 0x1p-23*math.Abs(wantY)+1e-8
				if !(off <= allowed) || v >= -5 && off > 5e-5*math.Abs(wantY) {
					t.Fatalf("form %d: GELU of %v is %v, want %v", form, v, y[i], wantY)
				}
				if !(math.Abs(float64(slope[i])-wantSlope) <= 0x1p-23*math.Abs(wantSlope)+1e-8) {
					t.Fatalf("form %d: the derivative at %v is %v, want %v", form, v, slope[i], wantSlope)
				}
			}
		}
	}
}

// Far from zero GELU is its input or zero, and NaN stays NaN.
func TestGELUOfSpecials(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{inf, -inf, nan, 1e30, -1e30, 7, -7, 0, 1e-40}
	wantY := []float32{inf, 0, nan, 1e30, 0, 7, 0, 0, 5e-41}
	wantSlope := []float32{2, 0, nan, 2, 0, 2, 0, 1, 1}
	two := []float32{2, 2, 2, 2, 2, 2, 2, 2, 2}
	same := func(a, b float32) bool { return a == b || a != a && b != b }
	for _, set := range append(isa.Available(), isa.Go) {
		isa.With(set, func() {
			for _, form := range []GELUForm{Tanh, Erf} {
				y, slope := make([]float32, len(x)), make([]float32, len(x))
				GELUs(form, y, x)
				GELUGrads(form, slope, x, two)
				for i, v := range x {
					if !same(y[i], wantY[i]) || !same(slope[i], wantSlope[i]) {
						t.Errorf("%v, form %d: at %v: %v and the derivative %v, want %v and %v", set, form, v,
							y[i], slope[i], wantY[i], wantSlope[i])
					}
				}
			}
		})
	}
}

// The loops over rows have the bits of Go with every instruction set, for rows of any length, and
// write nothing behind them.
func TestRowLoopsAreTwins(t *testing.T) {
	used := isa.Active
	defer func() { isa.Active = used }()
	const rows = 3
	for n := 1; n < 140; n++ {
		x, dy, gamma := kerneltest.Noise("x", rows*n), kerneltest.Noise("dy", rows*n), kerneltest.Noise("gamma", n)
		values := []float64{0.3, -0.1, 0.7}
		all := func() (results []float32) {
			keep := func(v []float32) { results = append(results, v...) }
			keepWide := func(v []float64, rows, n int) {
				for r := range rows {
					for _, x := range v[r*kernel.Padded(n):][:n] {
						results = append(results, float32(x))
					}
				}
			}
			y := make([]float32, rows*n+kernel.LineFloats)
			for _, form := range []GELUForm{Tanh, Erf} {
				GELUs(form, y[:rows*n], x)
				keep(y)
				GELUGrads(form, y[:rows*n], x, dy)
				keep(y)
			}
			SlopeRows(y, x, dy, values, n, n)
			keep(y)
			row := func(rows int) []float64 { return make([]float64, rows*kernel.Padded(n)) }
			wide, wideDY, wideGamma, beta, sums := row(rows), row(rows), row(1), row(1), make([]float64, rows)
			for _, v := range []struct {
				wide []float64
				x    []float32
			}{{wide, x}, {wideGamma, gamma}, {beta, dy[:n]}} {
				WidenSums(sums[:len(v.x)/n], v.wide, v.x, n)
				keepWide(sums, 1, rows)
			}
			CenterSquares(sums, wide, values, n)
			keepWide(sums, 1, rows)
			for _, shift := range [][]float64{nil, beta} {
				NormalizeRows(y, wide, wideGamma, shift, values, n)
				keep(y)
			}
			of, slopes := make([]SlopeSums, rows), make([]RowSlope, rows)
			GradSums(of, wide, wideDY, x, dy, wideGamma, values, n)
			for r, s := range of {
				keepWide([]float64{s.Slope, s.Along, s.Off}, 1, 3)
				slopes[r] = RowSlope{0.02, 1.3, s.Slope, s.Along}
			}
			forGamma, forBeta := row(1), row(1)
			for _, add := range [][]float32{nil, x} {
				GradRows(y, add, wide, wideDY, wideGamma, forGamma, forBeta, slopes, n)
				keep(y)
				keepWide(forGamma, 1, n)
				keepWide(forBeta, 1, n)
			}
			return results
		}
		isa.Active = isa.Go
		want := all()
		for _, set := range isa.Available() {
			isa.Active = set
			for i, v := range all() {
				if math.Float32bits(v) != math.Float32bits(want[i]) {
					t.Fatalf("instruction set %d, rows of %d: number %d is %v, in Go %v", set, n, i, v, want[i])
				}
			}
		}
	}
}
