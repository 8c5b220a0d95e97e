package agreement

import (
	"maps"
	"slices"

	"fspda/train/membership"
)

// kind is the kind of an entry.
type kind string

const (
	silent   kind = "silent"   // By has not heard Agent, or not seen it advance, for too long.
	heard    kind = "heard"    // By hears Agent again.
	drop     kind = "drop"     // The user wants Agent to leave.
	leave    kind = "leave"    // Agent leaves.
	join     kind = "join"     // Agent joins.
	reach    kind = "reach"    // By goes on to iteration T at least, and says where exchanges failed.
	progress kind = "progress" // By says how far agents have come, when all members have said reach.
)

// entry is an entry of the log.
type entry struct {
	Kind  kind `json:"kind"`
	By    int  `json:"by"`
	Agent int  `json:"agent"`
	Life  int  `json:"life,omitempty"` // The life of Agent, or of By in a reach.

	Revision int    `json:"revision,omitempty"` // Of the change that By has reached.
	Process  uint64 `json:"process,omitempty"`  // A number that the process of By has drawn.
	T        int    `json:"t,omitempty"`
	Lead     int    `json:"lead,omitempty"` // The iterations that pass while a new member gets the donor's state.
	// Idle is the first exchange without each agent that leaves.
	Idle map[int]membership.Exchange `json:"idle,omitempty"`
	// Seen are the exchanges to which agents have come.
	Seen map[int]membership.Exchange `json:"seen,omitempty"`
}

// state follows from the entries, in their order. It is the same in all processes.
type state struct {
	membership.Rules
	lives         []int  // How often each slot has got a new agent.
	present       []bool // As of the latest entry.
	accused       []map[int]bool
	dropped       []bool
	epochs        []membership.Epoch
	pending       *pending // The change whose iteration is not known yet; nil: there is none.
	revision      int      // The number of leaves and joins.
	writer, moved int      // Who evaluates the run, and from which iteration on.
}

// pending is a change that waits until all members have said how far they are.
type pending struct {
	epochs   []membership.Epoch          // Without numbers and iterations, one for each agent.
	holds    map[int]int                 // The iteration that the latest process of each member goes on to.
	reached  map[int]int                 // The iteration that each member goes on to at least.
	current  map[int]uint64              // The processes of members that have said reach in the latest revision.
	answered map[int]bool                // Members that have said progress since all have said reach.
	seen     map[int]membership.Exchange // The exchanges to which agents have come.
	lead     int                         // The most iterations that a member has said as lead.
	moves    bool                        // Another member evaluates the run from then on.
}

func newState(r membership.Rules) *state {
	r.MinAgents, r.Exchanges = max(1, r.MinAgents), max(1, r.Exchanges)
	s := &state{Rules: r, lives: make([]int, r.Agents), present: make([]bool, r.Agents),
		accused: make([]map[int]bool, r.Agents), dropped: make([]bool, r.Agents)}
	for i := range r.Agents {
		s.present[i], s.accused[i] = true, map[int]bool{}
	}
	return s
}

// view returns the state of the members.
func (s *state) view() membership.View {
	v := membership.View{Epochs: slices.Clone(s.epochs), Lives: slices.Clone(s.lives), Writer: s.writer,
		Moved: s.moved}
	if s.pending != nil {
		v.Pending = len(s.pending.epochs)
	}
	return v
}

// members lists the members as of the latest entry, without those that join.
func (s *state) members() (all []int) {
	for i, here := range s.present {
		if here && !s.joins(i) {
			all = append(all, i)
		}
	}
	return all
}

// joins reports whether an agent joins with the pending change.
func (s *state) joins(agent int) bool {
	return s.pending != nil && slices.ContainsFunc(s.pending.epochs, func(e membership.Epoch) bool {
		return slices.Contains(e.Joined, agent)
	})
}

// leaving lists the agents that leave with the pending change.
func (s *state) leaving() (all []int) {
	if s.pending != nil {
		for _, e := range s.pending.epochs {
			all = append(all, e.Left...)
		}
	}
	return all
}

