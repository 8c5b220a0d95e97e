package dist

// AtRoundEnds returns a process of rounds of the given number of steps. Iteration r of p happens in
// the last iteration of round r, and no edge is active in the others. It has the String and the
// weights of p, and neither broadcasts nor has a period. With rounds of one iteration it is p
// itself.
func AtRoundEnds(p Process, steps int) Process {
	if steps == 1 {
		return p
	}
	return rounds{process{}, p, steps}
}

type rounds struct {
	process
	of    Process
	steps int
}

func (p rounds) String() string { return p.of.String() }

func (p rounds) Active(dst []Event, t int) []Event {
	checkTime(t)
	if (t+1)%p.steps != 0 {
		return dst[:0]
	}
	return p.of.Active(dst, t/p.steps)
}

func (p rounds) Rate(edge int) float64 { return p.of.Rate(edge) / float64(p.steps) }
func (p rounds) Weighted() bool        { return p.of.Weighted() }

func (p rounds) Weight(e Event, t int) float64 { return p.of.Weight(e, t/p.steps) }
