package config

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"fspda/dist"
	"fspda/internal/bounded"
	"fspda/internal/rng"
	"fspda/train/membership"
	"fspda/train/setting"
	"fspda/train/simnet"
)

// The values of membership besides the path of a file: all agents are present, or go on without those
// that fall silent.
const (
	fixedMembers   = "fixed"
	elasticMembers = "elastic"
)

// usualDropAfter takes the place of drop_after 0 in an elastic run.
const usualDropAfter = 15

// spreadOrphans is the value of orphans that deals the examples of absent agents out.
const spreadOrphans = "spread"

var (
	needsChanges = needs("membership elastic, or a file of changes", func(c Config) bool {
		return c.Membership != fixedMembers
	})
	needsElastic = needs("membership elastic", func(c Config) bool { return c.Membership == elasticMembers })
)

var membershipKeys = []setting.Key{
	{Name: "membership", Topic: "exchange", Default: fixedMembers, Choices: []string{fixedMembers, elasticMembers},
		Forms: true, Check: notEmpty, Since: "0.2.0",
		Help: "which agents take part: fixed, all of them all the time; elastic, the others go on without one that " +
			"falls silent, which joins again; or a file of the epochs at which agents leave and join, which is " +
			"simulated"},
	{Name: "min_agents", Topic: "exchange", Default: 1, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Needs: []setting.Need{needsElastic, needsRun("at least as many agents",
			func(s *Setup, c Config) bool { return c.MinAgents <= s.Graph.N })}, Since: "0.2.0",
		Help: "membership elastic: fewest members: below it all wait"},
	{Name: "orphans", Topic: "exchange", Choices: []string{"leave", spreadOrphans},
		Needs: []setting.Need{needsChanges, needsRun("data that is not text, and objective agents",
			func(s *Setup, c Config) bool {
				return c.Orphans == "leave" || !s.readsText(c) && c.Objective == "agents"
			})}, Since: "0.2.0",
		Help: "examples of absent agents: leave, they are left out; spread, the members train on them, too"},
}

// neverOrLong refuses a silence of less than a second.
func neverOrLong(key string, value any) error {
	if v := value.(float64); v != 0 && v < 1 {
		return Invalid(key, v, "expected 0, or 1 to 1e9 seconds")
	}
	return nil
}

// Simulated holds the simulated network, the times of gradients, and who takes part.
type Simulated struct {
	Links        *simnet.Links // nil: none
	ComputeTimes simnet.ComputeTimes
	Members      *membership.Log
}

// maxMembership is the size in bytes of the longest file of changes that is read.
const maxMembership = 64 << 20

// readMembers reads the changes of the members, and refuses those that the run cannot have.
func (s *Setup) readMembers() error {
	c := &s.Config
	if c.Membership == fixedMembers {
		return nil
	}
	if s.Traits.Regroup == nil {
		why := s.Traits.Rigid
		if why == "" {
			why = "does not say what an agent does when others leave or join (Traits.Regroup)"
		}
		return Invalid("membership", c.Membership, "%s %s: use membership fixed, or another algorithm", c.Algo, why)
	}
	if c.Membership == elasticMembers {
		s.Members = membership.Elastic(s.Graph.N)
		return nil
	}
	text, err := bounded.File(c.Membership, maxMembership)
	if err == nil {
		s.Members, err = membership.Parse(text, s.Graph.N)
	}
	if err != nil {
		return &Error{Key: "membership", Got: c.Membership, Err: err, Want: "expected fixed, or a file with a line " +
			`such as {"epoch":1,"at":100,"left":[3]} for each change`}
	}
	for _, e := range s.Members.Epochs() {
		if err := s.checkEpoch(e); err != nil {
			return err
		}
	}
	return nil
}

// CheckOutages refuses an elastic run of one process in which nobody falls silent.
func (s *Setup) CheckOutages() error {
	c := s.Config
	if !s.DropsSilent() {
		return nil
	}
	if s.Links == nil || len(s.Links.Outages()) == 0 {
		return Invalid("membership", c.Membership, "agents of one process do not fall silent: give links with outages "+
			"(docs/links.md), or a file of changes as membership")
	}
	for _, o := range s.Links.Outages() {
		if math.IsInf(o.To, 1) && s.Graph.N <= c.MinAgents {
			return Invalid("min_agents", c.MinAgents, "all would wait for agent %d for ever, which goes on at no time "+
				"by the file of links: use fewer", o.Agent)
		}
	}
	return nil
}

// checkOutages refuses outages that the run cannot have.
func (s *Setup) checkOutages() error {
	if s.Links == nil {
		return nil
	}
	for _, o := range s.Links.Outages() {
		switch {
		case s.Asynchronous():
			return Invalid("links", s.Config.Links, "agent %d has an outage, and agents of %s have no iterations in "+
				"common before which others could wait: leave outages out", o.Agent, s.Config.Algo)
		case math.IsInf(o.To, 1) && !s.DropsSilent():
			return Invalid("links", s.Config.Links, "agent %d has an outage that does not end, and the others would "+
				"wait for ever: give it a to_s, or use membership elastic", o.Agent)
		}
	}
	return nil
}

