package algo

import (
	"math"
	"testing"

	"fspda/internal/rng"
)

// stated is a recursion in the form of its paper: next returns the models of iteration t+1.
type stated struct {
	algo   func(mu float64) Algorithm
	static bool // for a fixed W only
	lazy   bool // that is (I+W)/2
	next   func(h *history) [][]float64
}

// The printed recursions of momentum, of bias removal and of gradient tracking, and the forms that the
// program keeps, on random graphs with a fixed matrix and with random active edges, with random
// step sizes and momenta and noisy gradients.
func TestStatedForms(t *testing.T) {
	for _, forms := range []map[string]stated{momentumForms, diffusionForms, trackingForms()} {
		for name, form := range forms {
			t.Run(name, func(t *testing.T) {
				forWorlds(t, func(t *testing.T, w world, q quadratics) {
					w.k = 0
					form.compare(t, w, q, true)
					if !form.static {
						form.compare(t, w, q, false)
					}
				})
			})
		}
	}
}

// compare runs both forms, on the whole graph if whole.
func (form stated) compare(t *testing.T, w world, q quadratics, whole bool) {
	t.Helper()
	s := rng.New(w.seed, "settings")
	h := newHistory(w)
	h.alpha, h.mu = 0.01+0.04*s.Float64(), 0.2+0.5*s.Float64()
	g := w.play(form.algo(h.mu), q, h.alpha, 0)
	if whole {
		g = w.static(form.algo(h.mu), q, h.alpha, 0, always)
		h.edges = func(int) [][2]int { return w.graph }
	}
	if form.lazy {
		fixed := g.fixed
		g.fixed, h.lazy = func(i, j int) float64 { return fixed(i, j) / 2 }, true
	}
	g.grad = noisy(q, w.seed, 0.3)
	for ; h.t < 80; h.t++ {
		for i := range w.n {
			g.grad(h.t, i, h.g[i], h.x[i])
		}
		next := form.next(h)
		h.lastX, h.lastG, h.x, h.g = h.x, h.g, next, zeros(w.n, w.d)
		g.step(t, h.t)
		for i := range w.n {
			if e := distance(h.x[i], g.x(i)); e > 1e-11 {
				t.Fatalf("iteration %d, agent %d: differ by %g", h.t, i, e)
			}
		}
	}
}

var momentumForms = map[string]stated{
	"dsgdm": {algo: func(mu float64) Algorithm { return DSGD{Metropolis: true, ATC: true, Descent: heavyBall(mu)} },
		next: func(h *history) [][]float64 { return h.w(h.add(1, h.x, -h.alpha, h.ball())) }},
	"dmsgd": {algo: func(mu float64) Algorithm { return DmSGD{Mu: mu} }, next: func(h *history) [][]float64 {
		next := h.w(h.add(1, h.x, -h.alpha, h.ball()))
		h.a = h.w(h.a)
		return next
	}},
	"qg-dsgdm": {algo: func(mu float64) Algorithm { return QG{Mu: mu} }, next: func(h *history) [][]float64 {
		next := h.w(h.add(1, h.x, -h.alpha*h.mu, h.a, -h.alpha, h.g))
		h.a = h.add(h.mu, h.a, (1-h.mu)/h.alpha, h.x, -(1-h.mu)/h.alpha, next)
		return next
	}},
	"qg-dsgdm-n": {algo: func(mu float64) Algorithm { return QG{Mu: mu, Nesterov: true} },
		next: func(h *history) [][]float64 { // u = g + mu·(mu·mh + g)
			next := h.w(h.add(1, h.x, -h.alpha*h.mu*h.mu, h.a, -h.alpha*(1+h.mu), h.g))
			h.a = h.add(h.mu, h.a, (1-h.mu)/h.alpha, h.x, -(1-h.mu)/h.alpha, next)
			return next
		}},
	"qg-dsgdm in rounds": {algo: func(mu float64) Algorithm { return QG{Mu: mu, H: 4} },
		next: func(h *history) [][]float64 {
			if h.t%4 == 0 {
				h.b = h.x // of the start of the round
			}
			next := h.add(1, h.x, -h.alpha*h.mu, h.a, -h.alpha, h.g)
			if (h.t+1)%4 == 0 {
				next = h.w(next)
				h.a = h.add(h.mu, h.a, (1-h.mu)/(4*h.alpha), h.b, -(1-h.mu)/(4*h.alpha), next)
			}
			return next
		}},
	"decentlam": {algo: func(mu float64) Algorithm { return DecentLaM{Mu: mu / 2} },
		next: func(h *history) [][]float64 {
			h.a = h.add(h.mu/2, h.a, 1/h.alpha, h.x, -1/h.alpha, h.w(h.add(1, h.x, -h.alpha, h.g)))
			return h.add(1, h.x, -h.alpha, h.a)
		}},
}