// outcome is the effect of an entry.
type outcome struct {
	left   int  // The agent that leaves; -1: none.
	joins  bool // An agent joins with the pending change.
	formed bool // The iteration of the pending change is known.
	epochs []membership.Epoch
}

// apply takes an entry.
func (s *state) apply(e entry) (o outcome) {
	o.left = -1
	if e.Agent < 0 || e.Agent >= s.Agents || e.By < 0 || e.By >= s.Agents {
		return o
	}
	switch e.Kind {
	case silent:
		if e.Life == s.lives[e.Agent] && s.present[e.Agent] {
			s.accused[e.Agent][e.By] = true
		}
	case heard:
		delete(s.accused[e.Agent], e.By)
	case drop:
		s.dropped[e.Agent] = s.present[e.Agent] && e.Life == s.lives[e.Agent]
	case leave:
		s.leave(e, &o)
	case join:
		s.join(e, &o)
	case reach:
		s.reach(e)
	case progress:
		s.progress(e)
	}
	if p := s.pending; p != nil && len(p.answered) == len(s.members()) {
		o.formed, o.epochs = true, s.form()
	}
	return o
}

// mayLeave reports whether an agent may leave.
func (s *state) mayLeave(agent, life int) bool {
	return s.present[agent] && life == s.lives[agent] && (s.joins(agent) || len(s.members()) > s.MinAgents)
}

// leave is the entry of that name. An agent that was about to join joins no more.
func (s *state) leave(e entry, o *outcome) {
	if !s.mayLeave(e.Agent, e.Life) {
		return
	}
	p := s.change()
	if s.joins(e.Agent) {
		p.epochs = slices.DeleteFunc(p.epochs, func(c membership.Epoch) bool {
			return slices.Contains(c.Joined, e.Agent)
		})
	} else {
		idle := map[int]membership.Exchange{}
		p.epochs = append(p.epochs, membership.Epoch{Left: []int{e.Agent}, Idle: idle})
	}
	s.present[e.Agent], s.dropped[e.Agent] = false, false
	s.lives[e.Agent]++
	clear(s.accused[e.Agent])
	for i := range s.accused {
		delete(s.accused[i], e.Agent)
	}
	delete(p.reached, e.Agent)
	if s.writer == e.Agent {
		s.writer, p.moves = s.members()[0], true
	}
	o.left = e.Agent
}

// join is the entry of that name.
func (s *state) join(e entry, o *outcome) {
	if s.present[e.Agent] || e.Life != s.lives[e.Agent] || s.pending != nil {
		return
	}
	p := s.change()
	p.epochs = append(p.epochs, membership.Epoch{Joined: []int{e.Agent}})
	s.present[e.Agent], o.joins = true, true
}

// change begins a new revision of the pending change.
func (s *state) change() *pending {
	if s.pending == nil {
		s.pending = &pending{reached: map[int]int{}, seen: map[int]membership.Exchange{}}
	}
	s.revision++
	s.pending.current, s.pending.answered, s.pending.holds = map[int]uint64{}, map[int]bool{}, map[int]int{}
	return s.pending
}

// answers reports whether an entry of a member is about the latest revision.
func (s *state) answers(e entry) bool {
	return s.pending != nil && e.Revision == s.revision && e.Life == s.lives[e.By] &&
		slices.Contains(s.members(), e.By)
}

// told reports whether all members have said reach in the latest revision.
func (s *state) told() bool { return s.pending != nil && len(s.pending.current) == len(s.members()) }

// progress is the entry of that name.
func (s *state) progress(e entry) {
	if !s.answers(e) || !s.told() {
		return
	}
	p := s.pending
	p.answered[e.By] = true
	for i, at := range e.Seen {
		if i >= 0 && i < s.Agents {
			p.seen[i] = at.Later(p.seen[i])
		}
	}
}

