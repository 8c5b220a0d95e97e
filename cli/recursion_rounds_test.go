//go:build !windows

package cli

import (
	"iter"
	"slices"

	"fspda/dist"
)

// Recursions of methods of local steps: with an all-reduce, or with pairs of neighbours, at the
// ends of rounds. The central reference is here, too.

// sgd is one agent with the batches of all: one clipping and one optimizer.
func (r *recursion) sgd() {
	x := r.x[0]
	for range r.times(1) {
		all := zeroes(r.n, r.d)
		for i := range all {
			all[i] = scaled(r.scale[i], r.loss(i, x))
		}
		g := mean(all)
		r.shorten(g)
		if !r.decoupled {
			g = plus(g, r.decay, x)
		}
		x = plus(x, -r.alpha, r.direct(0, g, x))
	}
	for i := range r.x {
		r.x[i] = x
	}
}

// outer is the slow model and the momentum of an outer optimizer.
type outer struct {
	rate, mu float64
	phi, b   []float64
}

// newOuter draws the settings of the outer optimizer of DiLoCo.
func (r *recursion) newOuter() *outer {
	return &outer{rate: param(r, "outer_lr", 0.7, 0.9), mu: param(r, "outer_momentum", 0.9, 0.5),
		phi: slices.Clone(r.x[0]), b: make([]float64, r.d)}
}

// step takes an outer step of the coordinates from, …, to-1, at which all models then start.
func (o *outer) step(x [][]float64, from, to int) {
	average := mean(x)
	for k := from; k < to; k++ {
		d := o.phi[k] - average[k]
		o.b[k] = o.mu*o.b[k] + d
		o.phi[k] -= o.rate * (d + o.mu*o.b[k])
		for i := range x {
			x[i][k] = o.phi[k]
		}
	}
}

func (r *recursion) localSGD() {
	h, moments := one(r, "local-steps", 2, 4), r.moments(0, 0)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h == 0 {
			r.average(r.mask.Draw(nil, t, 0, 0))
			moments((t + 1) / h)
		}
	}
}

func (r *recursion) desLoc() {
	h, moments := one(r, "local-steps", 2, 1), r.moments(3, 6)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h == 0 {
			r.average(r.mask.Draw(nil, t, 0, 0))
			moments((t + 1) / h)
		}
	}
}

func (r *recursion) diloco() {
	h, o, moments := one(r, "local-steps", 2, 4), r.newOuter(), r.moments(0, 0)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h == 0 {
			o.step(r.x, 0, r.d)
			moments((t + 1) / h)
		}
	}
}

// lateDiLoCo takes the changes of the round before, with the agent's own newest one if it is eager.
func (r *recursion) lateDiLoCo() {
	h, eager := one(r, "local-steps", 2, 1), param(r, "outer", "delayed", "eager") == "eager"
	o := r.newOuter()
	phi, b, before := zeroes(r.n, r.d), zeroes(r.n, r.d), zeroes(r.n, r.d)
	for i := range phi {
		copy(phi[i], o.phi)
	}
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h > 0 {
			continue
		}
		old := mean(before)
		for i := range phi {
			change, d := plus(phi[i], -1, r.x[i]), old
			if eager {
				d = plus(plus(d, 1/float64(r.n), change), -1/float64(r.n), before[i])
			}
			b[i], before[i] = plus(scaled(o.mu, b[i]), 1, d), change
			phi[i] = plus(plus(phi[i], -o.rate, d), -o.rate*o.mu, b[i])
			r.x[i] = slices.Clone(phi[i])
		}
	}
}

// moments returns what averages the moving averages of the optimizer at the end of a round, if it
// has some. The numbers are the defaults of the settings.
func (r *recursion) moments(first, second int) func(round int) {
	if r.optimizer != "adamw" && r.optimizer != "muon" {
		return func(int) {}
	}
	if pick(r, false, true) {
		first, second = param(r, "moment_rounds", 1, 2), param(r, "square_rounds", 0, 1, 2)
	}
	return func(round int) {
		for k, every := range []int{first, second} {
			if every == 0 || round%every > 0 {
				continue
			}
			var all [][]float64
			for i := range r.n {
				all = append(all, [][]float64{r.opt[i].m, r.opt[i].v}[k])
			}
			m := mean(all)
			for i := range all {
				copy(all[i], m)
			}
		}
	}
}

