package membership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"sync/atomic"
)

// Epoch is a line of a log: a change of the members.
type Epoch struct {
	Epoch int `json:"epoch"` // The number of the change, counted from 1.
	At    int `json:"at"`    // The first iteration without those that left, and with those that joined.

	Left   []int `json:"left,omitempty"`   // Agents that are absent from At on.
	Joined []int `json:"joined,omitempty"` // Agents that are members from At on.
	// Donor is the member that gives its state to those that joined; nil: the lowest one that stays.
	Donor *int `json:"donor,omitempty"`
	// Donated is the iteration at whose head the donor gives its state; 0: At. An earlier one than At
	// lets the members go on while the state is on its way.
	Donated int `json:"donated,omitempty"`
	// Idle names, for members that stay, the first exchange with the one agent that left that fails at
	// them. It is the first one of iteration At for others. The agent that left takes part until then.
	Idle map[int]Exchange `json:"idle,omitempty"`
}

// Change describes a change of the members at the head of an iteration.
type Change struct {
	Members []int // The members from then on, ascending.
	Joined  []int // The new ones among them, ascending.
	Donor   int   // The old member that gives its state to new ones.
	// Early is the state that some of the new ones have got before; nil: none of them.
	Early *Donation
}

// Donation is the state that a donor gives, at the head of iteration T, to agents that become members
// later.
type Donation struct {
	Donor, T int
	To       []int
}

// Gives reports whether an agent gets the state. It may be asked of nil.
func (d *Donation) Gives(agent int) bool { return d != nil && slices.Contains(d.To, agent) }

// IdleAt is the first exchange with an agent that left that fails at another one.
func (e *Epoch) IdleAt(agent int) Exchange {
	if at, noted := e.Idle[agent]; noted {
		return at
	}
	return Exchange{T: e.At}
}

// Old lists the members that were there before, ascending.
func (c *Change) Old() []int {
	return slices.DeleteFunc(slices.Clone(c.Members), c.Joins)
}

// Joins reports whether an agent is a new member.
func (c *Change) Joins(agent int) bool { return slices.Contains(c.Joined, agent) }

// Log is the changes of the members of a run. Agents may ask it while a change of a later iteration
// is added.
type Log struct {
	agents  int
	elastic bool
	now     atomic.Pointer[changes]
}

// changes is the content of a log. It is not changed: a new one takes its place.
type changes struct {
	epochs []Epoch
	at     map[int]*Change // By the iteration from which on they are valid.
	spans  [][]span        // The times at which each agent is a member, ascending.
}

func (l *changes) copy() *changes {
	n := &changes{epochs: slices.Clip(l.epochs), at: maps.Clone(l.at)}
	for _, s := range l.spans {
		n.spans = append(n.spans, slices.Clone(s))
	}
	return n
}

// span is a time at which an agent is a member: from iteration first to before end.
type span struct {
	first, end int
	idle       map[int]Exchange // Where exchanges with it fail earlier than end, by member.
}

// never is the end of a span that lasts.
const never = int(^uint(0) >> 1)

// Replace makes these changes the log's only ones.
func (l *Log) Replace(epochs []Epoch) error {
	n := noChanges(l.agents)
	for _, e := range epochs {
		if err := n.add(l.agents, e); err != nil {
			return err
		}
	}
	l.now.Store(n)
	return nil
}

// Text writes changes as Parse reads them.
func Text(epochs []Epoch) []byte {
	var text []byte
	for _, e := range epochs {
		line, err := json.Marshal(e)
		if err != nil {
			panic(err) // an epoch is numbers
		}
		text = append(append(text, line...), '\n')
	}
	return text
}

// Fixed is the log of a run whose agents are members all the time.
func Fixed(agents int) *Log {
	l := &Log{agents: agents}
	l.now.Store(noChanges(agents))
	return l
}

// Elastic is the log of a run in which no agent has left yet.
func Elastic(agents int) *Log {
	l := Fixed(agents)
	l.elastic = true
	return l
}

// Parse reads the log of a run with the given number of agents: one [Epoch] in JSON a line.
func Parse(text []byte, agents int) (*Log, error) {
	var epochs []Epoch
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	for {
		var e Epoch
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			l := Elastic(agents)
			return l, l.Replace(epochs)
		} else if err != nil {
			return nil, fmt.Errorf("entry %d is not an epoch in JSON: %w", len(epochs)+1, err)
		}
		epochs = append(epochs, e)
	}
}

