//go:build !windows

package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"fspda/dist"
	"fspda/internal/rng"
)

// Recursions of methods that send compressed vectors. A compressor decides: which coordinates are
// the largest, to which level or lattice point a number is rounded, which sign it has. Where the
// number is so near to another outcome that the rounding of float32 decides, the recursion takes
// the outcome that the program's vectors show, one of those that are possible. [recursion.compare]
// limits how many such ties there are.

// rounding is more than the error of a number of a model in float32 after some iterations.
const rounding = 1e-7

// decide returns one of the possible outcomes at coordinate k.
type decide func(k int, outcomes ...float64) float64

// deciding returns a decide that chooses the outcome nearest to the program's.
func (r *recursion) deciding(program func(k int) float64) decide {
	return func(k int, outcomes ...float64) float64 {
		r.ties++
		got := program(k)
		return slices.MinFunc(outcomes, func(a, b float64) int { return cmp.Compare(math.Abs(a-got), math.Abs(b-got)) })
	}
}

// compressor is what a method with public copies sends.
type compressor struct {
	kind   string
	levels float64
	// blocks are the lengths of the parts of a vector that have norms of their own.
	blocks []int
	random rng.Stream
}

// newCompressor draws one of the compressors with its settings.
func (r *recursion) newCompressor(specs ...string) compressor {
	spec := one(r, "compress", specs...)
	if spec != "identity" && spec != "randk" {
		r.iterations = 5 // each may need a run
	}
	c := compressor{kind: spec, blocks: r.tensors(), random: rng.New(r.seed, "quant")}
	if name, levels, ok := strings.Cut(strings.TrimSuffix(spec, ")"), "("); ok {
		c.kind = name
		fmt.Sscan(levels, &c.levels)
	}
	switch c.kind {
	case "randk":
		r.masked("randk", "stratified", "randk-per-layer")
	case "topk":
		r.masked("randk")
	case "qsgd", "qsgd-scaled", "sign":
		if one(r, "norms", "tensor", "flat") == "flat" {
			c.blocks = []int{r.d}
		}
	}
	return c
}

// publish adds to the public copies of all agents that send at t what they send: the compressed
// difference of v and their copy. It is message number which of the iteration. The program's copies
// have the given name.
func (r *recursion) publish(c compressor, t, which int, name string, v, copies [][]float64) {
	sends := func(int) bool { return len(r.process.Active(nil, t)) > 0 }
	if r.process.Broadcasts() {
		senders := r.process.Senders(nil, t)
		sends = func(i int) bool { return slices.Contains(senders, i) }
	}
	for i := range copies {
		if sends(i) {
			copies[i] = plus(copies[i], 1, r.movesOf(c, t, [2]int{i, i}, which, v[i], copies[i], name))
		}
	}
}

// movesOf returns the compressed difference of v and its copy. The program's copy is the vector of
// that name of agent of[0], for whom it may be sent to of[1] alone.
func (r *recursion) movesOf(c compressor, t int, of [2]int, which int, v, copied []float64, name string) []float64 {
	var program []float64
	tie := r.deciding(func(k int) float64 {
		if program == nil {
			program = r.after(t+1, of[0], name)
		}
		return program[k] - copied[k]
	})
	return r.compress(c, t, of, which, plus(v, -1, copied), tie)
}

// saCopies is FSPDA-SA over compressed copies, which start at the first model.
func (r *recursion) saCopies() {
	c := r.newCompressor("randk", "topk", "qsgd(255)", "qsgd-scaled(63)", "sign", "identity")
	copies := map[[2]int][]float64{}
	for i := range r.n {
		for _, j := range r.graph.Neighbours(i) {
			copies[[2]int{i, j}] = r.x[i]
		}
	}
	r.descentAscent(func(t int) [][]float64 {
		pulls := zeroes(r.n, r.d)
		r.exchanges(t, func(e dist.Event, _ float64) {
			ends := [2][2]int{{e.From, e.To}, {e.To, e.From}}
			for _, of := range ends {
				i, j := of[0], of[1]
				which := 1 + slices.Index(r.graph.Neighbours(i), j)
				q := r.movesOf(c, t, of, which, r.x[i], copies[of], fmt.Sprintf("edge%d.0", j))
				copies[of] = plus(copies[of], 1, q)
			}
			apart := plus(copies[ends[0]], -1, copies[ends[1]])
			pulls[e.From] = plus(pulls[e.From], 1, apart)
			pulls[e.To] = plus(pulls[e.To], -1, apart)
		})
		return pulls
	})
}

