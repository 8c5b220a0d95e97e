package algo

import (
	"math"

	"fspda/device"
	"fspda/train/setting"
)

// AsyncSTORM is FSPDA-STORM without a common clock, by the protocol of [Async]. The paper says that
// it follows easily and does not write it out; this is the derivation. An iteration of an agent's
// logical time in which it completes no gradient draws the sample zero: the stochastic gradient is
// b·c·g, with b = 1 if a gradient completes, else 0, and c ≈ 1/P(b = 1), so its mean is the mean of
// g. STORM of that sample, with y the model one logical iteration ago, and D and E the differences
// at x and at y over an exchange of this iteration, if there was one, is
//
//	mg ← c·g(x) + (1-a_x)·(mg - c·g(y)),    or (1-a_x)·mg without a gradient
//	mc ← (1-a_x)·mc + D - (1-a_x)·E         ml ← (1-a_λ)·ml + D - (1-a_λ)·E
//	x ← x - alpha·mg - gamma·mc - eta·lambda        lambda ← lambda + beta·ml
//
// An agent that is behind by q iterations without events catches up in one step, since its momenta
// decay and nothing else happens: with p = 1-a_x, r = 1-a_λ and lambda = ahead - kappa·ml as in
// [STORM],
//
//	x ← x - (p + … + p^q)·(alpha·mg + gamma·mc) - eta·(q·ahead - kappa·(1 + … + r^(q-1))·ml)
//	mg ← p^q·mg        mc ← p^q·mc        ml ← r^q·ml        ahead stays
//
// and y is x without the last of these iterations. x and y are constant while a gradient runs, so
// an exchange keeps D - (1-a)·E as mail until the gradient is complete.
//
// In logical time it is therefore synchronous FSPDA-STORM with the factors b·c on both gradients of
// each agent: every agent has the x of its own time. Invariant: Σ(ahead + (beta/a_λ)·mail) = 0.
// The sample b·c·g is noisier than g, by a factor that grows with 1/P(b = 1), and so is its
// momentum: small a_x and a_λ that serve STORM let the models drift apart at first.
//
// Σ lambda is not zero while agents are at different times, because their momenta have decayed
// differently; ahead has the same limit. Run as an [Algorithm] in rounds, it is FSPDA-STORM.
type AsyncSTORM struct {
	STORM
	Protocol
}

var _ Asynchronous = AsyncSTORM{}

var fspdaAsyncSTORM = Method{Name: "fspda-async-storm",
	Keys:  []setting.Key{Gamma, Beta, primalWeight, dualWeight, coefficient, coefficientLimit, contacts},
	Check: asyncStable, New: func(s Settings) Algorithm { return AsyncSTORM{newSTORM(s), newProtocol(s)} }}

func (AsyncSTORM) Name() string { return "fspda-async-storm" }

func (a AsyncSTORM) Traits() Traits {
	t := a.STORM.Traits()
	t.Aux = append(t.Aux, "mail")
	if a.AX != a.ALambda {
		t.Aux = append(t.Aux, "mail_primal")
	}
	t.Mailbox = a.mailbox()
	t.Edges, t.Asynchronous, t.Constant, t.Gradients = Clocks, a, true, 2
	t.Membership = noIterations
	t.About = About{"k values of two models", "4·v·k·|E_t|", "5, or 7", exactOnSkew,
		"any graph, a clock on every edge", "derived from FSPDA, equation 10 and that appendix"}
	return t
}

// mailbox is where in State.Aux the mail for the dual and for the primal momenta is, which may be
// one vector.
func (a AsyncSTORM) mailbox() []int {
	at := stormMore
	if a.Lagged {
		at++
	}
	if a.AX == a.ALambda {
		return []int{at}
	}
	return []int{at + 1, at + 2}
}

// mails returns the mail for the dual and for the primal momenta, which may be one vector.
func (a AsyncSTORM) mails(s *State) (dual, primal device.Vector) {
	at := a.mailbox()
	return s.Aux[at[0]], s.Aux[at[len(at)-1]]
}

// Posts is the model at the agent's logical time and one iteration before.
func (AsyncSTORM) Posts(s *State) []device.Vector { return []device.Vector{s.X, s.Aux[stormPrev]} }

// decay returns p^q and p + … + p^q.
func decay(p float64, q int) (last, sum float64) {
	if p == 1 {
		return 1, float64(q)
	}
	last = math.Pow(p, float64(q))
	return last, p * (1 - last) / (1 - p)
}