// Add adds a change at the end of the log.
func (l *Log) Add(e Epoch) error {
	n := l.now.Load().copy()
	if err := n.add(l.agents, e); err != nil {
		return err
	}
	l.now.Store(n)
	return nil
}

// noChanges is the content of a log without changes.
func noChanges(agents int) *changes {
	n := &changes{at: map[int]*Change{}}
	for range agents {
		n.spans = append(n.spans, []span{{end: never}})
	}
	return n
}

// add adds a change among the given number of agents.
func (l *changes) add(agents int, e Epoch) error {
	if err := l.check(agents, e); err != nil {
		return fmt.Errorf("epoch %d: %w", e.Epoch, err)
	}
	for _, i := range e.Left {
		last := &l.spans[i][len(l.spans[i])-1]
		last.end, last.idle = e.At, e.Idle
		if last.first == e.At {
			l.spans[i] = l.spans[i][:len(l.spans[i])-1]
		}
	}
	for _, i := range e.Joined {
		l.spans[i] = append(l.spans[i], span{first: e.At, end: never})
	}
	l.epochs = append(l.epochs, e)
	if e.At == 0 {
		return nil
	}
	c := &Change{Members: l.members(e.At)}
	for _, i := range c.Members {
		if l.spanAt(i, e.At).first == e.At {
			c.Joined = append(c.Joined, i)
		}
	}
	old := c.Old()
	if len(old) == 0 {
		return fmt.Errorf("epoch %d: no member before iteration %d stays", e.Epoch, e.At)
	}
	c.Donor = old[0]
	if before := l.at[e.At]; before != nil {
		if slices.Contains(old, before.Donor) {
			c.Donor = before.Donor
		}
		if d := before.Early; d != nil && slices.Contains(old, d.Donor) {
			c.Early = d
		}
	}
	if e.Donor != nil {
		c.Donor = *e.Donor
	}
	if e.Donated != 0 && e.Donated < e.At {
		c.Early = &Donation{c.Donor, e.Donated, e.Joined}
	}
	l.at[e.At] = c
	return nil
}

// check refuses a change that does not fit to those before.
func (l *changes) check(agents int, e Epoch) error {
	if want := len(l.epochs) + 1; e.Epoch != want {
		return fmt.Errorf("its number is not %d: epochs are counted from 1", want)
	}
	least := 0
	if n := len(l.epochs); n > 0 {
		least = l.epochs[n-1].At
	}
	switch {
	case e.At < least:
		return fmt.Errorf("it is valid from iteration %d on: expected %d or later", e.At, least)
	case len(e.Left)+len(e.Joined) == 0:
		return errors.New("nobody leaves or joins")
	case e.Donated != 0 && len(e.Joined) == 0:
		return fmt.Errorf("the donor gives its state at iteration %d, but nobody joins", e.Donated)
	case e.Donated != 0 && (e.Donated < max(1, least) || e.Donated > e.At):
		return fmt.Errorf("the donor gives its state at iteration %d: expected %d to %d, since the members change "+
			"before and after", e.Donated, max(1, least), e.At)
	case e.At == 0 && len(e.Joined) > 0:
		return errors.New("agents join at iteration 0, at which all are members: name those that are not as left")
	}
	seen := map[int]bool{}
	for _, i := range slices.Concat(e.Left, e.Joined) {
		if i < 0 || i >= agents {
			return fmt.Errorf("it names agent %d: the agents are 0 to %d", i, agents-1)
		}
		if seen[i] {
			return fmt.Errorf("it names agent %d twice", i)
		}
		seen[i] = true
		if member := l.spanAt(i, e.At) != nil; member == slices.Contains(e.Joined, i) {
			return fmt.Errorf("agent %d %s", i, map[bool]string{true: "joins and is a member already",
				false: "leaves and is not a member"}[member])
		}
	}
	return l.checkStay(e)
}

