package dist

// AtRoundEnds returns a process of rounds of the given number of steps. Iteration r of p happens in
// the last iteration of round r, and no edge is active in the others. It has the String of p and,
// if p is [Weighted], its weights. With rounds of one iteration it is p itself.
func AtRoundEnds(p Process, steps int) Process {
	if steps == 1 {
		return p
	}
	r := rounds{p, steps}
	if w, ok := p.(Weighted); ok {
		return weightedRounds{r, w}
	}
	return r
}

type rounds struct {
	Process
	steps int
}

func (p rounds) Active(dst []Event, t int) []Event {
	checkTime(t)
	if (t+1)%p.steps != 0 {
		return dst[:0]
	}
	return p.Process.Active(dst, t/p.steps)
}

func (p rounds) Rate(edge int) float64 { return p.Process.Rate(edge) / float64(p.steps) }

type weightedRounds struct {
	rounds
	own Weighted
}

func (p weightedRounds) Weight(e Event, t int) float64 { return p.own.Weight(e, t/p.steps) }