// reach is the entry of that name. Its iteration counts whatever the revision: a member holds
// there. If another process of the member has said so before, it has ended. Its notes do not
// count any more, and all members say their progress again.
func (s *state) reach(e entry) {
	p := s.pending
	if !s.answers(e) {
		return
	}
	p.reached[e.By] = max(p.reached[e.By], e.T)
	p.holds[e.By], p.lead = e.T, max(p.lead, min(e.Lead, maxLead))
	if p.current[e.By] != e.Process {
		clear(p.answered)
	}
	p.current[e.By] = e.Process
	for _, c := range p.epochs {
		for _, gone := range c.Left {
			if from, noted := e.Idle[gone]; noted && s.Joint {
				c.Idle[e.By] = from.Later(c.Idle[e.By]) // Others may have used the results of the earlier process.
			} else if noted {
				c.Idle[e.By] = from
			}
		}
	}
}

// maxLead is the most iterations by which a change comes after the state of the donor.
const maxLead = 1000

// lead returns the iteration at which the pending change begins. at is the first one possible. An
// agent that joins alone gets the donor's state of iteration at, and joins some iterations later:
// the members go on meanwhile. There is no such delay while a member has not passed the earlier
// change: if that member leaves, the others need the next change at the same iteration.
func (s *state) lead(at int) int {
	p, n := s.pending, len(s.epochs)
	behind := func(t int) bool { return t == 0 || n > 0 && t <= s.epochs[n-1].At }
	if len(p.epochs) > 1 || len(p.epochs[0].Joined) == 0 || !s.Ahead || p.lead <= 0 ||
		slices.ContainsFunc(slices.Collect(maps.Values(p.holds)), behind) {
		return at
	}
	p.epochs[0].Donated = at
	return s.After(membership.Exchange{T: at + p.lead - 1})
}

// form ends the pending change, and returns its epochs.
func (s *state) form() []membership.Epoch {
	p, at, members := s.pending, 0, s.members()
	for _, t := range p.reached {
		at = max(at, t)
	}
	if n := len(s.epochs); n > 0 { // The member that was furthest then may be the one that leaves now.
		at = max(at, s.epochs[n-1].At)
	}
	for i, e := range p.seen { // Others have messages of a process that has ended.
		if slices.Contains(members, i) {
			at = max(at, s.After(e))
		}
	}
	if len(p.epochs) > 0 {
		at = s.lead(at)
	}
	s.pending = nil
	if p.moves {
		s.moved = at
	}
	for k := range p.epochs {
		c := &p.epochs[k]
		c.Epoch, c.At = len(s.epochs)+1, at
		if s.Joint {
			unite(c, slices.DeleteFunc(slices.Clone(members), func(i int) bool { return s.joinedAt(i, at) }))
		}
		maps.DeleteFunc(c.Idle, func(_ int, e membership.Exchange) bool { return e.T >= at })
		s.epochs = append(s.epochs, *c)
	}
	if !s.Joint {
		s.Settle(s.epochs, len(p.epochs), p.seen)
	}
	return p.epochs
}

// joinedAt reports whether an agent is a member from an iteration on: it had no exchange before.
func (s *state) joinedAt(agent, at int) bool {
	return slices.ContainsFunc(s.epochs, func(e membership.Epoch) bool {
		return e.At == at && slices.Contains(e.Joined, agent)
	})
}

// unite lets exchanges with the agent that left fail from the latest one on that a member has noted,
// at all of them: who has noted it has used what all have.
func unite(c *membership.Epoch, members []int) {
	if len(c.Left) == 0 {
		return
	}
	var latest membership.Exchange
	for _, i := range members {
		if e := c.Idle[i]; latest.Before(e) {
			latest = e
		}
	}
	clear(c.Idle)
	for _, i := range members {
		c.Idle[i] = latest
	}
}

// silenced lists agents that a strict majority of the other members does not hear, and those that
// the user wants to leave.
func (s *state) silenced() (all []int) {
	members := s.members()
	for i := range s.Agents {
		others, against := 0, 0
		for _, by := range members {
			if by != i {
				others++
				if s.accused[i][by] {
					against++
				}
			}
		}
		if s.mayLeave(i, s.lives[i]) && (s.dropped[i] || others > 0 && 2*against > others) {
			all = append(all, i)
		}
	}
	return all
}