// compress returns Q(v) of agent of[0], for all or for of[1] alone.
func (r *recursion) compress(c compressor, t int, of [2]int, which int, v []float64, tie decide) []float64 {
	q := make([]float64, len(v))
	if dot(v, v) == 0 { // a copy that starts at the model
		return q
	}
	switch c.kind {
	case "identity":
		return v
	case "randk":
		for _, k := range r.mask.Draw(nil, t, min(of[0], of[1]), max(of[0], of[1])) {
			q[k] = v[k]
		}
		return q
	case "topk":
		r.largest(q, v, all(len(v)), r.mask.Len(), rounding, tie)
		return q
	}
	s := c.random.Sub(uint64(t), uint64(of[0]))
	if which > 0 {
		s = c.random.Sub(uint64(t), uint64(of[0]), uint64(which))
	}
	from := 0
	for _, m := range c.blocks {
		block := v[from : from+m]
		r.decisions += m
		if c.kind == "sign" {
			signs(q[from:], block, func(k int, of ...float64) float64 { return tie(from+k, of...) })
		} else {
			c.quantize(q[from:], block, &s, func(k int, of ...float64) float64 { return tie(from+k, of...) })
		}
		from += m
	}
	return q
}

// largest copies the k numbers of v of largest magnitude among those at the given places.
func (r *recursion) largest(q, v []float64, places []int, k int, near float64, tie decide) {
	if r.decisions += len(places); len(places) == 0 {
		return
	}
	order := slices.Clone(places)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(v[b]), math.Abs(v[a])) })
	bar := math.Abs(v[order[min(k, len(order))-1]])
	var open []int
	for _, at := range order {
		switch m := math.Abs(v[at]); {
		case k >= len(order) || m > bar+near:
			q[at] = v[at]
			k--
		case m >= bar-near:
			open = append(open, at)
		}
	}
	for _, at := range open {
		if q[at] = v[at]; k < len(open) {
			q[at] = tie(at, 0, v[at])
		}
	}
}

// signs sets q to the mean magnitude of v with the signs of its numbers.
func signs(q, v []float64, tie decide) {
	sum := 0.0
	for _, x := range v {
		sum += math.Abs(x) / float64(len(v))
	}
	for k, x := range v {
		switch q[k] = sum; {
		case math.Abs(x) < rounding:
			q[k] = tie(k, sum, -sum)
		case x < 0:
			q[k] = -sum
		}
	}
}

// quantize sets q to levels of the norm of v, of which the stream draws one of the two nearest.
func (c compressor) quantize(q, v []float64, s *rng.Stream, tie decide) {
	norm, m := math.Sqrt(dot(v, v)), float64(len(v))
	unit := norm / c.levels
	if c.kind == "qsgd-scaled" {
		unit /= 1 + min(m/(c.levels*c.levels), math.Sqrt(m)/c.levels)
	}
	for k, x := range v {
		at := c.levels*math.Abs(x)/norm + s.Float64()
		outcome := func(level float64) float64 { return math.Copysign(min(level, c.levels)*unit, x) }
		low, near := math.Floor(at), c.levels*rounding/norm
		switch q[k] = outcome(low); {
		case at-low < near && low > 0:
			q[k] = tie(k, outcome(low-1), outcome(low))
		case at-low > 1-near:
			q[k] = tie(k, outcome(low), outcome(low+1))
		}
	}
}

// all lists the numbers below n.
func all(n int) (list []int) {
	for k := range n {
		list = append(list, k)
	}
	return list
}

