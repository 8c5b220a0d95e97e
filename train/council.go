package train

import (
	"context"
	"math"
	"slices"
	"sync"

	"fspda/train/config"
	"fspda/train/membership"
	"fspda/train/simnet"
)

// assembly decides of changes of the members.
type assembly interface {
	// meet is called by each agent, a member or not, at the head of each iteration.
	meet(a *agent, t int) error
}

// decided is the assembly of a run whose changes are known before, or that has none.
type decided struct{}

func (decided) meet(*agent, int) error { return nil }

// council is the assembly of a run in virtual time, whose agents have outages. At the head of each
// round it compares their clocks. An agent whose outage has begun leaves, once it has been silent
// for so long that the others drop it, and they wait until then. It joins when the outage has ended
// for all of them. The council has a seat for each agent, so that its decisions depend on clocks
// alone.
type council struct {
	setup *config.Setup

	mu      sync.Mutex
	changed sync.Cond
	turn    int
	clocks  map[int]float64 // The times of those that have come to this turn.
	until   float64         // The time until which members wait.
	err     error
}

// newAssembly makes the assembly of a run.
func newAssembly(s *config.Setup) assembly {
	if !s.DropsSilent() {
		return decided{}
	}
	c := &council{setup: s, clocks: map[int]float64{}}
	c.changed.L = &c.mu
	return c
}

func (c *council) meet(a *agent, t int) error {
	if t%c.setup.RoundLength() != 0 {
		return nil
	}
	defer context.AfterFunc(a.ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	turn := c.turn
	if c.clocks[a.id] = a.time; len(c.clocks) == c.setup.Graph.N {
		c.until, c.err = c.decide(t)
		c.turn++
		clear(c.clocks)
		c.changed.Broadcast()
	}
	for c.turn == turn && a.ctx.Err() == nil {
		c.changed.Wait()
	}
	if c.turn == turn {
		return context.Cause(a.ctx)
	}
	if c.err == nil && c.setup.Members.Present(a.id, t) {
		a.clock.Receive(c.until)
		a.time = a.clock.End()
	}
	return c.err
}

// decide enters what happens at the head of iteration t in the log, and returns the time until which
// the members wait.
func (c *council) decide(t int) (until float64, err error) {
	s := c.setup
	e := membership.Epoch{Epoch: len(s.Members.Epochs()) + 1, At: t}
	members := s.Members.Members(t)
	for _, o := range s.Links.Outages() {
		if slices.Contains(members, o.Agent) && o.From <= c.clocks[o.Agent] && c.clocks[o.Agent] < o.To {
			if len(members) <= s.Config.MinAgents {
				until = math.Max(until, o.To)
				continue
			}
			until = math.Max(until, math.Min(o.From+s.DropAfter(), o.To))
			if o.From+s.DropAfter() < o.To {
				e.Left = append(e.Left, o.Agent)
				members = slices.DeleteFunc(members, func(i int) bool { return i == o.Agent })
			}
		}
	}
	now := until
	for _, i := range members {
		now = math.Max(now, c.clocks[i])
	}
	for i := range s.Graph.N {
		if !s.Members.Present(i, t) && !away(s.Links.Outages(), i, now) {
			e.Joined = append(e.Joined, i)
		}
	}
	if len(e.Left)+len(e.Joined) > 0 {
		err = s.Members.Add(e)
	}
	return until, err
}

// away reports whether an agent has an outage at a time.
func away(outages []simnet.Outage, agent int, now float64) bool {
	return slices.ContainsFunc(outages, func(o simnet.Outage) bool {
		return o.Agent == agent && o.From <= now && now < o.To
	})
}