// CatchUp applies lag >= 1 iterations without events.
func (a AsyncSTORM) CatchUp(s *State, lag int, alpha, eta float64) {
	y, mg, mc, ml := s.Aux[stormPrev], s.Aux[stormMG], a.mc(s), s.Aux[stormML]
	last, sum := decay(1-a.AX, lag)
	before, past := decay(1-a.ALambda, lag-1)
	a.slide(s, s.X, s.X, -1, alpha*sum, a.Gamma*sum, eta*float64(lag), eta*a.kappa()*(1+past))
	a.slide(s, y, s.X, 1, alpha*last, a.Gamma*last, eta, eta*a.kappa()*before)
	s.combine(mg, device.Term{A: last, V: mg})
	if mc != ml {
		s.combine(mc, device.Term{A: last, V: mc})
	}
	s.combine(ml, device.Term{A: before * (1 - a.ALambda), V: ml})
}

// slide computes dst = x + sign·(g·mg + c·mc + d·ahead - l·ml).
func (a AsyncSTORM) slide(s *State, dst, x device.Vector, sign, g, c, d, l float64) {
	s.combine(dst, device.Term{A: 1, V: x}, device.Term{A: sign * g, V: s.Aux[stormMG]},
		device.Term{A: sign * c, V: a.mc(s)}, device.Term{A: sign * d, V: s.Aux[stormAhead]},
		device.Term{A: -sign * l, V: s.Aux[stormML]})
}

// Deliver stores D - (1-a)·E in the buffers, on the coordinates of mask.
func (a AsyncSTORM) Deliver(s *State, own, received []device.Vector, mask device.Index) {
	dual, primal := a.mails(s)
	for k, c := range [2][2]float64{{1, 1}, {a.ALambda - 1, a.AX - 1}} {
		to := s.targets(device.Term{A: c[0], V: dual})
		if primal != dual {
			to = s.targets(device.Term{A: c[0], V: dual}, device.Term{A: c[1], V: primal})
		}
		s.do(device.AddDiff(own[k], received[k], mask, to...))
	}
}

func (a AsyncSTORM) Move(s *State, st Step, alpha, eta float64, grad func(dst, x device.Vector) error) error {
	y, mc, ml := s.Aux[stormPrev], a.mc(s), s.Aux[stormML]
	if st.T == 0 {
		s.combine(y, device.Term{A: 1, V: s.X})
	}
	if err := a.sample(s, st, grad); err != nil {
		return err
	}
	keep := 1 - a.AX
	a.slide(s, y, s.X, -1, alpha, a.Gamma*keep, eta, eta*a.kappa()) // over y, which is no longer needed
	s.X, s.Aux[stormPrev] = y, s.X
	if mc != ml {
		s.combine(mc, device.Term{A: keep, V: mc})
	}
	s.combine(ml, device.Term{A: 1 - a.ALambda, V: ml})
	if !st.Gossip {
		return nil
	}
	dual, primal := a.mails(s)
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -a.Gamma, V: primal})
	s.combine(s.Aux[stormAhead], device.Term{A: 1, V: s.Aux[stormAhead]}, device.Term{A: a.Beta / a.ALambda, V: dual})
	s.combine(ml, device.Term{A: 1, V: ml}, device.Term{A: 1, V: dual})
	s.do(device.Combine(dual))
	if mc != ml {
		s.combine(mc, device.Term{A: 1, V: mc}, device.Term{A: 1, V: primal})
		s.do(device.Combine(primal))
	}
	return nil
}

// sample updates mg: with the gradients at x and at y, or without a gradient.
func (a AsyncSTORM) sample(s *State, st Step, grad func(dst, x device.Vector) error) error {
	mg, keep := s.Aux[stormMG], 1-a.AX
	if st.C == 0 {
		s.combine(mg, device.Term{A: keep, V: mg})
		return nil
	}
	if err := grad(s.g, s.X); err != nil {
		return err
	}
	if st.T == 0 {
		s.combine(mg, device.Term{A: st.C, V: s.g})
		return nil
	}
	old := s.Work[0]
	if err := grad(old, s.Aux[stormPrev]); err != nil {
		return err
	}
	s.combine(mg, device.Term{A: st.C, V: s.g}, device.Term{A: keep, V: mg}, device.Term{A: -keep * st.C, V: old})
	return nil
}