var diffusionForms = map[string]stated{
	"d2":              {algo: func(float64) Algorithm { return LED{Tau: 1} }, static: true, next: twoSteps},
	"exact diffusion": {algo: func(float64) Algorithm { return LED{Tau: 1} }, static: true, lazy: true, next: twoSteps},
	"edm": {algo: func(mu float64) Algorithm { return LED{Tau: 1, Descent: heavyBall(mu)} }, static: true,
		next: func(h *history) [][]float64 { h.g = h.ball(); return twoSteps(h) }},
	"edm nesterov": {algo: func(mu float64) Algorithm { return LED{Tau: 1, Descent: Descent{Opt: Nesterov{mu}}} },
		static: true, next: func(h *history) [][]float64 { h.g = h.add(1, h.g, h.mu, h.ball()); return twoSteps(h) }},
	"exact diffusion, adamw corrected": {algo: func(float64) Algorithm {
		return LED{Tau: 1, Descent: Descent{Opt: AdamW{0.9, 0.99, 1e-8}, Corrected: true}}
	}, static: true, lazy: true, next: func(h *history) [][]float64 { // c is h.q
		before := h.add(1, h.x, -h.alpha, h.adam(h.add(1, h.g, -1/h.alpha, h.q)))
		next := h.w(before)
		h.q = h.add(1, h.q, 1, next, -1, before)
		return next
	}},
}

// twoSteps is x' = W(2x - x_ - alpha·(g - g_)), and W(x - alpha·g) at first.
func twoSteps(h *history) [][]float64 {
	if h.t == 0 {
		return h.w(h.add(1, h.x, -h.alpha, h.g))
	}
	return h.w(h.add(2, h.x, -1, h.lastX, -h.alpha, h.g, h.alpha, h.lastG))
}

// trackingForms has each order of combining and adapting, of each optimizer behind the tracker
// (which then follows gradients) and before it.
func trackingForms() map[string]stated {
	all := map[string]stated{
		"momentum tracking, printed": {algo: func(mu float64) Algorithm { return DIGing{Descent: heavyBall(mu)} },
			next: func(h *history) [][]float64 {
				u := h.ball()
				next := h.add(1, h.w(h.x), -h.alpha, u, h.alpha, h.b)
				h.b = h.add(1, h.w(h.add(1, h.b, -1, u)), 1, u) // c
				return next
			}},
	}
	for form, of := range map[string]func(d Descent) Algorithm{
		"cta":      func(d Descent) Algorithm { return DIGing{Descent: d} },
		"semi-atc": func(d Descent) Algorithm { return NEXT{Descent: d} },
		"atc":      func(d Descent) Algorithm { return DSGT{Descent: d} },
	} {
		tracked := func(opt func(mu float64) Optimizer, behind bool,
			u func(h *history, v [][]float64) [][]float64) stated {
			return stated{algo: func(mu float64) Algorithm { return of(Descent{Opt: opt(mu), Corrected: behind}) },
				next: func(h *history) [][]float64 {
					if !behind {
						h.g = u(h, h.g)
					}
					y := h.track(form)
					step := y
					if behind {
						step = u(h, y)
					}
					return h.adapt(form, step)
				}}
		}
		ball := func(mu float64) Optimizer { return HeavyBall{mu} }
		asIs := func(_ *history, v [][]float64) [][]float64 { return v }
		all["dsgt "+form] = tracked(func(float64) Optimizer { return Plain{} }, true, asIs)
		all["gt-dsgdm "+form] = tracked(ball, true, (*history).ballOf)
		all["momentum tracking "+form] = tracked(ball, false, (*history).ballOf)
		all["adamw "+form] = tracked(func(float64) Optimizer { return AdamW{0.9, 0.99, 1e-8} }, true, (*history).adam)
		for _, most := range []float64{1e6, 1e-3} {
			all["gt-adam "+form+map[bool]string{true: ", limited"}[most < 1]] = tracked(
				func(float64) Optimizer { return GTAdam{0.9, 0.99, 1e-8, most} }, true,
				func(h *history, v [][]float64) [][]float64 { return h.adamOfTrackers(v, most) })
		}
	}
	return all
}

