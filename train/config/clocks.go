package config

import (
	"fmt"
	"math"
	"slices"

	"fspda/internal/bounded"
	"fspda/train/algo"
	"fspda/train/setting"
	"fspda/train/simnet"
)

// The values of the key clock.
const (
	ClockVirtual = "virtual"
	ClockReal    = "real"
)

// RealTime reports whether an asynchronous run runs in real time, without a timeline.
func (s *Setup) RealTime() bool { return s.Config.Clock == ClockReal && s.method.realTime() }

// realTime reports whether the method can run in real time.
func (m method) realTime() bool { return m.traits.RealTime != nil }

// checkRealTime refuses keys that a run with this clock cannot have.
func (s *Setup) checkRealTime() error {
	c := s.Config
	switch {
	case c.Clock == ClockReal && !s.Asynchronous():
		return Invalid("clock", c.Clock, "%s is synchronous: use clock virtual, or fspda-async", c.Algo)
	case c.Clock == ClockReal && !s.RealTime():
		return Invalid("clock", c.Clock, "%s runs in virtual time only: an agent that fails in real time leaves its "+
			"differences in the momenta of its neighbours, from which they cannot be removed: use clock virtual, or "+
			"fspda-async", c.Algo)
	case c.DropAfter > 0 && !s.RealTime() && !s.DropsSilent():
		return Invalid("drop_after", c.DropAfter, "a run of %s with clock %s waits for all its agents: leave it "+
			"0, or use fspda-async with clock real", c.Algo, c.Clock)
	case s.RealTime() && s.Links != nil:
		return Invalid("links", c.Links, "a simulated network has virtual time: use clock virtual")
	}
	return nil
}

// leastCMax is the least value of c_max auto.
const leastCMax = 10

// settleCMax resolves c_max auto by the declared times of gradients.
func (s *Setup) settleCMax() {
	c := &s.Config
	if !c.given.CMax.Auto {
		return
	}
	c.CMax = leastCMax
	if mean := s.ComputeTimes.Mean; s.Asynchronous() && len(mean) > 0 && slices.Min(mean) > 0 {
		c.CMax = sixDigits(math.Max(leastCMax, 2*slices.Max(mean)/slices.Min(mean)))
	}
}

// limitedCoefficients warns of agents that compute so rarely that c_max limits their coefficients:
// the run then ends near the optimum of an objective that gives them less weight. Exchanges cancel
// gradients, so that how often an agent computes is counted, over 1000 iterations of logical time.
func (s *Setup) limitedCoefficients() []string {
	c := s.Config
	if c.Coef != string(algo.Inverse) || s.RealTime() || s.Graph.N < 2 || s.Graph.N > maxCounted {
		return nil
	}
	const iterations = 1000
	l := s.timelineOf(algo.Protocol{Coef: algo.One})
	for l.Latest < iterations {
		l.Advance(func(int, simnet.Op) {})
	}
	worst, agent := 0.0, 0
	for i, k := range l.Clocks {
		if need := float64(k.T) / math.Max(1, float64(k.G)); need > worst {
			worst, agent = need, i
		}
	}
	if worst <= 1.1*c.CMax {
		return nil
	}
	return []string{fmt.Sprintf("agent %d completes a gradient in one of %.3g iterations of its logical time, and its "+
		"coefficient is limited to c_max %v: the run ends near the optimum of an objective in which the agent counts "+
		"%.2g of what it should; set c_max %.2g, and a smaller alpha if the run then diverges", agent, worst, c.CMax,
		c.CMax/worst, 1.5*worst)}
}

// maxCounted is the largest number of agents whose gradients are counted before a run.
const maxCounted = 256

// settleClocks settles the compute times of an asynchronous run, and of gradient_time.
func (s *Setup) settleClocks() (err error) {
	c := &s.Config
	defer s.settleCMax()
	if s.Asynchronous() && s.Links != nil {
		return s.settleClocksByLinks()
	}
	if s.Asynchronous() {
		if s.ComputeTimes.Distribution, err = simnet.ParseDistribution(c.ComputeTime); err != nil {
			return &Error{Key: "compute_time", Got: c.ComputeTime, Err: err}
		}
		s.warnNoContacts()
	}
	if s.Asynchronous() || c.GradientTime > 0 {
		if s.ComputeTimes.Mean, err = simnet.ParseSlowness(c.Slowness, s.Graph.N, c.Seed); err != nil {
			return &Error{Key: "slowness", Got: c.Slowness, Err: err}
		}
	}
	return nil
}

