package theory

import (
	"math"

	"fspda/internal/rng"
)

// Problem is a sum of quadratics, f_i(x) = ½ Σ_k h_ik (x_k - b_ik)² for each of N agents, and F
// their mean. All models start at 0, and the minimum x* of F has norm 1.
type Problem struct {
	N, D int
	// Noise is sigma: a gradient has additive Gaussian noise whose norm has this root mean square.
	Noise float64
	// Hetero is zeta: the root mean square of |b_i - mean of b|. Gradients of agents at x* have
	// about this norm.
	Hetero float64
	Seed   uint64

	h, b [][]float64 // made by prepare
	star []float64
}

// prepare draws the quadratics. The curvatures are uniform in (0.5, 1.5), so the smoothness is at
// most 1.5.
func (p *Problem) prepare() {
	s := rng.New(p.Seed, "theory-problem", uint64(p.N), uint64(p.D))
	p.h, p.b, p.star = nil, nil, make([]float64, p.D)
	sum := make([]float64, p.D)
	for range p.N {
		h, b := make([]float64, p.D), make([]float64, p.D)
		for k := range p.D {
			h[k] = 0.5 + s.Float64()
			b[k] = p.Hetero * s.Norm() / math.Sqrt(float64(p.D))
			p.star[k] += h[k] * b[k]
			sum[k] += h[k]
		}
		p.h, p.b = append(p.h, h), append(p.b, b)
	}
	// move all b_i by the same vector, so that x* is a unit vector
	goal := 1 / math.Sqrt(float64(p.D))
	for k := range p.D {
		shift := goal - p.star[k]/sum[k]
		for i := range p.N {
			p.b[i][k] += shift
		}
		p.star[k] = goal
	}
}

// gradient adds factor times the gradient of f_i at x to dst.
func (p *Problem) gradient(dst []float64, i int, x []float64, factor float64) {
	for k, h := range p.h[i] {
		dst[k] += factor * h * (x[k] - p.b[i][k])
	}
}

// noisy writes a stochastic gradient of f_i at x to dst. Its noise depends on the seed, the
// iteration and the agent only, so that two gradients of an iteration share it.
func (p *Problem) noisy(dst []float64, seed uint64, t, i int, x []float64, noise float64) {
	clear(dst)
	p.gradient(dst, i, x, 1)
	if noise == 0 {
		return
	}
	s := rng.New(seed, "theory-noise", uint64(t), uint64(i))
	a := noise / math.Sqrt(float64(p.D))
	for k := range dst {
		dst[k] += a * s.Norm()
	}
}

// stationarity returns |∇F(x)|².
func (p *Problem) stationarity(x []float64) (sum float64) {
	g := make([]float64, p.D)
	for i := range p.N {
		p.gradient(g, i, x, 1/float64(p.N))
	}
	for _, v := range g {
		sum += v * v
	}
	return sum
}