// streamingDiLoCo takes the outer step of one part of the model after the other.
func (r *recursion) streamingDiLoCo() {
	every, parts, o := one(r, "local-steps", 1, 2, 4), pick(r, 2, 4), r.newOuter()
	one(r, "density", 1/float64(parts))
	delay, own := 0, 0.0
	if every > 1 && pick(r, false, true) {
		delay, own = param(r, "delay", 1, every-1), 0.5
	}
	if pick(r, false, true) {
		own = param(r, "mix", 0, 0.3)
	}
	change := make([]float64, r.d)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%every == 0 {
			average := mean(r.x)
			for k := range r.part(t, every, parts) {
				change[k] = o.phi[k] - average[k]
			}
		}
		if taken := t - delay; taken >= 0 && (taken+1)%every == 0 {
			for k := range r.part(taken, every, parts) {
				o.b[k] = o.mu*o.b[k] + change[k]
				o.phi[k] -= o.rate * (change[k] + o.mu*o.b[k])
				for i := range r.x {
					r.x[i][k] = (1-own)*o.phi[k] + own*r.x[i][k]
				}
			}
		}
	}
}

// part yields the coordinates of the part of iteration t.
func (r *recursion) part(t, every, parts int) iter.Seq[int] {
	return func(yield func(k int) bool) {
		f := t / every % parts
		for k := r.d * f / parts; k < r.d*(f+1)/parts && yield(k); k++ {
		}
	}
}

// sparta averages the coordinates of a mask that all agents have in common.
func (r *recursion) sparta() {
	every := one(r, "local-steps", 1, 2)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%every == 0 {
			r.average(r.mask.Draw(nil, t, 0, 0))
		}
	}
}

func (r *recursion) spartaDiLoCo() {
	every, h, o := one(r, "local-steps", 1, 2), param(r, "outer_steps", 4), r.newOuter()
	for t := range r.times(1) {
		switch r.x = r.stepAll(nil); {
		case (t+1)%h == 0:
			o.step(r.x, 0, r.d)
		case (t+1)%every == 0:
			r.average(r.mask.Draw(nil, t, 0, 0))
		}
	}
}

// average sets coordinates of all models to their mean.
func (r *recursion) average(coordinates []uint32) {
	m := mean(r.x)
	for _, k := range coordinates {
		for i := range r.x {
			r.x[i][k] = m[k]
		}
	}
}

// noloco moves slow models phi, with momenta m, by the means of pairs at the ends of rounds.
func (r *recursion) noloco() {
	h, rate, mu := one(r, "local-steps", 2, 4), param(r, "outer_lr", 0.7, 0.6), param(r, "outer_momentum", 0.5, 0.3)
	pull := rate
	if pick(r, false, true) {
		pull = param(r, "pull", 0.8)
	}
	phi, m := slices.Clone(r.x), zeroes(r.n, r.d)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h > 0 {
			continue
		}
		partner := make([]int, r.n)
		for i := range partner {
			partner[i] = i
		}
		r.exchanges(t/h, func(e dist.Event, _ float64) { partner[e.From], partner[e.To] = e.To, e.From })
		next := zeroes(r.n, r.d)
		for i, j := range partner {
			moved := plus(plus(r.x[i], -1, phi[i]), 1, plus(r.x[j], -1, phi[j]))
			diff := plus(phi[i], -1, phi[j])
			m[i] = plus(plus(scaled(mu, m[i]), rate/2, moved), -pull/2, diff)
			next[i] = plus(phi[i], 1, m[i])
		}
		phi, r.x = next, slices.Clone(next)
	}
}

// gasloc averages y, which is rate of the way from the slow model phi to the model after a round.
func (r *recursion) gasloc() {
	h, rate, mu := one(r, "local-steps", 2, 4), param(r, "outer_lr", 0.7, 0.6), param(r, "outer_momentum", 0.5, 0.3)
	r.gamma = one(r, "gamma", 0.5, 0.4)
	phi, past := slices.Clone(r.x), slices.Clone(r.x)
	for t := range r.times(1) {
		if r.x = r.stepAll(nil); (t+1)%h > 0 {
			continue
		}
		y := zeroes(r.n, r.d)
		for i := range y {
			y[i] = plus(phi[i], rate, plus(r.x[i], -1, phi[i]))
		}
		pull := r.differences(t/h, y, false)
		for i := range y {
			phi[i] = plus(plus(y[i], -r.gamma, pull[i]), mu, plus(y[i], -1, past[i]))
		}
		past, r.x = y, slices.Clone(phi)
	}
}
