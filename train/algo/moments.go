package algo

import (
	"slices"

	"fspda/device"
	"fspda/train/setting"
)

// Moments says at the ends of which rounds agents also average the moving averages of AdamW or
// [Muon] over all agents (Iacob and others 2025; Cheng and Glasgow 2025). With m and v the averages
// of gradients and of their squares, and rounds counted from 1, after the model of round r,
//
//	m ← mean of m  if First divides r        v ← mean of v  if Second divides r
//
// The number of calls of the optimizer is the same at all agents. The vectors travel in the message
// of the model. All agents sum in the order of their numbers.
type Moments struct{ First, Second int } // 0: never.

// momentKeys are the parameters of [Moments] with their defaults.
func momentKeys(first, second int) []setting.Key {
	of := func(name, vector string, rounds int) setting.Key {
		return setting.Key{Name: name, Default: rounds, Whole: true, Range: "[0, inf)", Since: "0.2.0",
			Help: "rounds from one mean over the agents of the optimizer's " + vector + " to the next; 0: never"}
	}
	return []setting.Key{of("moment_rounds", "exp_avg", first), of("square_rounds", "exp_avg_sq", second)}
}

func newMoments(s Settings) Moments {
	return Moments{s.Whole("moment_rounds"), s.Whole("square_rounds")}
}

// momentsKept refuses means of vectors that the optimizer does not have.
func momentsKept(r Run) ([]string, error) {
	s := r.Settings()
	vectors := s.Descent.Optimizer().Vectors()
	if o, ok := s.Descent.Optimizer().(ScheduleFree); ok {
		if n := s.Whole("moment_rounds"); n != 1 {
			return nil, setting.InsteadOf("params.moment_rounds", n, 1, "leaves the model z of optimizer %s with its "+
				"agent, while the model y is averaged: it has to be 1", r.Text("optimizer"))
		}
		if n := s.Whole("square_rounds"); n > 0 && len(o.Vectors()) == 1 {
			return nil, setting.InsteadOf("params.square_rounds", n, 0, "averages exp_avg_sq, which optimizer %s does "+
				"not keep: use 0, or optimizer %s", r.Text("optimizer"), scheduleFreeAdamWKind.Name)
		}
		return nil, nil
	}
	for _, key := range []string{"moment_rounds", "square_rounds"} {
		if n := s.Whole(key); n > 0 && !slices.Equal(vectors, AdamW{}.Vectors()) {
			return nil, setting.InsteadOf("params."+key, n, 0, "averages exp_avg and exp_avg_sq over the agents, "+
				"which optimizer %s does not keep: use optimizer adamw or muon, or 0", r.Text("optimizer"))
		}
	}
	return nil, nil
}

// exchange adds to the traits what messages hold besides the model.
func (m Moments) exchange(e Exchange) Exchange {
	e.Vectors, e.MeanVectors = 1, 1
	for _, every := range []int{m.First, m.Second} {
		if every > 0 {
			e.Vectors++
			e.MeanVectors += 1 / float64(every)
		}
	}
	return e
}

// due returns the optimizer's vectors that are averaged at the end of a round, counted from 1.
func (m Moments) due(s *State, round int) (all [2]device.Vector, n int) {
	for k, every := range [2]int{m.First, m.Second} {
		if every > 0 && round%every == 0 {
			all[n] = s.Opt[k]
			n++
		}
	}
	return all, n
}
