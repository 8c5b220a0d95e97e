package algo

import "fspda/device"

// StreamingDiLoCo is DiLoCo whose outer steps are taken by one part of the model after the other
// (Douillard and others 2025, without overlap), so that each all-reduce has one part only. Each part
// of P has its own slow model phi, which is the same at all agents, and its own outer momentum b. Its
// rounds have P·Every local steps, and those of the parts end Every steps after each other. At the
// end of a round of part k, with x the model after the local steps,
//
//	D = mean of (phi[k] - x[k])
//	b[k] ← Mu·b[k] + D        phi[k] ← phi[k] - Rate·(D + Mu·b[k])        x[k] ← phi[k]
//
// All agents sum in the order of their numbers: phi and b stay bit-identical. With one part it is
// [DiLoCo]. Without agents to exchange with, no outer step is taken.
//
// Departures: the parts are runs of adjacent coordinates of equal length, not layers. An outer step
// is applied in the iteration in which its part was sent, and not some iterations later.
type StreamingDiLoCo struct {
	Every int     // local steps from one part's outer step to the next part's
	Rate  float64 // step size of the outer optimizer
	Mu    float64 // its momentum
	Descent
}

var (
	_ AllReducer = StreamingDiLoCo{}
	_ Scheduled  = StreamingDiLoCo{}
)

func (StreamingDiLoCo) Name() string { return "streaming-diloco" }

// AllReduces marks the all-reduce of a part.
func (StreamingDiLoCo) AllReduces() {}

// Period is Every.
func (a StreamingDiLoCo) Period() int { return a.Every }

// Scheduled lets the local steps follow the schedule.
func (StreamingDiLoCo) Scheduled() {}

func (StreamingDiLoCo) Aux() []string { return []string{"start", "outer_momentum"} }

func (a StreamingDiLoCo) Local(s *State, r *Round) error {
	start := s.Aux[dilocoStart]
	if r.T == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.descend(s, r, r.Alpha, s.X); err != nil || len(r.Links) == 0 {
		return err
	}
	part := r.Links[0].Mask // all links have one mask
	d := s.picked(r, start, part)
	s.combine(d, device.Term{A: 1, V: d}, device.Term{A: -1, V: s.picked(r, s.X, part)})
	s.post(r, d)
	return nil
}

func (a StreamingDiLoCo) Mix(s *State, r *Round) error {
	if len(r.Links) == 0 {
		return nil
	}
	if err := s.collect(a.Name(), r); err != nil {
		return err
	}
	part, n := r.Links[0].Mask, r.Links[0].Len
	sum, share := r.Acquire(n), 1/float64(len(s.terms))
	s.sumTerms(sum)
	b, phi := s.picked(r, s.Aux[dilocoOuter], part), s.picked(r, s.Aux[dilocoStart], part)
	b2, phi2 := r.Acquire(n), r.Acquire(n)
	s.combine(b2, device.Term{A: a.Mu, V: b}, device.Term{A: share, V: sum})
	s.combine(phi2, device.Term{A: 1, V: phi}, device.Term{A: -a.Rate * share, V: sum},
		device.Term{A: -a.Rate * a.Mu, V: b2})
	s.replace(s.Aux[dilocoOuter], part, b, b2)
	s.replace(s.X, part, s.picked(r, s.X, part), phi2)
	s.replace(s.Aux[dilocoStart], part, phi, phi2)
	return nil
}
