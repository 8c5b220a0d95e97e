package devicetest

import (
	"fmt"
	"math"
	"testing"

	"fspda/device"
)

// A bound allows the correctly rounded result, and it never allows an error of half the digits.
func TestBoundsAreTight(t *testing.T) {
	for _, k := range device.Kernels() {
		for _, c := range calls(k) {
			want, limit := evaluate(c, kernelInputs(c))
			for i := range want {
				scale := 0.0
				for _, w := range want[i] {
					scale = math.Max(scale, math.Abs(w))
				}
				for j, w := range want[i] {
					if d := math.Abs(float64(float32(w)) - w); d > limit[i][j] {
						t.Errorf("%s %v: output %d, element %d: rounding %v is wrong by %v, the bound is %v", k, c.Dims,
							i, j, w, d, limit[i][j])
					}
					if limit[i][j] > 1e-3*(scale+1) {
						t.Errorf("%s %v: output %d, element %d: bound %v of %v", k, c.Dims, i, j, limit[i][j], w)
					}
				}
			}
		}
	}
}

// A sum of products in float32, from left to right, stays within the bounds.
func TestBoundsAdmitPlainSums(t *testing.T) {
	for _, c := range calls(device.Linear) {
		in := kernelInputs(c)
		m, n, k := c.Dims[0], c.Dims[1], c.Dims[2]
		want, limit := evaluate(c, kernelInputs(c))
		got := make([]float32, m*n)
		for i := range m {
			for j := range n {
				for l := range k {
					got[i*n+j] += float32(in[0][i*k+l] * in[1][j*k+l])
				}
				got[i*n+j] += in[2][j]
			}
		}
		within(t, fmt.Sprint(c.Dims), [][]float32{got}, want, limit)
	}
}

// If every rounding is specified, the rounded result lies within the general bounds.
func TestRounded(t *testing.T) {
	prescribed := 0
	for _, k := range device.Kernels() {
		for _, c := range calls(k) {
			exact := rounded(c, kernelInputs(c))
			if exact == nil {
				continue
			}
			prescribed++
			want, limit := evaluate(c, kernelInputs(c))
			within(t, fmt.Sprintf("%s %v", k, c.Dims), [][]float32{exact}, want, limit)
		}
	}
	if prescribed < 6 {
		t.Errorf("%d calls have prescribed roundings", prescribed)
	}
}
