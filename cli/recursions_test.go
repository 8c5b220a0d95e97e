package cli

import (
	"math"
	"slices"
)

// replayedMethod is a method with its recursion.
type replayedMethod struct {
	algo, form   string
	optimizers   []string // that it takes; nil: sgd
	places       bool     // its correction may be placed
	tracks       bool     // it tracks gradients
	masks        bool
	collective   bool // no graph
	rounds       bool // edges follow local_steps
	graph, edges string
	args         []string
	signs        bool // steps are signs
	run          func(r *recursion)
}

var anyOf = []string{"sgd", "heavy-ball", "nesterov", "adamw"}

// replayed lists the methods with what they state, one agent after the other.
var replayed = []replayedMethod{
	{algo: "dsgd", form: "cta", optimizers: anyOf, masks: true, args: []string{"--theta", "0.3"}, edges: "matching",
		run: func(r *recursion) { r.dsgd(0.3, false) }},
	{algo: "dsgd", form: "atc", optimizers: anyOf, args: []string{"--weights", "metropolis", "--order", "atc",
		"--density", "1"}, run: func(r *recursion) { r.dsgd(0, true) }},
	{algo: "fspda-sa", optimizers: anyOf, places: true, masks: true, edges: "matching", args: dual,
		run: (*recursion).sa},
	{algo: "fspda-storm", masks: true, edges: "matching", args: dual, run: (*recursion).storm},
	{algo: "dmsgd", optimizers: []string{"heavy-ball"}, run: (*recursion).dmsgd},
	{algo: "decentlam", optimizers: []string{"heavy-ball"}, graph: "complete", edges: "full",
		run: (*recursion).decentlam},
	{algo: "dsgt", form: "semi-atc", optimizers: anyOf, tracks: true,
		run: func(r *recursion) { r.tracking("semi-atc") }},
	{algo: "dsgt", form: "cta", optimizers: anyOf, tracks: true, args: []string{"--param", "form=cta"},
		run: func(r *recursion) { r.tracking("cta") }},
	{algo: "diging", optimizers: anyOf, tracks: true, run: func(r *recursion) { r.tracking("cta") }},
	{algo: "next", optimizers: anyOf, tracks: true, run: func(r *recursion) { r.tracking("semi-atc") }},
	{algo: "gt-dsgdm", optimizers: []string{"heavy-ball", "nesterov"}, run: func(r *recursion) {
		r.corrected = true
		r.tracking("semi-atc")
	}},
	{algo: "momentum-tracking", optimizers: []string{"heavy-ball", "nesterov"},
		run: func(r *recursion) { r.tracking("cta") }},
	{algo: "gt-adam", optimizers: []string{"gt-adam"}, run: func(r *recursion) {
		r.corrected = true
		r.tracking("cta")
	}},
	{algo: "d2", optimizers: anyOf, places: true, graph: "complete", edges: "full",
		run: func(r *recursion) { r.led(1, 1) }},
	{algo: "exact-diffusion", optimizers: anyOf, places: true, edges: "full",
		run: func(r *recursion) { r.led(1, 0.5) }},
	{algo: "edm", optimizers: []string{"heavy-ball", "nesterov"}, graph: "complete", edges: "full",
		run: func(r *recursion) { r.led(1, 1) }},
	{algo: "led", optimizers: anyOf, places: true, graph: "complete", edges: "full", rounds: true,
		args: []string{"--local-steps", "2"}, run: func(r *recursion) { r.led(2, 1) }},
	{algo: "kgt", optimizers: anyOf, edges: "full", rounds: true, args: []string{"--local-steps", "2"},
		run: func(r *recursion) { r.kgt(2) }},
	{algo: "scaffnew", optimizers: []string{"sgd", "heavy-ball", "nesterov"}, graph: "complete", edges: "full",
		run: (*recursion).scaffnew},
	{algo: "extra", edges: "full", run: (*recursion).extra},
	{algo: "prox-gpda", edges: "full", run: (*recursion).prox},
	{algo: "choco", optimizers: anyOf, edges: "full", args: []string{"--compress", "identity", "--theta", "0.4"},
		run: (*recursion).choco},
	{algo: "local-sgd", optimizers: anyOf, collective: true, args: []string{"--local-steps", "2"},
		run: func(r *recursion) { r.diloco(1, 0) }},
	{algo: "diloco", optimizers: anyOf, collective: true, args: []string{"--local-steps", "2"},
		run: func(r *recursion) { r.diloco(0.7, 0.9) }},
	{algo: "sparta", optimizers: anyOf, collective: true, args: []string{"--density", "1", "--mask", "all"},
		run: func(r *recursion) { r.steps = 1; r.diloco(1, 0) }},
	{algo: "sgd", optimizers: anyOf, collective: true, run: (*recursion).sgd},
	{algo: "demo", optimizers: []string{"demo"}, collective: true, signs: true, run: (*recursion).demo},
}

var dual = []string{"--eta", "0.02", "--gamma", "0.3", "--beta", "1"}

