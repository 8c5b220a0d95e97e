//go:build !windows

package cli

import (
	"math"
	"slices"

	"fspda/dist"
	"fspda/internal/rng"
)

// Recursions of methods that average models with their neighbours': DSGD and its momenta, push-sum,
// RelaySum and PowerGossip.

// dsgd combines then adapts, or the other way round, with weights theta or those of Metropolis.
func (r *recursion) dsgd() {
	atc, metropolis, theta := one(r, "order", "cta", "atc") == "atc", true, 1.0
	if one(r, "weights", "constant", "metropolis") == "constant" {
		metropolis, theta = false, one(r, "theta", 0.3, 0.5)
	}
	for t := range r.times(1) {
		x, next := r.x, r.stepAll(nil)
		if atc {
			x = next
		}
		pull := r.differences(t, x, metropolis)
		for i := range next {
			next[i] = plus(next[i], -theta, pull[i])
		}
		r.x = next
	}
}

func (r *recursion) dmsgd() {
	m := zeroes(r.n, r.d)
	for t := range r.times(1) {
		for i, x := range r.x {
			m[i] = plus(r.grad(i, x), r.mu, m[i])
			r.x[i] = plus(x, -r.alpha, m[i])
		}
		r.x, m = r.mixed(t, r.x), r.mixed(t, m)
	}
}

// quasiGlobal has rounds of h local steps. past follows the motion of the averaged model.
func (r *recursion) quasiGlobal() {
	r.mu = one(r, "momentum", 0.2, 0.3)
	h := one(r, "local-steps", 1, 2)
	past, start := zeroes(r.n, r.d), r.x
	for t := range r.times(h) {
		if t%h == 0 {
			start = r.x
		}
		next := zeroes(r.n, r.d)
		for i, x := range r.x {
			g := r.grad(i, x)
			u := plus(g, r.mu, past[i])
			if r.optimizer == "nesterov" {
				u = plus(g, r.mu, u)
			}
			next[i] = plus(x, -r.alpha, u)
		}
		if r.x = next; (t+1)%h > 0 {
			continue
		}
		r.x = r.mixed(t/h, r.x)
		for i := range past {
			moved := plus(start[i], -1, r.x[i])
			past[i] = plus(scaled(r.mu, past[i]), (1-r.mu)/(r.alpha*float64(h)), moved)
		}
	}
}

func (r *recursion) decentlam() {
	m := zeroes(r.n, r.d)
	for t := range r.times(1) {
		y := zeroes(r.n, r.d)
		for i, x := range r.x {
			y[i] = plus(x, -r.alpha, r.grad(i, x))
		}
		y = r.mixed(t, y)
		for i, x := range r.x {
			m[i] = plus(scaled(1/r.alpha, plus(x, -1, y[i])), r.mu, m[i])
			r.x[i] = plus(x, -r.alpha, m[i])
		}
	}
}

// push is push-sum: an agent divides what it has, w·z - alpha·u and its weight w, among itself and
// those to which it sends. The model is z.
func (r *recursion) push() {
	w := make([]float64, r.n)
	for i := range w {
		w[i] = 1
	}
	for t := range r.times(1) {
		arcs := r.process.(dist.Directed).Arcs(nil, t)
		for i := range r.n {
			arcs = append(arcs, dist.Arc{From: i, To: i})
		}
		parts := make([]float64, r.n)
		for _, a := range arcs {
			parts[a.From]++
		}
		sums, weights := zeroes(r.n, r.d), make([]float64, r.n)
		for _, a := range arcs {
			weights[a.To] += w[a.From] / parts[a.From]
		}
		for i, z := range r.x {
			own := plus(scaled(w[i], z), -1, r.descend(i, z, nil))
			for _, a := range arcs {
				if a.From == i {
					sums[a.To] = plus(sums[a.To], 1/parts[i], own)
				}
			}
		}
		w = weights
		for i := range r.x {
			r.x[i] = scaled(1/w[i], sums[i])
		}
	}
}

