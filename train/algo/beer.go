package algo

import "fspda/device"

// BEER is gradient tracking with compressed differences of both models and trackers (Zhao, Li, Li,
// Richtárik and Chi 2022, algorithm 1). H and G are public copies of the models x and the trackers
// V, known to all neighbours, and SH = W·H and SG = W·G are kept up to date. With Q the compressor
// and g the gradient at x,
//
//	V ← P + g
//	H ← H + Q(x - H)        x ← x + theta·(SH - H) - alpha·V
//	G ← G + Q(V - G)        P ← V + theta·(SG - G) - g
//
// P is the tracker without its newest gradient, as q is in [DIGing]: with Q the identity and theta
// = 1, BEER is DIGing on the static graph. Message number 0 is that of the model: it leaves before
// the gradient is computed.
//
// For every compressor the mean of V is that of g, and the mean model moves by -alpha·mean(g).
// Invariants: Σ P = 0, SH = W·H, SG = W·G. With exact gradients the agents reach the optimum, and P
// tends to ∇F - ∇f_i.
//
// Departures: the copies start at zero, as those of [CHOCO]. The authors' program subtracts the
// gradient of the old model on the new batch, so that its mean tracker is not the mean gradient;
// this is the paper's algorithm.
type BEER struct {
	Theta float64 // consensus step size; smaller for sparser compressors
}

var (
	_ Broadcast = BEER{}
	_ Tracker   = BEER{}
	_ Messages  = BEER{}
	_ Scratcher = BEER{}
)

const (
	beerP     = iota // in State.Aux
	beerCopyX        // H
	beerSumX         // SH
	beerCopyV        // G
	beerSumV         // SG
)

func (BEER) Name() string { return "beer" }

// Broadcast marks one-way messages.
func (BEER) Broadcast() {}

func (BEER) Aux() []string { return []string{"p", "h", "sh", "g", "sg"} }

// Tracked is P, which tends to ∇F - ∇f_i.
func (BEER) Tracked(alpha, eta float64) (string, float64) { return "p", 1 }

// Messages is two: those of the model and of the tracker.
func (BEER) Messages() int { return 2 }

// beerScratch is the working memory of an agent.
type beerScratch struct {
	own  [2]device.SparseTerm // its terms of SH and SG
	late bool                 // V and the step along it are left to Mix
}

func (BEER) NewScratch(func() device.Vector) any { return &beerScratch{} }

func (a BEER) Local(s *State, r *Round) (err error) {
	w := s.Scratch.(*beerScratch)
	if w.own[0], err = s.announce(r, 0, s.X, s.Aux[beerCopyX]); err != nil {
		return err
	}
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	if at := r.picks(1); at != nil { // few numbers of V are needed now: Mix computes it in its pass
		w.late, w.own[1] = true, s.announcePart(r, s.Aux[beerCopyV], at, s.Aux[beerP], s.g)
		return nil
	}
	w.late = false
	v := a.planTracker(s)
	s.plan(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: v})
	s.flush()
	w.own[1], err = s.announce(r, 1, v, s.Aux[beerCopyV])
	return err
}

// planTracker replaces the gradient by V = P + g.
func (BEER) planTracker(s *State) (v device.Vector) {
	s.plan(s.g, device.Term{A: 1, V: s.Aux[beerP]}, device.Term{A: 1, V: s.g})
	return s.g
}

func (a BEER) Mix(s *State, r *Round) error {
	w := s.Scratch.(*beerScratch)
	for which, of := range [2]struct{ v, public, sum device.Vector }{
		{s.X, s.Aux[beerCopyX], s.Aux[beerSumX]}, {s.Aux[beerP], s.Aux[beerCopyV], s.Aux[beerSumV]},
	} {
		if err := s.addAnnounced(r, announcement{a.Name(), which, 2}, w.own[which], of.sum); err != nil {
			return err
		}
		s.base = append(s.base[:0], device.Term{A: 1, V: of.v})
		if which == 0 && w.late {
			s.base = append(s.base, device.Term{A: -r.Alpha, V: a.planTracker(s)})
		}
		s.base = append(s.base, device.Term{A: a.Theta, V: of.sum}, device.Term{A: -a.Theta, V: of.public})
		s.plan(of.v, s.base...)
	}
	s.flush()
	return nil
}
