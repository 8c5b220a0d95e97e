//go:build !windows

package cli

import (
	"math"

	"fspda/dist"
)

// Recursions of primal-dual methods, with D = own - other.

// dual draws the step sizes of FSPDA, and returns beta.
func (r *recursion) dual() float64 {
	r.etaMax, r.gamma = one(r, "eta", 0.02, 0.01), one(r, "gamma", 0.3, 0.4)
	r.eta = r.etaMax
	return one(r, "beta", 1.0, 0.5)
}

func (r *recursion) sa() {
	if one(r, "dual", "same-time", "stale-neighbour") == "stale-neighbour" {
		r.saStale()
		return
	}
	r.descentAscent(func(t int) [][]float64 { return r.differences(t, r.x, false) })
}

// saStale has the dual step of the released program: own at t+1 against other at t.
func (r *recursion) saStale() {
	beta, lambda := r.dual(), zeroes(r.n, r.d)
	for t := range r.times(1) {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(r.eta/r.alpha, lambda[i])
		}
		old, pull := r.x, r.differences(t, r.x, false)
		r.x = r.stepAll(c)
		for i := range r.x {
			r.x[i] = plus(r.x[i], -r.gamma, pull[i])
		}
		r.exchanges(t, func(e dist.Event, _ float64) {
			for _, k := range r.mask.Draw(nil, t, e.From, e.To) {
				lambda[e.From][k] += beta * (r.x[e.From][k] - old[e.To][k])
				lambda[e.To][k] += beta * (r.x[e.To][k] - old[e.From][k])
			}
		})
	}
}

// saSketch compares the sketches of powerGossip instead of coordinates.
func (r *recursion) saSketch() {
	of := map[int]*sketch{}
	r.descentAscent(func(t int) [][]float64 { return r.sketched(t, r.x, of, false) })
}

// descentAscent is FSPDA-SA, with pulls ΣD.
func (r *recursion) descentAscent(pulls func(t int) [][]float64) {
	beta, lambda := r.dual(), zeroes(r.n, r.d)
	for t := range r.times(1) {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(r.eta/r.alpha, lambda[i])
		}
		pull := pulls(t)
		r.x = r.stepAll(c)
		for i := range r.x {
			r.x[i] = plus(r.x[i], -r.gamma, pull[i])
			lambda[i] = plus(lambda[i], beta, pull[i])
		}
	}
}

func (r *recursion) storm() {
	beta, ax, al := r.dual(), one(r, "a-x", 0.1, 0.3), one(r, "a-lambda", 0.1, 0.3)
	first := 1.0 // the share of the first sample that momenta start with
	if one(r, "storm-start", "gradient", "zero") == "zero" {
		first = 0
	}
	newest := 1.0 // of lambda in its average
	if one(r, "storm-lambda", "exact", "lagged") == "lagged" {
		newest = ax
	}
	lambda, average, old := zeroes(r.n, r.d), zeroes(r.n, r.d), r.x
	mg, mc, ml := zeroes(r.n, r.d), zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.times(1) {
		now, before := r.differences(t, r.x, false), r.differences(t, old, false)
		next := zeroes(r.n, r.d)
		for i, x := range r.x {
			g := r.grad(i, x)
			if t == 0 {
				mg[i], mc[i], ml[i] = scaled(first, g), scaled(first, now[i]), scaled(first, now[i])
			} else {
				mg[i] = plus(g, 1-ax, plus(mg[i], -1, r.grad(i, old[i])))
				mc[i] = plus(now[i], 1-ax, plus(mc[i], -1, before[i]))
				ml[i] = plus(now[i], 1-al, plus(ml[i], -1, before[i]))
			}
			average[i] = plus(scaled(1-newest, average[i]), newest, lambda[i])
			next[i] = plus(plus(plus(x, -r.alpha, mg[i]), -r.gamma, mc[i]), -r.eta, average[i])
			lambda[i] = plus(lambda[i], beta, ml[i])
		}
		old, r.x = r.x, next
	}
}

func (r *recursion) prox() {
	least := math.MaxInt
	for i := range r.n {
		least = min(least, r.graph.Degree(i))
	}
	rho := 1 / (2 * r.alpha * float64(least))
	lambda := zeroes(r.n, r.d)
	for t := range r.times(1) {
		pull, next := r.differences(t, r.x, false), zeroes(r.n, r.d)
		for i, x := range r.x {
			step := plus(plus(r.grad(i, x), 1, lambda[i]), rho, pull[i])
			next[i] = plus(x, -1/(2*rho*float64(r.graph.Degree(i))), step)
		}
		r.x = next
		pull = r.differences(t, r.x, false)
		for i := range lambda {
			lambda[i] = plus(lambda[i], rho, pull[i])
		}
	}
}

// extra is the published form, of two iterations.
func (r *recursion) extra() {
	delta := one(r, "delta", 0.5, 0.3)
	var old, g0 [][]float64
	for t := range r.times(1) {
		g := zeroes(r.n, r.d)
		for i, x := range r.x {
			g[i] = scaled(r.alpha, r.grad(i, x))
		}
		wx, next := r.fixed(r.x), zeroes(r.n, r.d)
		for i := range next {
			if t == 0 {
				next[i] = plus(wx[i], -1, g[i])
			}
		}
		if t > 0 {
			wo := r.fixed(old)
			for i, x := range r.x {
				past := plus(wo[i], delta, plus(old[i], -1, wo[i]))
				next[i] = plus(plus(plus(x, 1, wx[i]), -1, past), -1, plus(g[i], -1, g0[i]))
			}
		}
		old, g0, r.x = r.x, g, next
	}
}