// choco is CHOCO-SGD with one of the compressors.
func choco(specs ...string) func(r *recursion) {
	return func(r *recursion) {
		c, theta, early := r.newCompressor(specs...), one(r, "theta", 0.05, 0.08), one(r, "early", false, true)
		copies := zeroes(r.n, r.d)
		for t := range r.times(1) {
			y := r.stepAll(nil)
			if early {
				r.publish(c, t, 0, "xhat", r.x, copies)
			} else {
				r.publish(c, t, 0, "xhat", y, copies)
			}
			w := r.fixed(copies)
			for i := range r.x {
				r.x[i] = plus(y[i], theta, plus(w[i], -1, copies[i]))
			}
		}
	}
}

// beer tracks gradients with v and has public copies of models, h, and of trackers, g.
func (r *recursion) beer() {
	c := r.newCompressor("randk", "topk", "qsgd(255)", "qsgd-scaled(63)", "sign", "identity")
	theta := one(r, "theta", 0.05, 0.08)
	v, old, h, g := zeroes(r.n, r.d), zeroes(r.n, r.d), zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.times(1) {
		r.publish(c, t, 0, "h", r.x, h)
		for i, x := range r.x {
			now := r.grad(i, x)
			v[i] = plus(plus(v[i], 1, now), -1, old[i])
			old[i] = now
		}
		r.publish(c, t, 1, "g", v, g)
		wh, wg := r.fixed(h), r.fixed(g)
		for i, x := range r.x {
			r.x[i] = plus(plus(x, theta, plus(wh[i], -1, h[i])), -r.alpha, v[i])
			v[i] = plus(v[i], theta, plus(wg[i], -1, g[i]))
		}
	}
}

// ticopd is FSPDA-SA with the Laplacian I - W on public copies, which are compared before they
// move.
func (r *recursion) ticopd() {
	c, theta := r.newCompressor("randk", "topk", "qsgd(255)", "qsgd-scaled(63)", "sign", "identity"),
		one(r, "theta", 0.05, 0.08)
	r.etaMax = one(r, "eta", 0.02, 0.01)
	r.eta = r.etaMax
	beta, lambda, copies := one(r, "beta", 1.0, 0.5), zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.times(1) {
		w, correction := r.fixed(copies), zeroes(r.n, r.d)
		for i := range correction {
			correction[i] = scaled(r.eta/r.alpha, lambda[i])
		}
		r.x = r.stepAll(correction)
		for i := range r.x {
			apart := plus(copies[i], -1, w[i])
			r.x[i], lambda[i] = plus(r.x[i], -theta, apart), plus(lambda[i], beta, apart)
		}
		r.publish(c, t, 0, "xhat", r.x, copies)
	}
}

// docom tracks the estimates v by y, and has public copies of trackers, g, and of models, h.
func (r *recursion) docom() {
	c := r.newCompressor("randk", "topk", "qsgd(255)", "qsgd-scaled(63)", "sign", "identity")
	theta, newest := one(r, "theta", 0.05, 0.08), one(r, "a-x", 0.1, 0.4)
	v, y, old, g, h := zeroes(r.n, r.d), zeroes(r.n, r.d), r.x, zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.times(1) {
		for i, x := range r.x {
			now := r.grad(i, x)
			if t > 0 {
				now = plus(now, 1-newest, plus(v[i], -1, r.grad(i, old[i])))
			}
			y[i], v[i] = plus(plus(y[i], 1, now), -1, v[i]), now
		}
		r.publish(c, t, 0, "g", y, g)
		w, next := r.fixed(g), zeroes(r.n, r.d)
		for i, x := range r.x {
			y[i] = plus(y[i], theta, plus(w[i], -1, g[i]))
			next[i] = plus(x, -r.alpha, y[i])
		}
		r.publish(c, t, 1, "h", next, h)
		w = r.fixed(h)
		old = r.x
		for i := range next {
			next[i] = plus(next[i], theta, plus(w[i], -1, h[i]))
		}
		r.x = next
	}
}
