package simnet

import (
	"cmp"
	"math"
	"slices"
)

// Outage is a time during which an agent does nothing, and after which it goes on.
type Outage struct {
	Agent    int
	From, To float64 // Seconds; To is +Inf if it never goes on.
}

// outageSpec is an outage of some agents in a file of links.
type outageSpec struct {
	Agents agentList `yaml:"agents"`
	From   *float64  `yaml:"from_s"`
	To     *float64  `yaml:"to_s"`
}

// Outages lists the outages, ordered by their begin and then by agent.
func (l *Links) Outages() []Outage { return l.outages }

// addOutages adds the outages of a file.
func (r *linksReader) addOutages(where string, o outageSpec) {
	isSecond := func(v float64) bool { return v >= 0 && v <= maxValue }
	const want = "seconds, from 0 to 1e9"
	r.number(where, "from_s", o.From, isSecond, want)
	r.number(where, "to_s", o.To, isSecond, want)
	switch {
	case !r.agents(where, o.Agents):
		return
	case o.From == nil:
		r.bad(where, "has no from_s: say when the outage begins, in seconds")
		return
	case o.To != nil && !(*o.To > *o.From):
		r.bad(where, "ends at %v s, expected a time after its begin, %v s", *o.To, *o.From)
		return
	}
	to := math.Inf(1)
	if o.To != nil {
		to = *o.To
	}
	for _, i := range o.Agents.all() {
		for _, other := range r.outages {
			if other.Agent == i && *o.From <= other.To && other.From <= to {
				r.bad(where, "agent %d has another outage at that time, from %v s", i, other.From)
				return
			}
		}
		r.outages = append(r.outages, Outage{i, *o.From, to})
	}
	slices.SortFunc(r.outages, func(a, b Outage) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Agent, b.Agent))
	})
}

// Pause makes the agent's outages part of its time: at the end of an iteration it waits for the end
// of an outage that has begun.
func (c *Clock) Pause(outages []Outage) {
	for _, o := range outages {
		if o.Agent == c.id {
			c.outages = append(c.outages, o)
		}
	}
}

// resumes returns the time at which the agent goes on that has come to a time.
func (c *Clock) resumes(now float64) float64 {
	for _, o := range c.outages {
		if o.From <= now && now < o.To {
			now = o.To
		}
	}
	return now
}
