// Package council decides of the members of a run in virtual time whose agents have outages.
//
// At the head of each round it compares the clocks of all agents. An agent whose outage has begun
// leaves, once it has been silent for so long that the others drop it, and they wait until then. It
// joins again when the outage has ended.
package council

import (
	"context"
	"math"
	"slices"
	"sync"

	"fspda/train/config"
	"fspda/train/membership"
	"fspda/train/simnet"
)

// Council decides of the changes. It has a seat for each agent, a member or not, so that its
// decisions depend on clocks alone.
type Council struct {
	setup *config.Setup

	mu      sync.Mutex
	changed sync.Cond
	turn    int
	clocks  map[int]float64 // The times of those that have come to this turn.
	until   float64         // The time until which members wait.
	err     error
}

// New makes the council of a run.
func New(s *config.Setup) *Council {
	c := &Council{setup: s, clocks: map[int]float64{}}
	c.changed.L = &c.mu
	return c
}

// Meet is called by each agent at the head of each iteration, with its time. It returns the time
// until which a member waits there. At the head of a round it waits for all agents, or for ctx.
func (c *Council) Meet(ctx context.Context, agent, t int, now float64) (until float64, err error) {
	if t%c.setup.RoundLength() != 0 {
		return 0, nil
	}
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	turn := c.turn
	if c.clocks[agent] = now; len(c.clocks) == c.setup.Graph.N {
		c.until, c.err = c.decide(t)
		c.turn++
		clear(c.clocks)
		c.changed.Broadcast()
	}
	for c.turn == turn && ctx.Err() == nil {
		c.changed.Wait()
	}
	if c.turn == turn {
		return 0, context.Cause(ctx)
	}
	return c.until, c.err
}

// decide adds the changes at the head of iteration t to the log, and returns the time until which the
// members wait.
func (c *Council) decide(t int) (until float64, err error) {
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