// Elastic reports whether members go on without agents that fall silent.
func (c *Config) Elastic() bool { return c.Membership == elasticMembers }

// DropsSilent reports whether members go on without an agent that has an outage.
func (s *Setup) DropsSilent() bool { return s.Config.Membership == elasticMembers }

// DropAfter is the silence in seconds after which members go on without an agent.
func (s *Setup) DropAfter() float64 { return cmp.Or(s.Config.DropAfter, usualDropAfter) }

// checkEpoch refuses a change inside a round, and one whose last exchange had other contributors at
// some members than at others.
func (s *Setup) checkEpoch(e membership.Epoch) error {
	refuse := func(format string, args ...any) error {
		return Invalid("membership", s.Config.Membership, "epoch %d: "+format, append([]any{e.Epoch}, args...)...)
	}
	tau := s.RoundLength()
	if e.At%tau != 0 {
		return refuse("is valid from iteration %d on, inside a round of %d iterations: use %d or %d", e.At, tau,
			e.At-e.At%tau, e.At-e.At%tau+tau)
	}
	rules := s.MemberRules()
	if e.Donated != 0 && e.Donated != e.At && (!rules.Ahead || e.Donated%tau != 0) {
		return refuse("the donor gives its state at iteration %d, but with %s new members get that of iteration %d",
			e.Donated, s.Config.Algo, e.At)
	}
	for _, i := range slices.Sorted(maps.Keys(e.Idle)) {
		if from := e.Idle[i]; from.K >= rules.Exchanges {
			return refuse("agent %d is idle from %v on: %s has %d in an iteration", i, from, s.Config.Algo,
				rules.Exchanges)
		}
	}
	members := s.Members.Members(e.At)
	if s.Traits.Edges.Collective && len(e.Idle) > 0 {
		first := membership.Exchange{T: -1}
		for _, i := range members {
			from := e.IdleAt(i)
			if last := (membership.Exchange{T: from.T / tau, K: from.K}); first.T < 0 {
				first = last
			} else if last != first && !slices.Contains(e.Joined, i) {
				return refuse("agent %d is idle from %v on, and another one in another round: what %s sends "+
					"goes to all members or to none", i, from, s.Config.Algo)
			}
		}
	}
	if s.exchanges() && !s.connects(members) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("membership: from iteration %d on the members %v are not "+
			"connected on graph %s: each part goes on by itself", e.At, members, s.Config.Graph))
	}
	return nil
}

// MemberRules returns the rules by which members leave.
func (s *Setup) MemberRules() membership.Rules {
	return membership.Rules{Agents: s.Graph.N, MinAgents: s.Config.MinAgents, Joint: s.Traits.Edges.Collective,
		Exchanges: 1 + len(s.Traits.Between), Round: s.RoundLength(), Sends: s.sends,
		Ahead: !s.Traits.Edges.Collective && !s.Traits.EdgesFromModel}
}

// sends lists the pairs of agents of which the first sends to the second in iteration t, if both
// are members.
func (s *Setup) sends(t int) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		switch d := s.Directed(); {
		case d != nil:
			for _, a := range d.Arcs(nil, t) {
				if !yield(a.From, a.To) {
					return
				}
			}
		case s.Broadcasts() && s.Process.Broadcasts():
			for _, i := range s.Process.Senders(nil, t) {
				for _, j := range s.Graph.Neighbours(i) {
					if !yield(i, j) {
						return
					}
				}
			}
		default:
			for _, e := range s.Process.Active(nil, t) {
				if !yield(e.From, e.To) || !yield(e.To, e.From) {
					return
				}
			}
		}
	}
}

// regular reports whether each agent sends to as many as it receives from. Where agents may be
// absent it does not.
func (s *Setup) regular(d dist.Directed) bool { return d.Regular() && !s.Members.Elastic() }

// connects reports whether the graph connects some agents without the others.
func (s *Setup) connects(members []int) bool {
	reached := []int{members[0]}
	for k := 0; k < len(reached); k++ {
		for _, j := range s.Graph.Neighbours(reached[k]) {
			if slices.Contains(members, j) && !slices.Contains(reached, j) {
				reached = append(reached, j)
			}
		}
	}
	return len(reached) == len(members)
}

// ShardAt lists the training examples of an agent from iteration t on: its own, and with orphans
// spread a share of the absent agents' examples.
func (s *Setup) ShardAt(agent, t int) []int32 {
	own := s.Shards[agent]
	if s.Config.Orphans != spreadOrphans || !s.Members.Present(agent, t) {
		return own
	}
	members := s.Members.Members(t)
	at := slices.Index(members, agent)
	shard := slices.Clone(own)
	for j, orphans := range s.Shards {
		if slices.Contains(members, j) {
			continue
		}
		dealt := slices.Clone(orphans)
		stream := rng.New(s.Config.Seed, "orphans", uint64(j))
		stream.Permute(dealt)
		for k := at; k < len(dealt); k += len(members) {
			shard = append(shard, dealt[k])
		}
	}
	return shard
}
