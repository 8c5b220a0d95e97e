package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// StreamingDiLoCo is DiLoCo whose outer steps are taken by one part of the model after the other
// (Douillard and others 2025, without overlap), so that each all-reduce has one part only. Each
// part of P has its own slow model phi, which is the same at all agents, and its own outer momentum
// b. Its rounds have P·Every local steps, and those of the parts end Every steps after each other.
// At the end of a round of part k, with x the model after the local steps,
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

var _ Algorithm = StreamingDiLoCo{}

var streamingDiLoCo = Method{Name: "streaming-diloco", Keys: []setting.Key{LocalSteps}, Check: inParts,
	Params: []setting.Key{outerRate, outerMomentum(0.9, "Nesterov momentum of the outer steps")},
	New: func(s Settings) Algorithm {
		return StreamingDiLoCo{Every: s.Whole("local_steps"), Rate: s.Param("outer_lr"), Mu: s.Param("outer_momentum"),
			Descent: s.Descent}
	}}

// inParts refuses masks that draw other coordinates than a part, whose rounds are equally long.
// It warns a single agent.
func inParts(r Run) ([]string, error) {
	if mask := r.Text("mask"); mask != "parts" && mask != "all" {
		return nil, setting.Invalid("mask", mask, "streaming-diloco sends one part of the model after the other: "+
			"use mask auto, and density 1/P for P parts")
	}
	if r.Settings().Agents == 1 {
		return []string{"one agent: outer steps are made of what agents exchange, so that none is taken"}, nil
	}
	return nil, nil
}

func (StreamingDiLoCo) Name() string { return "streaming-diloco" }

func (a StreamingDiLoCo) Traits() Traits {
	return Traits{
		Memory:   Memory{Aux: []string{"start", "outer_momentum"}},
		Exchange: Exchange{Edges: AllReduce, Masks: true, Mask: "parts"},
		Rounds:   Rounds{Period: a.Every, Scheduled: true, LocalSteps: 1},
		Updates:  Updates{Descent: a.Descent, Optimizers: AnyOptimizer},
		About: About{"the change of one part of the model over its round, an all-reduce", "2·(n-1)·v·k an exchange",
			"2", "bias, which grows with local_steps / density", "none",
			"Douillard and others 2025, without overlap"},
	}
}

func (a StreamingDiLoCo) Local(s *State, r *Round) error {
	start := s.Aux[dilocoStart]
	if r.T == 0 {
		s.combine(start, device.Term{A: 1, V: s.X})
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || len(r.Links) == 0 {
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
	if err := s.collect(a.Name(), r, 0); err != nil {
		return err
	}
	part, n := r.Links[0].Mask, r.Links[0].Len
	sum, share := s.reduce(r, s.fill.terms), 1/float64(len(s.terms))
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
