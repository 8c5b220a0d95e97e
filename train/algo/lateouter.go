package algo

import (
	"fspda/device"
	"fspda/train/setting"
)

// LateDiLoCo is [DiLoCo] whose all-reduce takes the whole next round (Kale, Douillard and Donchev
// 2025). With D^r_i the change of agent i in round r, from where it began, and D^-1 = 0, the outer
// step at the end of round r takes in place of the mean of D^r
//
//	delayed   mean of D^(r-1)
//	eager     mean of D^(r-1) + (D^r_i - D^(r-1)_i)/n
//
// With Eager the newest change of an agent counts at once, so that slow models and momenta differ
// between agents, by a filter of D^r_i/n. One agent is DiLoCo.
type LateDiLoCo struct {
	Eager  bool
	Agents int
	DiLoCo
}

// The values of the parameter outer.
const (
	outerNow     = "now"
	outerDelayed = "delayed"
	outerEager   = "eager"
)

var outerKey = setting.Key{Name: "outer", Choices: []string{outerNow, outerDelayed, outerEager}, Since: "0.2.0",
	Help: "which changes an outer step takes: now, the round's; delayed, those of the round before, so that the " +
		"all-reduce may take a round; eager, the same with the agent's own newest change"}

// oldChange is the working memory of an agent: its change in the round before.
type oldChange struct{ v device.Vector }

func (a LateDiLoCo) Traits() Traits {
	t := a.DiLoCo.Traits()
	t.Aux, t.Delay, t.Repost, t.Reduce = append(t.Aux, "posted"), a.H, a.repost, a.reduce
	t.NewScratch = func() any { return &oldChange{} }
	t.Membership = underWay
	return t
}

// posted is the vector of the change that was posted last, the last one of the algorithm's own.
func (a LateDiLoCo) posted(s *State) device.Vector { return s.last() }

func (a LateDiLoCo) repost(s *State, r *Round) error {
	s.post(r, s.copied(r, a.posted(s)))
	return nil
}

func (a LateDiLoCo) reduce(s *State, r *Round) error {
	_, err := s.sumAll(a.Name(), r, 0, nil)
	return err
}

func (a LateDiLoCo) Local(s *State, r *Round) error {
	start, posted := s.Aux[dilocoStart], a.posted(s)
	if r.T%a.H == 0 {
		s.copy(start, s.X)
	}
	if err := a.Step(s, r, r.Alpha, s.X); err != nil || (r.T+1)%a.H != 0 {
		return err
	}
	s.Scratch.(*oldChange).v = s.copied(r, posted)
	s.combine(posted, device.Term{A: 1, V: start}, device.Term{A: -1, V: s.X})
	s.copy(s.g, posted)
	s.sendAll(r, s.g)
	return nil
}

func (a LateDiLoCo) Mix(s *State, r *Round) error {
	if (r.T+1)%a.H != 0 {
		return nil
	}
	before, change, share := s.Scratch.(*oldChange).v, s.Scratch.(*oldChange).v, 1.0
	if len(r.Links) > 0 {
		sum, err := s.sumAll(a.Name(), r, 0, s.g)
		if err != nil {
			return err
		}
		change, share = sum, 1/float64(len(r.Links)+1)
	}
	d := r.Acquire(change.Len())
	s.combine(d, device.Term{A: share, V: change})
	if n := 1 / float64(a.Agents); a.Eager {
		s.combine(d, device.Term{A: 1, V: d}, device.Term{A: n, V: a.posted(s)}, device.Term{A: -n, V: before})
	}
	a.outerStep(s, d, 1)
	return nil
}
