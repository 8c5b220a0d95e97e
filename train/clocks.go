package train

import "fspda/train/algo"

// The clocks of fspda-async.
const (
	ClockVirtual = "virtual"
	ClockReal    = "real"
)

// RealTime tells whether the events of an asynchronous run happen as they do, and not by a timeline.
func (s *Setup) RealTime() bool { return s.Config.Clock == ClockReal && s.method.Edges == Clocks }

// checkLive settles what a run in real time can be asked for.
func (s *Setup) checkLive() error {
	c := s.Config
	switch {
	case c.Clock == ClockReal && s.method.Edges != Clocks:
		return wrong("clock", c.Clock, "%s is synchronous: use clock virtual, or fspda-async", c.Algo)
	case c.DropAfter > 0 && !s.RealTime():
		return wrong("drop_after", c.DropAfter,
			"a run of %s with clock %s waits for all its agents: leave it 0, or use fspda-async with clock real", c.Algo, c.Clock)
	case s.RealTime() && s.Links != nil:
		return wrong("links", c.Links, "a simulated network has virtual time: use clock virtual")
	}
	return nil
}

// clocks settles the virtual times of an asynchronous run.
func (s *Setup) clocks() (err error) {
	c := &s.Config
	if c.GradientTime > 0 {
		if s.Slowness, err = parseSlowness(c.Slowness, s.Graph.N, c.Seed); err != nil {
			return &ConfigError{Key: "slowness", Got: c.Slowness, Err: err}
		}
	}
	if s.method.Edges != Clocks {
		return nil
	}
	if s.Links != nil {
		return s.clocksByLinks()
	}
	if s.computeTime, err = parseDistribution(c.ComputeTime); err != nil {
		return &ConfigError{Key: "compute_time", Got: c.ComputeTime, Err: err}
	}
	if s.Slowness, err = parseSlowness(c.Slowness, s.Graph.N, c.Seed); err != nil {
		return &ConfigError{Key: "slowness", Got: c.Slowness, Err: err}
	}
	s.warnLonely()
	return nil
}

func (s *Setup) warnLonely() {
	if s.Config.Contacts == 0 && s.Graph.N > 1 {
		s.Warnings = append(s.Warnings, "contacts is 0: the agents never meet, and each trains by itself")
	}
}

// ContactShare is the share of logical iterations at which an edge is used. Logical time runs ahead
// with every exchange, so the share follows from no formula: it is counted over the first thousand
// iterations.
func (s *Setup) ContactShare() float64 {
	if len(s.Graph.Edges) == 0 || s.Config.Contacts == 0 {
		return 0
	}
	const iterations = 1000
	meetings := 0
	l := newTimeline(s, algo.Async{Coef: algo.One})
	for l.latest < iterations {
		l.advance(func(_ int, o op) {
			if o.kind == opMeet {
				meetings++
			}
		})
	}
	return float64(meetings) / 2 / iterations / float64(len(s.Graph.Edges))
}

// Async is the algorithm of an asynchronous run.
func (s *Setup) Async() algo.Async { return s.Algo.(algo.Async) }

// clocksByLinks takes the times of gradients from the file of links.
func (s *Setup) clocksByLinks() error {
	c, base := &s.Config, Default()
	switch {
	case c.ComputeTime != base.ComputeTime:
		return wrong("compute_time", c.ComputeTime,
			"the file of links says how long a gradient takes: leave one of the two out")
	case c.Slowness != base.Slowness:
		return wrong("slowness", c.Slowness, "the file of links says how fast the agents are: leave one of the two out")
	}
	for i, g := range s.Links.gradient {
		if g == 0 {
			return wrong("links", c.Links, "a gradient of agent %d takes no time, so that %s would never come to another event: give a gradient_ms above 0", i, c.Algo)
		}
	}
	if s.Links.unit == 0 {
		return wrong("links", c.Links, "contacts counts exchanges in the time of a gradient: give a gradient_ms above 0")
	}
	s.computeTime, s.Slowness = s.Links.law, s.Links.gradient
	s.warnLonely()
	return nil
}
