package vec

import (
	"math"
	"testing"

	"fspda/cpu/internal/kerneltest"
	"fspda/cpu/isa"
)

// geluReference is GELU and its derivative in float64.
func geluReference(form GELUForm, x float64) (y, slope float64) {
	if form == Erf {
		phi := math.Erfc(-x/math.Sqrt2) / 2
		return x * phi, phi + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}
	s := 1 / (1 + math.Exp(-geluSlope*(x+0.044715*x*x*x)))
	return x * s, s + x*s*(1-s)*geluSlope*(1+3*0.044715*x*x)
}

// Both forms and their derivatives are right to a rounding, or 1e-8 for large negative numbers.
func TestGELU(t *testing.T) {
	var x, one []float32
	for v := float32(-20); v < 20; v += 0.0037 {
		x, one = append(x, v), append(one, 1)
	}
	y, slope := make([]float32, len(x)), make([]float32, len(x))
	for _, form := range []GELUForm{Tanh, Erf} {
		GELUs(form, y, x)
		GELUGrads(form, slope, x, one)
		for i, v := range x {
			wantY, wantSlope := geluReference(form, float64(v))
			if off := math.Abs(float64(y[i]) - wantY); !(off <= 0x1p-24*math.Abs(wantY)+1e-8) {
				t.Fatalf("form %d: GELU of %v is %v, want %v", form, v, y[i], wantY)
			}
			if off := math.Abs(float64(slope[i]) - wantSlope); !(off <= 0x1p-24*math.Abs(wantSlope)+1e-8) {
				t.Fatalf("form %d: the derivative at %v is %v, want %v", form, v, slope[i], wantSlope)
			}
		}
	}
}

// The loops over rows have the bits of Go with every instruction set, for rows of any length.
func TestRowLoopsAreTwins(t *testing.T) {
	used := isa.Active
	defer func() { isa.Active = used }()
	for n := 1; n < 140; n++ {
		x, dy, gamma := kerneltest.Noise("x", n), kerneltest.Noise("dy", n), kerneltest.Noise("gamma", n)
		all := func() (results []float32) {
			y, forGamma, forBeta := make([]float32, n), make([]float64, n), make([]float64, n)
			for _, form := range []GELUForm{Tanh, Erf} {
				GELUs(form, y, x)
				results = append(results, y...)
				GELUGrads(form, y, x, dy)
				results = append(results, y...)
			}
			SlopeRows(y, x, dy, []float64{0.3}, n)
			results = append(results, y...)
			NormalizeRow(y, x, gamma, nil, 0.1, 0.7)
			results = append(results, y...)
			NormalizeRow(y, x, gamma, dy, 0.1, 0.7)
			results = append(results, y...)
			a, b, c := GradSums(x, dy, gamma, 0.2)
			GradRow(y, x, dy, gamma, forGamma, forBeta, &RowSlope{0.1, 0.02, 1.3, a, b})
			results = append(append(results, y...), float32(c), float32(CenteredSum(x, 0.1)),
				float32(CenteredSquares(x, 0.1)))
			for j := range forGamma {
				results = append(results, float32(forGamma[j]), float32(forBeta[j]))
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
