//go:build !windows

package cli

import (
	"math"
	"slices"

	"fspda/internal/rng"
)

// Recursions of methods without a common clock. An agent's iterations, in its own logical time,
// have a gradient, an exchange, both or neither; the events in virtual time say which.

// asyncAgent is an agent in virtual time.
type asyncAgent struct {
	// t is the logical time, and gradients counts those that were applied.
	t, gradients int
	// end is when the running gradient ends. Gradients take slow times a random time of the stream.
	end   float64
	times rng.Stream
	slow  float64
	// mail is own - other of each vector of an exchange; nil: there was none since the last iteration.
	mail [][]float64
}

// async is FSPDA-SA.
func (r *recursion) async() {
	beta, lambda := r.dual(), zeroes(r.n, r.d)
	r.virtualTime(1, func() [][][]float64 { return [][][]float64{r.x} }, func(i int, c float64, mail [][]float64) {
		next := plus(r.x[i], -r.eta, lambda[i])
		if c > 0 {
			next = plus(next, -r.alpha*c, r.grad(i, r.x[i]))
		}
		if mail != nil {
			next, lambda[i] = plus(next, -r.gamma, mail[0]), plus(lambda[i], beta, mail[0])
		}
		r.x[i] = next
	})
}

// asyncSTORM is FSPDA-STORM whose stochastic gradient is c times the gradient, or 0 in iterations
// without one.
func (r *recursion) asyncSTORM() {
	beta, ax, al := r.dual(), one(r, "a-x", 0.1, 0.3), one(r, "a-lambda", 0.1, 0.3)
	lambda, mg, mc, ml := zeroes(r.n, r.d), zeroes(r.n, r.d), zeroes(r.n, r.d), zeroes(r.n, r.d)
	old, first := slices.Clone(r.x), make([]bool, r.n)
	r.virtualTime(2, func() [][][]float64 { return [][][]float64{r.x, old} }, func(i int, c float64, mail [][]float64) {
		x, zero := r.x[i], make([]float64, r.d)
		g, before, now, then := zero, zero, zero, zero
		if c > 0 {
			g, before = scaled(c, r.grad(i, x)), scaled(c, r.grad(i, old[i]))
		}
		if mail != nil {
			now, then = mail[0], mail[1]
		}
		if !first[i] {
			first[i], mg[i], mc[i], ml[i] = true, g, now, now
		} else {
			mg[i] = plus(g, 1-ax, plus(mg[i], -1, before))
			mc[i] = plus(now, 1-ax, plus(mc[i], -1, then))
			ml[i] = plus(now, 1-al, plus(ml[i], -1, then))
		}
		old[i] = x
		r.x[i] = plus(plus(plus(x, -r.alpha, mg[i]), -r.gamma, mc[i]), -r.eta, lambda[i])
		lambda[i] = plus(lambda[i], beta, ml[i])
	})
}

// virtualTime plays the gradients and exchanges of a run. Of an iteration of agent i, iterate gets
// the factor of its gradient, 0 without one, and its mail. Exchanges send vectors. A batch takes
// the time of so many gradients.
func (r *recursion) virtualTime(gradients float64, vectors func() [][][]float64,
	iterate func(i int, c float64, mail [][]float64)) {
	agents, duration := r.asyncAgents(gradients)
	coefficient := r.coefficient(agents)
	rate := one(r, "contacts", 1.0, 3.0) * float64(r.n) / 2
	clock := rng.New(r.seed, "async-edges")
	fires, latest := clock.Exp()/rate, 0
	finish := func(i int, gradient bool) {
		a, c := &agents[i], 0.0
		if gradient {
			a.gradients++
			c = coefficient(a)
		}
		iterate(i, c, a.mail)
		a.mail = nil
		a.t++
		latest = max(latest, a.t)
	}
	start := func(i int, now float64) {
		a := &agents[i]
		a.end = now + a.slow*duration(&a.times)
	}
	for i := range agents {
		start(i, 0)
	}
	for latest < r.iterations {
		next := 0
		for i, a := range agents {
			if a.end < agents[next].end {
				next = i
			}
		}
		if now := agents[next].end; now <= fires {
			finish(next, true)
			start(next, now)
			continue
		}
		now := fires
		fires += clock.Exp() / rate
		e := r.graph.Edges[clock.IntN(len(r.graph.Edges))]
		ahead, behind := &agents[e.I], &agents[e.J]
		if ahead.mail != nil || behind.mail != nil {
			continue
		}
		late := e.J
		if ahead.t < behind.t {
			ahead, behind, late = behind, ahead, e.I
		}
		canceled := behind.t < ahead.t
		for ; behind.t < ahead.t; behind.t++ {
			iterate(late, 0, nil)
		}
		agents[e.I].mail, agents[e.J].mail = r.mail(ahead.t, e.I, e.J, vectors())
		if canceled {
			finish(late, false)
			start(late, now)
		}
	}
	for i, a := range agents {
		if a.mail != nil {
			finish(i, false)
		}
	}
}

// mail returns own - other of both ends of an edge on the mask of their common time.
func (r *recursion) mail(t, i, j int, vectors [][][]float64) (own, other [][]float64) {
	for _, v := range vectors {
		diff := make([]float64, r.d)
		for _, k := range r.mask.Draw(nil, t, i, j) {
			diff[k] = v[i][k] - v[j][k]
		}
		own, other = append(own, diff), append(other, scaled(-1, diff))
	}
	return own, other
}

// asyncAgents draws how fast agents are, and the distribution of the times of so many gradients.
func (r *recursion) asyncAgents(gradients float64) (agents []asyncAgent, duration func(s *rng.Stream) float64) {
	duration = map[string]func(s *rng.Stream) float64{
		"constant":       func(*rng.Stream) float64 { return 1 },
		"exp":            (*rng.Stream).Exp,
		"uniform":        func(s *rng.Stream) float64 { return 0.5 + s.Float64() },
		"lognormal(0.5)": func(s *rng.Stream) float64 { return math.Exp(0.5*s.Norm() - 0.125) },
	}[one(r, "compute-time", "constant", "exp", "uniform", "lognormal(0.5)")]
	slowness := one(r, "slowness", "equal", "linear(3)", "straggler(4)", "random(3)")
	random := rng.New(r.seed, "async-slowness")
	for i := range r.n {
		a := asyncAgent{times: rng.New(r.seed, "async", uint64(i)), slow: gradients}
		switch {
		case slowness == "linear(3)":
			a.slow *= 1 + 2*float64(i)/float64(r.n-1)
		case slowness == "straggler(4)" && i == r.n-1:
			a.slow *= 4
		case slowness == "random(3)":
			a.slow *= math.Pow(3, random.Float64())
		}
		agents = append(agents, a)
	}
	return agents, duration
}

// coefficient draws the rule of the factor of a gradient.
func (r *recursion) coefficient(agents []asyncAgent) func(a *asyncAgent) float64 {
	rule, most := one(r, "coef", "inverse", "one", "printed"), 10.0
	if rule == "inverse" && pick(r, false, true) {
		most = one(r, "c-max", 1.5)
	}
	return func(a *asyncAgent) float64 {
		switch part := float64(a.gradients) / float64(a.t+1); rule {
		case "inverse":
			return min(1/part, most)
		case "printed":
			return part
		}
		return 1
	}
}
