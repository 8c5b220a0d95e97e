package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

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
// = 1, BEER is DIGing on the static graph. Message number 0 is the model's: it leaves before
// the gradient is computed.
//
// For every compressor the mean of V is the mean of g, and the mean model moves by -alpha·mean(g).
// Invariants: Σ P = 0, SH = W·H, SG = W·G. With exact gradients the agents reach the optimum, and P
// tends to ∇F - ∇f_i.
//
// Departures: the copies start at zero, as in [CHOCO]. The authors' program subtracts the
// gradient of the old model on the new batch, so that its mean tracker is not the mean gradient;
// this is the paper's algorithm.
type BEER struct {
	Theta float64 // consensus step size; smaller for sparser compressors
}

var beer = Method{Name: "beer", Keys: []setting.Key{Theta, compress, norms}, Check: checkCompressed,
	New: func(s Settings) Algorithm { return BEER{Theta: s.Param("theta")} }}

const (
	beerP     = iota // in State.Aux
	beerCopyX        // H
	beerSumX         // SH
	beerCopyV        // G
	beerSumV         // SG
)

func (BEER) Name() string { return "beer" }

func (a BEER) Traits() Traits {
	return Traits{
		Memory: Memory{Aux: []string{"p", "h", "sh", "g", "sg"}, Tracked: Tracked{"p", unitLimit}, Transient: true,
			// The terms w_ii·q of H and G that the agent sends in an iteration.
			NewScratch: func() any { return &[2]device.SparseTerm{} }},
		// One message is the model's, the other the tracker's.
		Exchange:   Exchange{Edges: Broadcast, Code: CompressedCode, Messages: 2, Masks: true, Mixing: true},
		Membership: Membership{Regroup: a.regroup},
		About: About{"two compressed differences", "payloads of both; indices of randk once", "5", exactOnSkew,
			"any graph, agents that broadcast", "Zhao, Li, Li, Richtárik and Chi 2022, algorithm 1"},
	}
}

// regroup makes each tracker its agent's own newest gradient and begins the public copies anew. The
// copy of a model is the model itself, and the copy of a tracker zero, as at the start.
func (BEER) regroup(s *State, g *Group) error {
	if err := restart(beerP, beerCopyV, beerSumV)(s, g); err != nil {
		return err
	}
	return s.republish(g, s.X, s.Aux[beerCopyX], s.Aux[beerSumX])
}

func (a BEER) Local(s *State, r *Round) (err error) {
	own, p, g := s.Scratch.(*[2]device.SparseTerm), s.Aux[beerP], s.Aux[beerCopyV]
	if own[0], err = s.announce(r, 0, s.X, s.Aux[beerCopyX]); err != nil {
		return err
	}
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	s.plan(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: p}, device.Term{A: -r.Alpha, V: s.g})
	if at := r.picks(1); at != nil { // few numbers of V are needed: it is never made as a whole
		own[1] = s.announceAt(r, g, at, p, s.g)
		return nil
	}
	s.plan(s.g, device.Term{A: 1, V: p}, device.Term{A: 1, V: s.g}) // V
	own[1], err = s.announce(r, 1, s.g, g)
	return err
}

func (a BEER) Mix(s *State, r *Round) error {
	own := s.Scratch.(*[2]device.SparseTerm)
	err := s.gossip(r, announcement{a.Name(), 1, 2}, own[1], a.Theta, s.Aux[beerP], beerCopyV, beerSumV)
	if err != nil {
		return err
	}
	return s.gossip(r, announcement{a.Name(), 0, 2}, own[0], a.Theta, s.X, beerCopyX, beerSumX)
}
