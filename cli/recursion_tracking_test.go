//go:build !windows

package cli

import (
	"fmt"
	"slices"
)

// Recursions of methods that correct the bias of agents with different data by trackers or control
// variates.

// tracking has trackers y of the mean gradient and steps u along them: y' = W y + g' - g and
// x' = W x - alpha·u (cta), or W (x - alpha·u) (semi-atc), with y' = W (y + g' - g) in atc. The
// first tracker is the first gradient.
func (r *recursion) tracking(form string) {
	y, old := zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.times(1) {
		g := make([][]float64, r.n)
		for i, x := range r.x {
			if g[i] = r.grad(i, x); !r.corrected {
				g[i] = r.direct(i, g[i], x)
			}
			y[i] = plus(plus(y[i], 1, g[i]), -1, old[i])
		}
		if old = g; form == "atc" && t > 0 {
			y = r.mixed(t, y)
		}
		u := slices.Clone(y)
		for i, x := range r.x {
			if r.corrected {
				u[i] = r.direct(i, y[i], x)
			}
		}
		if form == "cta" {
			r.x = r.mixed(t, r.x)
		}
		for i := range r.x {
			r.x[i] = plus(r.x[i], -r.alpha, u[i])
		}
		if form != "cta" {
			r.x = r.mixed(t, r.x)
		}
		if form != "atc" {
			y = r.mixed(t, y)
		}
	}
}

// next is tracking whose steps also fall by themselves.
func (r *recursion) next() {
	r.kappa = one(r, "kappa", 0.0, 0.1)
	r.tracking("semi-atc")
}

// exactDiffusion averages with (I + W)/2, unless W is made so already.
func (r *recursion) exactDiffusion() {
	if r.lazy > 0.25 {
		r.lazy /= 2
	}
	r.led(1)
}

// led has rounds of tau steps.
func (r *recursion) led(tau int) {
	y := zeroes(r.n, r.d)
	for t := range r.times(tau) {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(1/(r.alpha*float64(tau)), y[i])
		}
		if r.x = r.stepAll(c); (t+1)%tau > 0 {
			continue
		}
		w := r.fixed(r.x)
		for i := range y {
			y[i] = plus(y[i], 1, plus(r.x[i], -1, w[i]))
		}
		r.x = w
	}
}

func (r *recursion) kgt() {
	k, outer := one(r, "local-steps", 2, 4), one(r, "outer-step", 1, 0.7)
	c, start := zeroes(r.n, r.d), r.x
	for t := range r.times(k) {
		r.x = r.stepAll(c)
		if (t+1)%k > 0 {
			continue
		}
		z, next := zeroes(r.n, r.d), zeroes(r.n, r.d)
		for i, x := range r.x {
			z[i] = scaled(1/(float64(k)*r.alpha), plus(start[i], -1, x))
			next[i] = plus(start[i], -float64(k)*outer*r.alpha, z[i])
		}
		w := r.fixed(z)
		for i := range c {
			c[i] = plus(plus(c[i], -1, z[i]), 1, w[i])
		}
		r.x = r.fixed(next)
		start = r.x
	}
}

// scaffnew averages with probability p, for all agents at once.
func (r *recursion) scaffnew() {
	share, p := one(r, "share", 0.7, 0.5), 1.0
	if _, err := fmt.Sscanf(r.edges, "coin(%g)", &p); err != nil && r.edges == "periodic(2)" {
		p = 0.5
	}
	h := zeroes(r.n, r.d)
	for t := range r.times(1) {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(-1, h[i])
		}
		if r.x = r.stepAll(c); len(r.process.Active(nil, t)) == 0 {
			continue
		}
		w := r.fixed(r.x)
		for i, y := range r.x {
			r.x[i] = plus(scaled(1-share, y), share, w[i])
			h[i] = plus(h[i], p/r.alpha, plus(r.x[i], -1, y))
		}
	}
}