// checkStay checks the parts of a change that are about the members that stay.
func (l *changes) checkStay(e Epoch) error {
	stay := slices.DeleteFunc(l.members(e.At), func(i int) bool {
		return slices.Contains(e.Left, i) || e.At > 0 && l.spanAt(i, e.At).first == e.At
	})
	switch {
	case len(stay) == 0:
		return errors.New("no member stays")
	case e.Donor != nil && len(e.Joined) == 0:
		return fmt.Errorf("agent %d gives its state, but nobody joins", *e.Donor)
	case e.Donor != nil && !slices.Contains(stay, *e.Donor):
		return fmt.Errorf("agent %d gives its state, but is not one of the members that stay, %v", *e.Donor, stay)
	case len(e.Idle) > 0 && len(e.Left) != 1:
		return fmt.Errorf("idle is about one agent that left, and %d did: use an epoch for each", len(e.Left))
	}
	for _, i := range slices.Sorted(maps.Keys(e.Idle)) {
		if !slices.Contains(stay, i) {
			return fmt.Errorf("idle names agent %d, which is not one of the members that stay, %v", i, stay)
		}
		first := max(l.spanAt(i, e.At).first, l.spanAt(e.Left[0], e.At).first)
		if at := e.Idle[i]; at.T < first || (Exchange{T: e.At}).Before(at) || at.K < 0 {
			return fmt.Errorf("agent %d is idle from %v on: expected %d to %d", i, at, first, e.At)
		}
	}
	return nil
}

// Elastic reports whether the members may change.
func (l *Log) Elastic() bool { return l.elastic }

func (l *Log) Epochs() []Epoch { return l.now.Load().epochs }

// Until lists the changes up to the head of iteration t.
func (l *Log) Until(t int) []Epoch {
	all := l.Epochs()
	return all[:sort.Search(len(all), func(k int) bool { return all[k].At > t })]
}

// Change returns the change of the members at the head of iteration t; nil: there is none.
func (l *Log) Change(t int) *Change { return l.now.Load().at[t] }

// Donation returns the state that a donor gives at the head of iteration t to agents that become
// members later; nil: there is none.
func (l *Log) Donation(t int) *Donation {
	if d := l.next(t).Early; d != nil && d.T == t {
		return d
	}
	return nil
}

// next returns the first change after the head of iteration t. Without one it is empty.
func (l *Log) next(t int) *Change {
	now := l.now.Load()
	k := sort.Search(len(now.epochs), func(k int) bool { return now.epochs[k].At > t })
	if k == len(now.epochs) {
		return &Change{}
	}
	return now.at[now.epochs[k].At]
}

// Awaited reports whether an agent that is absent in iteration t has the state with which it will be
// a member.
func (l *Log) Awaited(agent, t int) bool {
	d := l.next(t).Early
	return d.Gives(agent) && d.T <= t
}

// Begins returns the iteration from which on messages are sent to an agent, which has been a member
// the last time since then or later.
func (l *Log) Begins(agent int) int {
	at := l.Since(agent)
	if c := l.Change(at); c != nil && c.Early.Gives(agent) {
		return c.Early.T
	}
	return at
}

// Present reports whether an agent is a member in iteration t.
func (l *Log) Present(agent, t int) bool { return l.now.Load().spanAt(agent, t) != nil }

// spanAt returns the time of an agent as a member that iteration t belongs to; nil: it is absent.
func (l *changes) spanAt(agent, t int) *span {
	all := l.spans[agent]
	for k := len(all) - 1; k >= 0; k-- {
		if s := &all[k]; s.first <= t {
			if t < s.end {
				return s
			}
			return nil
		}
	}
	return nil
}

// Since returns the iteration from which on an agent has been a member the last time.
func (l *Log) Since(agent int) int {
	if all := l.now.Load().spans[agent]; len(all) > 0 {
		return all[len(all)-1].first
	}
	return 0
}

// Members lists the members in iteration t, ascending.
func (l *Log) Members(t int) []int { return l.now.Load().members(t) }

func (l *changes) members(t int) (all []int) {
	for i := range l.spans {
		if l.spanAt(i, t) != nil {
			all = append(all, i)
		}
	}
	return all
}

// Idle reports whether an exchange with a peer fails at an agent: the peer is absent, or will leave and
// is no longer awaited. The one that will leave still has the messages of the exchange in which it was
// awaited in vain.
func (l *Log) Idle(agent, peer int, e Exchange) bool {
	now := l.now.Load()
	own, other := now.spanAt(agent, e.T), now.spanAt(peer, e.T)
	if own == nil || other == nil {
		return true
	}
	from, awaits := other.idle[agent]
	last, leaves := own.idle[peer]
	return awaits && !e.Before(from) || leaves && last.Before(e)
}