func (s *Setup) warnNoContacts() {
	if s.Config.Contacts == 0 && s.Graph.N > 1 {
		s.Warnings = append(s.Warnings,
			"contacts is 0: the agents never exchange anything, and each trains its own model")
	}
}

// settleClocksByLinks takes the compute times from the file of links.
func (s *Setup) settleClocksByLinks() error {
	c, base := &s.Config, Default()
	if c.ComputeTime != base.ComputeTime {
		return Invalid("compute_time", c.ComputeTime,
			"the file of links says how long a gradient takes: leave one of the two out")
	}
	if c.Slowness != base.Slowness {
		return Invalid("slowness", c.Slowness,
			"the file of links says how fast the agents are: leave one of the two out")
	}
	s.ComputeTimes = s.Links.ComputeTimes()
	for i, g := range s.ComputeTimes.Mean {
		if g == 0 {
			return Invalid("links", c.Links, "a gradient of agent %d takes no time, so that virtual time would "+
				"stand still: give a gradient_ms above 0", i)
		}
	}
	if s.Links.Unit() == 0 {
		return Invalid("links", c.Links,
			"contacts counts exchanges in the time of a gradient: give a gradient_ms above 0")
	}
	s.warnNoContacts()
	return nil
}

// maxLinks is the size in bytes of the longest file of links that is read: that of other YAML, and
// an entry for each pair of agents.
func maxLinks(agents int) int64 {
	return bounded.MaxYAML + int64(min(128*float64(agents)*float64(agents-1)/2, 64<<20))
}

func (s *Setup) readLinks() (err error) {
	s.Links, err = s.Config.given.ReadLinks()
	return err
}

// ReadLinks reads the file that the key links names. Without one it returns nil.
func (c Config) ReadLinks() (*simnet.Links, error) {
	if c.Links == "" {
		return nil, nil
	}
	text, err := bounded.File(c.Links, maxLinks(c.Agents))
	if err != nil {
		return nil, &Error{Key: "links", Got: c.Links, Err: err, Want: "name a file such as docs/links.md shows; " +
			"the folder of a run with links has a copy of theirs, links.yaml"}
	}
	links, err := simnet.Parse(text, c.Agents, c.Seed)
	if err != nil {
		return nil, &Error{Key: "links", Got: c.Links, Err: err}
	}
	return links, nil
}

// HasClocks reports whether each agent has a clock of virtual time. An asynchronous run has a
// timeline in place of clocks.
func (s *Setup) HasClocks() bool { return s.Links != nil && !s.Asynchronous() }

func (s *Setup) NewClock(agent int) *simnet.Clock {
	var allReduce func(bits float64) float64
	if s.InRing() {
		width := s.WireFormat().Bits()
		if s.Codec() != nil {
			width = 1
		}
		allReduce = func(bits float64) float64 { return s.Links.AllReduce(int(bits)/width, width) }
	}
	c := simnet.NewClock(s.Links, s.Config.Seed, agent, allReduce)
	if !s.DropsSilent() { // the others wait
		c.Pause(s.Links.Outages())
	}
	return c
}

func (s *Setup) NewTimeline() *simnet.Timeline { return s.timelineOf(s.Traits.Asynchronous) }

func (s *Setup) timelineOf(p simnet.Protocol) *simnet.Timeline {
	c := s.Config
	return simnet.NewTimeline(simnet.TimelineOptions{Algo: p, Agents: s.Graph.N, Edges: s.Graph.Edges,
		Calls: c.Contacts, Times: s.ComputeTimes.Multiplied(s.GradientsPerBatch()), Seed: c.Seed, Links: s.Links,
		Bits: 32 * float64(s.Mask.Len()*s.VectorsPerLink())})
}

// ContactShare returns the share of logical iterations in which an edge is used. There is no
// formula for it, because logical time advances with every exchange: it is counted over 1000
// iterations.
func (s *Setup) ContactShare() float64 {
	if len(s.Graph.Edges) == 0 || s.Config.Contacts == 0 {
		return 0
	}
	const iterations = 1000
	meetings := 0
	l := s.timelineOf(algo.Protocol{Coef: algo.One})
	for l.Latest < iterations {
		l.Advance(func(_ int, o simnet.Op) {
			if o.Kind == simnet.Meet {
				meetings++
			}
		})
	}
	return float64(meetings) / 2 / iterations / float64(len(s.Graph.Edges))
}

// notClocked reports whether simulated links change nothing but the times of a run. In an
// asynchronous run times decide which agents meet.
func notClocked(r setting.Run) bool { return !r.(question).given.clocked() }