// stepAll returns x - alpha·(u + c) of all agents; c may be nil.
func (r *recursion) stepAll(c [][]float64) (next [][]float64) {
	for i, x := range r.x {
		var of []float64
		if c != nil {
			of = c[i]
		}
		next = append(next, plus(x, -1, r.descend(i, x, of)))
	}
	return next
}

func (r *recursion) dsgd(theta float64, atc bool) {
	for t := range r.iterations {
		if atc {
			r.x = r.mixed(t, r.stepAll(nil))
			continue
		}
		pull := r.differences(t, r.x, false)
		r.x = r.stepAll(nil)
		for i := range r.x {
			r.x[i] = plus(r.x[i], -theta, pull[i])
		}
	}
}

func (r *recursion) sa() {
	lambda := zeroes(r.n, r.d)
	for t := range r.iterations {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(r.eta/r.alpha, lambda[i])
		}
		pull := r.differences(t, r.x, false)
		r.x = r.stepAll(c)
		for i := range r.x {
			r.x[i] = plus(r.x[i], -r.gamma, pull[i])
			lambda[i] = plus(lambda[i], 1, pull[i])
		}
	}
}

func (r *recursion) storm() {
	const a = 0.1 // a_x and a_lambda
	lambda, old := zeroes(r.n, r.d), r.x
	mg, mc := zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.iterations {
		now, before := r.differences(t, r.x, false), r.differences(t, old, false)
		next := zeroes(r.n, r.d)
		for i, x := range r.x {
			g := r.grad(i, x)
			if t == 0 {
				mg[i], mc[i] = g, now[i]
			} else {
				mg[i] = plus(g, 1-a, plus(mg[i], -1, r.grad(i, old[i])))
				mc[i] = plus(now[i], 1-a, plus(mc[i], -1, before[i]))
			}
			next[i] = plus(plus(plus(x, -r.alpha, mg[i]), -r.gamma, mc[i]), -r.eta, lambda[i])
			lambda[i] = plus(lambda[i], 1, mc[i])
		}
		old, r.x = r.x, next
	}
}

func (r *recursion) dmsgd() {
	m := zeroes(r.n, r.d)
	for t := range r.iterations {
		for i, x := range r.x {
			m[i] = plus(r.grad(i, x), r.mu, m[i])
			r.x[i] = plus(x, -r.alpha, m[i])
		}
		r.x, m = r.mixed(t, r.x), r.mixed(t, m)
	}
}