// relay is RelaySum: a message has the sum of the sender's step and of what it heard last from its
// other neighbours, and the number of models in it.
func (r *recursion) relay() {
	counts := param(r, "normalize", "agents", "counts") == "counts"
	type message struct {
		sum    []float64
		models float64
	}
	start, heard := slices.Clone(r.x), map[[2]int]message{} // by sender and receiver
	for range r.times(1) {
		next, h := map[[2]int]message{}, r.stepAll(nil)
		sum := func(of map[[2]int]message, i, without int) message {
			m := message{h[i], 1}
			for _, k := range r.graph.Neighbours(i) {
				if past, ok := of[[2]int{k, i}]; ok && k != without {
					m = message{plus(m.sum, 1, past.sum), m.models + past.models}
				}
			}
			return m
		}
		for i := range r.n {
			for _, j := range r.graph.Neighbours(i) {
				next[[2]int{i, j}] = sum(heard, i, j)
			}
		}
		heard = next
		for i := range r.n {
			m := sum(heard, i, -1)
			if !counts {
				m = message{plus(m.sum, float64(r.n)-m.models, start[i]), float64(r.n)}
			}
			r.x[i] = scaled(1/m.models, m.sum)
		}
	}
}

func (r *recursion) powerGossip() {
	theta := param(r, "theta", 1, 0.5)
	of := map[int]*sketch{}
	for t := range r.times(1) {
		r.x = r.stepAll(nil)
		pull := r.sketched(t, r.x, of, true)
		for i := range r.x {
			r.x[i] = plus(r.x[i], -theta, pull[i])
		}
	}
}

// sketch is what both ends of an edge know: the directions of the rows and of the columns of the
// weights, and the number of the edge's exchanges.
type sketch struct {
	a, s []float64
	t    int
}

// sketched returns Σ w·D for each agent, with D what the sketches of the edges that are active at t
// tell of own - other: of the weights a matrix of rank 1, and the biases as they are.
func (r *recursion) sketched(t int, v [][]float64, of map[int]*sketch, metropolis bool) [][]float64 {
	rows, out := r.classes, zeroes(r.n, r.d)
	cols := (r.d - rows) / rows
	r.exchanges(t, func(e dist.Event, w float64) {
		if !metropolis {
			w = 1
		}
		i, j := min(e.From, e.To), max(e.From, e.To)
		diff := plus(v[i], -1, v[j])
		k := of[e.Edge]
		if k == nil {
			k = &sketch{a: make([]float64, rows), s: make([]float64, cols)}
			of[e.Edge] = k
		}
		if k.t%2 == 0 {
			k.a, k.s = r.unit(k.a, k.t, i, j), make([]float64, cols)
		} else {
			k.s, k.a = r.unit(k.s, k.t, i, j), make([]float64, rows)
		}
		for at, x := range diff[:rows*cols] {
			if k.t%2 == 0 {
				k.s[at%cols] += x * k.a[at/cols]
			} else {
				k.a[at/cols] += x * k.s[at%cols]
			}
		}
		k.t++
		for at := range diff[:rows*cols] {
			diff[at] = k.a[at/cols] * k.s[at%cols]
		}
		out[i], out[j] = plus(out[i], w, diff), plus(out[j], -w, diff)
	})
	return out
}

// unit divides a direction by its norm. One of norm 0 is drawn anew, the same at both ends.
func (r *recursion) unit(v []float64, t, i, j int) []float64 {
	norm := math.Sqrt(dot(v, v))
	if norm == 0 {
		s := rng.New(r.seed, "mask", uint64(t), uint64(i), uint64(j), 0)
		for k := range v {
			v[k] = s.Norm()
		}
		norm = math.Sqrt(dot(v, v))
	}
	return scaled(1/norm, v)
}
