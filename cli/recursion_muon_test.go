//go:build !windows

package cli

import (
	"fmt"
	"math"
	"slices"
)

// muonSettings adds the flags of Muon. The weights of the only layer are its matrix.
func (r *recursion) muonSettings() {
	r.args = append(r.args, "--optimizer", "muon", "--param", "muon_tensors=by-name(fc1)", "--eps", fmt.Sprint(r.eps))
	r.muonMu, r.nesterov, r.muonScale = 0.95, true, "match_rms_adamw"
	if pick(r, false, true) {
		r.muonMu = param(r, "mu", 0.8)
	}
	if pick(r, false, true) {
		r.nesterov = param(r, "nesterov", false)
	}
	r.rest = 1
	if pick(r, false, true) {
		r.muonScale = param(r, "scale", "original", "spectral_unclamped")
		r.rest = 0.015
	}
	if pick(r, false, true) {
		r.rest = param(r, "alpha_rest", 0.5*r.alphaMax) / r.alphaMax
	}
}

// muon is the optimizer muon. Coordinates are the weights of the layer, by classes, and its biases.
func (r *recursion) muon(o *direction, g, u, x []float64) {
	cols := len(r.features[0][0])
	weights := r.classes * cols
	s := float64(o.calls)
	for k := range g {
		if k >= weights {
			o.m[k] = 0.9*o.m[k] + 0.1*g[k]
			o.v[k] = 0.999*o.v[k] + 0.001*g[k]*g[k]
			u[k] = o.m[k] / (1 - math.Pow(0.9, s)) / (math.Sqrt(o.v[k]/(1-math.Pow(0.999, s))) + r.eps)
			u[k] = r.rest * (u[k] + r.decay*x[k])
			continue
		}
		if o.m[k] = r.muonMu*o.m[k] + (1-r.muonMu)*g[k]; r.nesterov {
			u[k] = r.muonMu*o.m[k] + (1-r.muonMu)*g[k]
		} else {
			u[k] = o.m[k]
		}
	}
	scale := 0.2 * math.Sqrt(float64(max(r.classes, cols)))
	switch ratio := float64(r.classes) / float64(cols); r.muonScale {
	case "original":
		scale = math.Sqrt(max(1, ratio))
	case "spectral_unclamped":
		scale = math.Sqrt(ratio)
	}
	for k, v := range orthogonalized(u[:weights], r.classes, cols) {
		u[k] = scale*v + r.decay*x[k]
	}
}

// orthogonalized is five Newton-Schulz steps for a matrix stored by rows, no more of which than
// columns.
func orthogonalized(w []float64, rows, cols int) []float64 {
	x, norm := slices.Clone(w), 0.0
	for _, v := range x {
		norm += v * v
	}
	norm = max(math.Sqrt(norm), 1e-7)
	for k := range x {
		x[k] /= norm
	}
	product := func(a, b []float64, n, k, m int, bDown, bRight int) []float64 {
		c := make([]float64, n*m)
		for i := range n {
			for j := range m {
				for l := range k {
					c[i*m+j] += a[i*k+l] * b[l*bDown+j*bRight]
				}
			}
		}
		return c
	}
	for range 5 {
		p := product(x, x, rows, cols, rows, 1, cols)
		q := product(p, p, rows, rows, rows, rows, 1)
		for k := range q {
			q[k] = 2.0315*q[k] - 4.7750*p[k]
		}
		x = plus(product(q, x, rows, rows, cols, cols, 1), 3.4445, x)
	}
	return x
}