func (r *recursion) decentlam() {
	m := zeroes(r.n, r.d)
	for t := range r.iterations {
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

// tracking has y = W y + g - g of before, and x = W x - alpha·y (cta) or W (x - alpha·y).
func (r *recursion) tracking(form string) {
	y, old := zeroes(r.n, r.d), zeroes(r.n, r.d)
	for t := range r.iterations {
		u := zeroes(r.n, r.d)
		for i, x := range r.x {
			g := r.grad(i, x)
			if !r.corrected {
				g = r.direct(i, g, x)
			}
			y[i] = plus(plus(y[i], 1, g), -1, old[i])
			old[i] = g
			u[i] = y[i]
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
		y = r.mixed(t, y)
	}
}

// led has rounds of tau steps; part is the share of W - I that is taken.
func (r *recursion) led(tau int, part float64) {
	y := zeroes(r.n, r.d)
	for t := range r.iterations {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(1/(r.alpha*float64(tau)), y[i])
		}
		r.x = r.stepAll(c)
		if (t+1)%tau > 0 {
			continue
		}
		pull := r.differences(t, r.x, true)
		for i := range r.x {
			r.x[i], y[i] = plus(r.x[i], -part, pull[i]), plus(y[i], part, pull[i])
		}
	}
}

func (r *recursion) kgt(k int) {
	c, start := zeroes(r.n, r.d), slices.Clone(r.x)
	for t := range r.iterations {
		r.x = r.stepAll(c)
		if (t+1)%k > 0 {
			continue
		}
		z := zeroes(r.n, r.d)
		for i, x := range r.x {
			z[i] = scaled(1/(float64(k)*r.alpha), plus(start[i], -1, x))
		}
		pull := r.differences(t, z, true)
		for i := range c {
			c[i] = plus(c[i], -1, pull[i])
		}
		r.x = r.mixed(t, r.x)
		start = slices.Clone(r.x)
	}
}

// scaffnew averages in every iteration here, p = 1.
func (r *recursion) scaffnew() {
	h := zeroes(r.n, r.d)
	for t := range r.iterations {
		c := zeroes(r.n, r.d)
		for i := range c {
			c[i] = scaled(-1, h[i])
		}
		r.x = r.stepAll(c)
		pull := r.differences(t, r.x, true)
		for i := range r.x {
			r.x[i], h[i] = plus(r.x[i], -1, pull[i]), plus(h[i], -1/r.alpha, pull[i])
		}
	}
}

// extra is the published form, of two iterations.
func (r *recursion) extra() {
	var old, g0 [][]float64
	for t := range r.iterations {
		g := zeroes(r.n, r.d)
		for i, x := range r.x {
			g[i] = r.grad(i, x)
		}
		wx, next := r.mixed(t, r.x), zeroes(r.n, r.d)
		for i := range next {
			if t == 0 {
				next[i] = plus(wx[i], -r.alpha, g[i])
			}
		}
		if t > 0 {
			wo := r.mixed(t, old)
			for i, x := range r.x {
				half := scaled(0.5, plus(old[i], 1, wo[i]))
				next[i] = plus(plus(plus(x, 1, wx[i]), -1, half), -r.alpha, plus(g[i], -1, g0[i]))
			}
		}
		old, g0, r.x = r.x, g, next
	}
}

func (r *recursion) prox() {
	least := math.MaxInt
	for i := range r.n {
		least = min(least, r.graph.Degree(i))
	}
	rho := 1 / (2 * r.alpha * float64(least))
	lambda := zeroes(r.n, r.d)
	for t := range r.iterations {
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

// choco compresses nothing here.
func (r *recursion) choco() {
	for t := range r.iterations {
		y := r.stepAll(nil)
		w := r.mixed(t, y)
		for i := range r.x {
			r.x[i] = plus(y[i], 0.4, plus(w[i], -1, y[i]))
		}
	}
}

func (r *recursion) diloco(rate, mu float64) {
	phi, b := slices.Clone(r.x[0]), make([]float64, r.d)
	for t := range r.iterations {
		r.x = r.stepAll(nil)
		if (t+1)%int(r.steps) > 0 {
			continue
		}
		d := plus(phi, -1, mean(r.x))
		b = plus(d, mu, b)
		phi = plus(phi, -rate, plus(d, mu, b))
		for i := range r.x {
			r.x[i] = slices.Clone(phi)
		}
	}
}

// sgd is one agent with the batches of all: one clipping and one optimizer.
func (r *recursion) sgd() {
	x := r.x[0]
	for range r.iterations {
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

// demo sends 32 coefficients of each chunk of 10 × 56 weights, and all of the biases.
func (r *recursion) demo() {
	x, e := r.x[0], zeroes(r.n, r.d)
	inputs := (r.d - r.classes) / r.classes
	for range r.iterations {
		sum, count := make([]float64, r.d), make([]float64, r.d)
		for i := range e {
			e[i] = plus(scaled(0.999, e[i]), r.alpha, r.grad(i, x))
			kept := make([]float64, r.d)
			for from := 0; from < inputs; from += 56 {
				largest(kept, transformed(e[i], inputs, from, r.classes, 56, false), inputs, from, r.classes)
			}
			copy(kept[inputs*r.classes:], transformed(e[i][inputs*r.classes:], r.classes, 0, 1, r.classes, false))
			for k, v := range kept {
				if v != 0 {
					sum[k], count[k] = sum[k]+v, count[k]+1
				}
			}
			e[i] = plus(e[i], -1, r.inverse(kept))
		}
		for k := range sum {
			sum[k] /= max(1, count[k])
		}
		x = scaled(1-r.alpha*r.decay, x)
		for k, v := range r.inverse(sum) {
			if v > 0 {
				x[k] -= r.alpha
			} else if v < 0 {
				x[k] += r.alpha
			}
		}
	}
	for i := range r.x {
		r.x[i] = x
	}
}

// largest sets the 32 largest coefficients of a chunk of rows × 56 in kept.
func largest(kept, c []float64, inputs, from, rows int) {
	order := make([]int, len(c))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if math.Abs(c[a]) > math.Abs(c[b]) {
			return -1
		}
		return 1
	})
	for _, k := range order[:min(32, len(order))] {
		kept[(k/56)*inputs+from+k%56] = c[k]
	}
}

// inverse transforms the coefficients of all chunks back.
func (r *recursion) inverse(c []float64) []float64 {
	out, inputs := make([]float64, r.d), (r.d-r.classes)/r.classes
	for from := 0; from < inputs; from += 56 {
		for k, v := range transformed(c, inputs, from, r.classes, 56, true) {
			out[(k/56)*inputs+from+k%56] = v
		}
	}
	copy(out[inputs*r.classes:], transformed(c[inputs*r.classes:], r.classes, 0, 1, r.classes, true))
	return out
}

// transformed is the orthonormal cosine transform of rows × cols numbers of v, whose rows are inputs
// apart, or its inverse.
func transformed(v []float64, inputs, from, rows, cols int, inverse bool) []float64 {
	basis := func(n, k, j int) float64 {
		f := math.Sqrt(2 / float64(n))
		if k == 0 {
			f = math.Sqrt(1 / float64(n))
		}
		return f * math.Cos(math.Pi*(float64(j)+0.5)*float64(k)/float64(n))
	}
	at := func(n, k, j int) float64 {
		if inverse {
			return basis(n, j, k)
		}
		return basis(n, k, j)
	}
	half, out := make([]float64, rows*cols), make([]float64, rows*cols)
	for a := range rows {
		for k := range cols {
			for j := range cols {
				half[a*cols+k] += at(cols, k, j) * v[a*inputs+from+j]
			}
		}
	}
	for k := range rows {
		for a := range rows {
			for b := range cols {
				out[k*cols+b] += at(rows, k, a) * half[a*cols+b]
			}
		}
	}
	return out
}
