package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// STORM is FSPDA-STORM, the paper's second algorithm (equation 10): recursive momentum, a control
// variate, on both gradients of the Lagrangian that SA descends and ascends (equation 9). Each
// iteration takes two gradients on one batch, at x = x^t and at y = x^{t-1}, and both differences
// over the same edges and masks, D = own - other at t and E = own - other at t-1:
//
//	t = 0:  mg = g(x)                       mc = ΣD                     ml = ΣD
//	t > 0:  mg ← g(x) + (1-a_x)·(mg - g(y)) mc ← ΣD + (1-a_x)·(mc - ΣE) ml ← ΣD + (1-a_λ)·(ml - ΣE)
//	x ← x - alpha·mg - gamma·mc - eta·lambda
//	lambda ← lambda + beta·ml
//
// This is the recursion of the paper's appendix, with m = mg + (gamma/alpha)·mc +
// (eta/alpha)·lambda split into its parts. lambda carries no noise, so its estimate is exact, and a
// separate gossip part avoids a division by a step size that a schedule may bring to zero. Equation
// 10c differs (it adds the old gradient and flips signs) and diverges.
//
// Instead of lambda an agent stores ahead, the limit of lambda if all further ΣD and ΣE were zero:
//
//	ahead = lambda + kappa·ml,  kappa = beta·(1-a_λ)/a_λ
//	ahead ← ahead + (beta/a_λ)·(ΣD - (1-a_λ)·ΣE)
//
// It changes only on the masks of active edges, by exact negatives at the two ends. A dense update
// lambda ← lambda + beta·ml would round every coordinate in every iteration and accumulate the
// rounding errors of ml, so that Σ lambda would drift from zero.
//
// With a_x = a_lambda = 1 it is SA without momentum. The mean of mg is STORM of the mean gradient,
// and the mean of x moves by -alpha times it. Invariant: lambda, ahead and ml sum to zero. If a_x =
// a_lambda, mc and ml are one vector.
//
// ZeroStart keeps the momenta zero at t = 0, so that iteration does nothing. Lagged uses the
// released program's estimate of lambda, inside the momentum: x moves by the average l ← (1-a_x)·l
// + a_x·lambda instead of lambda. Both have the same fixed point.
type STORM struct {
	Gamma float64 // gossip step size
	Beta  float64 // dual step size
	// a_x: weight of the newest sample in the primal momenta; 1 disables averaging
	AX        float64
	ALambda   float64 // a_lambda: the same for the dual momentum
	ZeroStart bool
	Lagged    bool
}

// The keys of this method.
var (
	primalWeight = setting.Key{Name: "a_x", Topic: "method", Default: 0.1, Range: "(0, 1]",
		Want: "above 0 and at most 1: the weight of the newest sample",
		Help: "fspda-storm, fspda-async-storm: weight of the newest sample in the primal momentum; 1 is fspda-sa; " +
			"docom: of the newest gradient"}
	dualWeight = setting.Key{Name: "a_lambda", Topic: "method", Default: 0.1, Range: "(0, 1]",
		Want: "above 0 and at most 1: the weight of the newest sample",
		Help: "fspda-storm, fspda-async-storm: weight of the newest sample in the dual momentum"}
	stormStart = setting.Key{Name: "storm_start", Topic: "method", Default: "gradient",
		Choices: []string{"gradient", "zero"},
		Help:    "fspda-storm: initial momenta: gradient (the first gradient) or zero"}
	stormLambda = setting.Key{Name: "storm_lambda", Topic: "method", Default: "exact",
		Choices: []string{"exact", "lagged"},
		Help:    "fspda-storm: exact, or lagged, the released program's average of lambda"}
)

var fspdaSTORM = Method{Name: "fspda-storm",
	Keys:  []setting.Key{Gamma, Beta, primalWeight, dualWeight, stormStart, stormLambda},
	Check: checkGossipGain, New: func(s Settings) Algorithm {
		a := newSTORM(s)
		a.ZeroStart, a.Lagged = s.Choice("storm_start") == "zero", s.Choice("storm_lambda") == "lagged"
		return a
	}}

// newSTORM makes it of the keys that its asynchronous form has too.
func newSTORM(s Settings) STORM {
	return STORM{Gamma: s.Param("gamma"), Beta: s.Param("beta"), AX: s.Param("a_x"), ALambda: s.Param("a_lambda")}
}

const (
	stormAhead = iota // in State.Aux
	stormMG
	stormML
	stormPrev // x^{t-1}
	stormMore // mc, if it is not ml; then the average of lambda, if Lagged
)

func (STORM) Name() string { return "fspda-storm" }

func (a STORM) Traits() Traits {
	t := Traits{
		Memory: Memory{Aux: []string{"ahead", "mg", "ml", "previous"}, Tracked: Tracked{"ahead", dualLimit},
			Work: 1},
		Exchange:   Exchange{Edges: AnyEdges, Vectors: 2, Masks: true}, // x^t and x^{t-1}
		Needs:      Needs{Dual: true},
		Membership: Membership{Regroup: a.regroup},
		About: About{"k values of two models", "4·v·k·|E_t|", "4, or 5", exactOnSkew, anyGraph,
			"FSPDA, equation 10, appendix"},
	}
	if a.AX != a.ALambda {
		t.Aux = append(t.Aux, "mc")
	}
	if a.Lagged {
		t.Aux = append(t.Aux, "lambda-average")
	}
	return t
}

// dualLimit is the multiple of ∇F - ∇f_i to which a dual tends.
func dualLimit(alpha, eta float64) float64 { return alpha / eta }

// kappa is the factor of ml in ahead - lambda.
func (a STORM) kappa() float64 { return a.Beta * (1 - a.ALambda) / a.ALambda }

