package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// TiCoPD is a primal-dual method over public copies (Liu, Yau and Wai 2025), of which the authors'
// program is known to us. Copies xhat and sums s = W·xhat are those of [CHOCO]. With Q the
// compressor and u = Opt(g), with the placements of [SA],
//
//	D = xhat - s                             (of the copies before this iteration's messages)
//	x ← x - alpha·u - eta·lambda - theta·D   lambda ← lambda + beta·D
//	q = Q(x - xhat)    xhat ← xhat + q       s ← s + Σ_j w_ij·q_j
//
// It is FSPDA-SA with the Laplacian I - W of the whole graph, on copies; with Q the identity it is
// exactly that, with copies of the model before. Invariants, for every contraction: Σ lambda = 0, s
// = W·xhat, and the mean model moves by -alpha·mean(u). With exact gradients the agents reach the
// optimum.
//
// Departures: the program has the unnormalised Laplacian and lambda in units of the gradient; with
// eta = alpha, beta·eta/alpha its dual step and theta its step times alpha, both are the same. It
// can draw random edges, of whose copies D is then stale by one exchange of the edge: [EF] is
// better there.
type TiCoPD struct {
	Theta float64 // consensus step size; smaller for sparser compressors
	Beta  float64 // dual step size
	Descent
}

var ticopd = Method{Name: "ticopd", Keys: []setting.Key{Theta, Beta, compress, norms}, Check: checkTiCoPD,
	New: func(s Settings) Algorithm {
		return TiCoPD{Theta: s.Param("theta"), Beta: s.Param("beta"), Descent: s.Descent}
	}}

const ticopdLambda = 2 // in State.Aux, behind the vectors of CHOCO

func (TiCoPD) Name() string { return "ticopd" }

func (a TiCoPD) Traits() Traits {
	t := CHOCO{Theta: a.Theta, Descent: a.Descent}.Traits()
	t.Aux = append(t.Aux, "lambda")
	t.Tracked = Tracked{"lambda", SA{Descent: a.Descent}.limit}
	t.Placements, t.Dual, t.Regroup = AnyPlacement, true, a.regroup
	t.About = About{"a compressed difference", "payload of each message", "3", exactOnSkew,
		"any graph, agents that broadcast", "Liu, Yau and Wai 2025, the authors' program"}
	return t
}

// regroup subtracts the mean of the duals and begins the public copies anew.
func (a TiCoPD) regroup(s *State, g *Group) error {
	if err := s.recentre(g, s.Aux[ticopdLambda]); err != nil {
		return err
	}
	return CHOCO{}.regroup(s, g)
}

func (a TiCoPD) Local(s *State, r *Round) (err error) {
	lambda, copied, sum := s.Aux[ticopdLambda], s.Aux[chocoCopy], s.Aux[chocoSum]
	if err := a.Step(s, r, r.Alpha, s.X, device.Term{A: r.Eta, V: lambda}); err != nil {
		return err
	}
	s.do(device.AddDiff(copied, sum, nil, s.targets(device.Term{A: -a.Theta, V: s.X},
		device.Term{A: a.Beta, V: lambda})...))
	own := s.Scratch.(*device.SparseTerm)
	*own, err = s.announce(r, 0, s.X, copied)
	return err
}

func (a TiCoPD) Mix(s *State, r *Round) error {
	return s.addAnnounced(r, announcement{algo: a.Name(), of: 1}, *s.Scratch.(*device.SparseTerm), chocoSum)
}

// checkTiCoPD checks the compressor and the gains.
func checkTiCoPD(r Run) ([]string, error) {
	warnings, err := checkCompressed(r)
	if s := r.Settings(); err == nil && s.Agents > 1 && s.Eta*s.Param("beta") >= s.Param("theta") {
		return nil, setting.Invalid("eta", s.Eta, "times beta %v reaches theta %v: the duals would overshoot and "+
			"diverge; lower eta, or use eta auto", s.Param("beta"), s.Param("theta"))
	}
	return warnings, err
}