// history is the vectors of all agents that stated forms of recursions use.
type history struct {
	t                              int
	alpha, mu                      float64
	edges                          func(t int) [][2]int
	lazy                           bool
	x, lastX, g, lastG, a, b, c, q [][]float64
}

func newHistory(w world) *history {
	z := func() [][]float64 { return zeros(w.n, w.d) }
	return &history{edges: w.edges, x: z(), lastX: z(), g: z(), lastG: z(), a: z(), b: z(), c: z(), q: z()}
}

// w is W·v, with the Metropolis weights of the active edges.
func (h *history) w(v [][]float64) [][]float64 {
	weights, out := mixing(h.edges(h.t), len(v)), zeros(len(v), len(v[0]))
	for i := range v {
		for j := range v {
			for k := range v[i] {
				out[i][k] += weights[i][j] * v[j][k]
			}
		}
	}
	if h.lazy {
		return h.add(0.5, v, 0.5, out)
	}
	return out
}

// track returns the tracker y of iteration t. h.q is that of the iteration before, as mixed there in
// the forms that mix it at its end.
func (h *history) track(form string) [][]float64 {
	y := h.add(1, h.q, 1, h.g, -1, h.lastG)
	if form == "atc" {
		if h.t > 0 {
			y = h.w(y)
		}
		h.q = y
		return y
	}
	h.q = h.w(y)
	return y
}

// adapt is the step of the models.
func (h *history) adapt(form string, u [][]float64) [][]float64 {
	if form == "cta" {
		return h.add(1, h.w(h.x), -h.alpha, u)
	}
	return h.w(h.add(1, h.x, -h.alpha, u))
}

// ball is the heavy ball of the gradients.
func (h *history) ball() [][]float64 { return h.ballOf(h.g) }

func (h *history) ballOf(v [][]float64) [][]float64 {
	h.a = h.add(h.mu, h.a, 1, v)
	return h.a
}

// adam is AdamW without weight decay, as its paper states it.
func (h *history) adam(v [][]float64) [][]float64 {
	u := zeros(len(v), len(v[0]))
	h.b = h.add(0.9, h.b, 0.1, v) // m
	for i := range v {
		for k, g := range v[i] {
			h.c[i][k] = 0.99*h.c[i][k] + 0.01*g*g // v
			m, s := h.b[i][k]/(1-math.Pow(0.9, float64(h.t+1))), h.c[i][k]/(1-math.Pow(0.99, float64(h.t+1)))
			u[i][k] = m / (math.Sqrt(s) + 1e-8)
		}
	}
	return u
}

// adamOfTrackers is the optimizer of GT-Adam as it is printed, with the largest mean of squares.
func (h *history) adamOfTrackers(v [][]float64, most float64) [][]float64 {
	u := zeros(len(v), len(v[0]))
	h.b = h.add(0.9, h.b, 0.1, v) // m
	for i := range v {
		for k, y := range v[i] {
			h.c[i][k] = min(0.99*h.c[i][k]+0.01*y*y, most) // v
			u[i][k] = h.b[i][k] / math.Sqrt(h.c[i][k]+1e-8)
		}
	}
	return u
}

// add is the sum of factors times vectors, which follow each other.
func (h *history) add(terms ...any) [][]float64 {
	out := zeros(len(h.x), len(h.x[0]))
	for n := 0; n < len(terms); n += 2 {
		factor := 0.0
		switch f := terms[n].(type) {
		case int:
			factor = float64(f)
		case float64:
			factor = f
		}
		for i, v := range terms[n+1].([][]float64) {
			for k := range v {
				out[i][k] += factor * v[k]
			}
		}
	}
	return out
}