// mc is the gossip momentum.
func (a STORM) mc(s *State) device.Vector {
	if a.AX == a.ALambda {
		return s.Aux[stormML]
	}
	return s.Aux[stormMore]
}

// regroup subtracts the means of duals and gossip momenta over the members. New members have the
// donor's model of the iteration before and its estimate of the gradient.
func (a STORM) regroup(s *State, g *Group) error {
	if err := g.Copy(s.Aux[stormMG], s.Aux[stormPrev]); err != nil {
		return err
	}
	sums := []int{stormAhead, stormML}
	for k := stormMore; k < s.own; k++ {
		sums = append(sums, k)
	}
	return recentre(sums...)(s, g)
}

func (a STORM) Local(s *State, r *Round) error {
	if r.T == 0 && a.ZeroStart {
		s.combine(s.Aux[stormPrev], device.Term{A: 1, V: s.X})
		return nil
	}
	if r.T == 0 {
		s.Send(r, s.X)
	} else {
		s.Send(r, s.X, s.Aux[stormPrev])
	}
	if err := a.estimate(s, r); err != nil {
		return err
	}
	a.move(s, r)
	return nil
}

// estimate updates mg to time t. The gradient at x^t comes first: it counts as the training step.
func (a STORM) estimate(s *State, r *Round) error {
	mg := s.Aux[stormMG]
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	if r.T == 0 {
		s.combine(mg, device.Term{A: 1, V: s.g})
		return nil
	}
	old := s.Work[0]
	if err := r.Grad(old, s.Aux[stormPrev]); err != nil {
		return err
	}
	s.combine(mg, device.Term{A: 1, V: s.g}, device.Term{A: 1 - a.AX, V: mg}, device.Term{A: a.AX - 1, V: old})
	return nil
}

// move makes the dense part of the step and scales mc and ml by 1-a. It writes x^{t+1} over x^{t-1}
// and swaps the two vectors, which avoids a copy.
func (a STORM) move(s *State, r *Round) {
	next, mg, ml := s.Aux[stormPrev], s.Aux[stormMG], s.Aux[stormML]
	dual, fade := s.Aux[stormAhead], float64(r.Eta*a.kappa()) // -eta·lambda is -eta·dual + fade·ml
	if a.Lagged {
		average := s.last()
		s.combine(average, device.Term{A: 1 - a.AX, V: average}, device.Term{A: a.AX, V: dual},
			device.Term{A: -a.AX * a.kappa(), V: ml})
		dual, fade = average, 0
	}
	gossip := float64(-a.Gamma * (1 - a.AX))
	if mc := a.mc(s); mc == ml {
		s.combine(next, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: mg}, device.Term{A: -r.Eta, V: dual},
			device.Term{A: fade + gossip, V: ml})
	} else {
		s.combine(next, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: mg}, device.Term{A: -r.Eta, V: dual},
			device.Term{A: fade, V: ml}, device.Term{A: gossip, V: mc})
		s.combine(mc, device.Term{A: 1 - a.AX, V: mc})
	}
	s.X, s.Aux[stormPrev] = next, s.X
	s.combine(ml, device.Term{A: 1 - a.ALambda, V: ml})
}

// Mix adds the new terms. On masks it adds D - (1-a)·E of each link, rounded before it is added;
// otherwise first the D and then the E of all links.
func (a STORM) Mix(s *State, r *Round) error {
	var to [4]device.Term
	for i := range r.Links {
		switch l := &r.Links[i]; {
		case l.Received == nil:
		case l.Mask == nil: // no link has a mask
			s.AddDifferences(r, 0, UnitWeight, a.spread(to[:0], s, 1, 1)...)
			s.AddDifferences(r, 1, UnitWeight, a.spread(to[:0], s, a.AX-1, a.ALambda-1)...)
			return nil
		default:
			a.mixMasked(s, r, l)
		}
	}
	return nil
}

// spread appends the targets of a difference that enters mc with weight p and ml with weight q.
func (a STORM) spread(to []device.Term, s *State, p, q float64) []device.Term {
	to = append(to, device.Term{A: -a.Gamma * p, V: s.X}, device.Term{A: a.Beta / a.ALambda * q, V: s.Aux[stormAhead]},
		device.Term{A: q, V: s.Aux[stormML]})
	if a.AX != a.ALambda {
		to = append(to, device.Term{A: p, V: s.Aux[stormMore]})
	}
	return to
}

// mixMasked adds the differences over one link.
func (a STORM) mixMasked(s *State, r *Round, l *Link) {
	dual := difference(s, r, l, a.ALambda-1)
	primal := dual
	if a.AX != a.ALambda {
		primal = difference(s, r, l, a.AX-1)
		s.add(s.Aux[stormMore], device.SparseTerm{A: 1, V: primal, Idx: l.Mask})
	}
	s.add(s.X, device.SparseTerm{A: -a.Gamma, V: primal, Idx: l.Mask})
	s.add(s.Aux[stormAhead], device.SparseTerm{A: a.Beta / a.ALambda, V: dual, Idx: l.Mask})
	s.add(s.Aux[stormML], device.SparseTerm{A: 1, V: dual, Idx: l.Mask})
}

// difference returns D + p·E on the coordinates of a link, or D if E was not sent.
func difference(s *State, r *Round, l *Link, p float64) device.Vector {
	d := r.Acquire(l.Len)
	s.do(device.Combine(d))
	for k, c := range []float64{1, p}[:len(l.Received)] {
		s.do(device.AddDiff(l.Sent[k], l.Received[k], nil, s.targets(device.Term{A: c, V: d})...))
	}
	return d
}
