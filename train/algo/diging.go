package algo

import "fspda/device"

// DIGing is gradient tracking on time-varying graphs (Nedić, Olshevsky and Shi 2017). With W_t the
// Metropolis weights of the active graph and y = g at the start,
//
//	x^{t+1} = W_t x^t - alpha·y^t
//	y^{t+1} = W_t y^t + g^{t+1} - g^t
//
// The agent stores q^t = y^t - g^t, the tracker without its newest gradient, so each iteration
// needs only its own gradient:
//
//	y = q + g        x ← x - alpha·y - Σ w·(x own - x other)        q ← q - Σ w·(y own - y other)
//
// An agent without an edge leaves q unchanged. With momentum, v ← mu·v + y replaces y in the step
// of x.
//
// Invariant: Σ q = 0, so the mean of y equals the mean of g, and the mean model moves by
// -alpha·mean(g). With exact gradients the agents reach the optimum, and q tends to ∇F - ∇f_i.
type DIGing struct {
	Mu float64 // momentum on y; 0 disables it
}

var (
	_ Tracker     = DIGing{}
	_ MultiVector = DIGing{}
)

const (
	trackQ         = iota // in State.Aux, of DIGing and NEXT
	digingMomentum        // only if Mu != 0
)

func (DIGing) Name() string { return "diging" }

func (a DIGing) Aux() []string { return withMomentum(a.Mu, "q") }

// Vectors is two: x and y.
func (DIGing) Vectors() int { return 2 }

// Tracked is q, which tends to ∇F - ∇f_i.
func (DIGing) Tracked(alpha, eta float64) (string, float64) { return "q", 1 }

func (a DIGing) Local(s *State, r *Round) error {
	if err := r.Grad(s.g, s.X); err != nil {
		return err
	}
	if a.Mu != 0 {
		v := s.Aux[digingMomentum]
		s.combine(v, device.Term{A: a.Mu, V: v}, device.Term{A: 1, V: s.g}, device.Term{A: 1, V: s.Aux[trackQ]})
		s.sendTracked(r)
		s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: v})
		return nil
	}
	if len(r.Links) == 0 { // no neighbour needs y: one pass
		s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: s.g},
			device.Term{A: -r.Alpha, V: s.Aux[trackQ]})
		return nil
	}
	s.sendTracked(r)
	s.combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: s.g})
	return nil
}

// sendTracked posts x and y, and replaces g by y = g + q, if the agent has links.
func (s *State) sendTracked(r *Round) {
	if len(r.Links) > 0 {
		s.combine(s.g, device.Term{A: 1, V: s.g}, device.Term{A: 1, V: s.Aux[trackQ]})
		s.Send(r, s.X, s.g)
	}
}

func (a DIGing) Mix(s *State, r *Round) error {
	mixTracked(s, r)
	return nil
}

// mixTracked averages the posted x and y with the Metropolis weights of the active graph.
func mixTracked(s *State, r *Round) {
	s.AddDifferences(r, 0, ActiveWeight, device.Term{A: -1, V: s.X})
	s.AddDifferences(r, 1, ActiveWeight, device.Term{A: -1, V: s.Aux[trackQ]})
}
