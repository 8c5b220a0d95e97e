package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
	"fspda/train/config"
	"fspda/train/membership"
)

// Elastic lets the members of a run of many processes change while it runs.
type Elastic struct {
	Agreement membership.Agreement
	Slots     Slots
	Life      int // The number of agents that the slot of this process has had before.
	Writer    int // The agent whose process evaluates the run, as far as this process knows.
	// ahead is the size in bytes from which on the state of a donor is sent ahead; 0: aheadFrom.
	ahead int
}

// Slots is a Network whose streams to a slot begin anew with each of its agents.
type Slots interface {
	// Retire says that the agent of a slot has left; the next one has this life.
	Retire(agent, life int)
	// Admit says that the agent of a slot takes part from iteration t on.
	Admit(agent, life, t int)
	// SkipReports gives the first report of this process to an agent a number, or a later one. That of
	// evaluation k is not to have a number below k: a process that resumes awaits it by that number.
	SkipReports(to, number int)
	// Linked reports whether this process has been connected to all present agents to which it
	// needs a link.
	Linked() bool
	// Arrived returns the latest iteration of which exchange messages have arrived from another
	// agent, and their number; 0: none have arrived.
	Arrived(agent int) (t, messages int)
	// Reported returns the latest iteration of which a report has arrived from another agent; -1:
	// none has.
	Reported(agent int) int
}

// ErrDropped ends a process whose agent is no member any more, or cannot go on as the member that it
// was. It can join again as a new one, with an empty folder.
var ErrDropped = errors.New("train: the other members go on without this agent")

// ErrMoved ends a run in each process, with checkpoints at one iteration, when another process is to
// evaluate it and to write its folder. All are to resume.
var ErrMoved = errors.New("train: the process that evaluated the run has left: another one goes on in its place")

// elasticMembers is the [membership.Local] of a process.
type elasticMembers struct {
	*manyProcesses
	*Elastic
	membership.Departures
	first int // The iteration at which this process began.
	seen  int // The changes that were taken.
	known int // The changes that were agreed, or under way, when this process began.
	ended context.CancelCauseFunc
	ctx   context.Context // It ends with the run, or by ended.
	// resigned says that the agent cannot go on as the member that it is.
	resigned bool
}

// departures returns the way in which agents of the run's method leave.
func (g *manyProcesses) departures() membership.Departures {
	s := g.r.setup
	rules := s.MemberRules()
	if !rules.Joint {
		return membership.Separate(g.p.Rank, rules)
	}
	return membership.Joint(g.p.Rank, rules,
		func(t int) bool { return !s.AllReduces() || s.AllReducesAt(t) },
		func(peer int, e membership.Exchange) bool { return s.Members.Idle(g.p.Rank, peer, e) })
}

// checkElastic refuses methods and settings under which members that leave need one process.
func (g *manyProcesses) checkElastic() error {
	s := g.r.setup
	refuse := func(why string) error {
		return config.Invalid("membership", s.Config.Membership, "%s: use membership fixed", why)
	}
	t := s.Traits
	switch {
	case !s.DropsSilent():
		return config.Invalid("membership", s.Config.Membership, "a list of changes is simulated in one process, and "+
			"this one has one agent of many: use fspda train")
	case g.p.Elastic == nil:
		return refuse("this process has no agreement with the others about the members")
	case s.Links != nil:
		return refuse("links are simulated in virtual time, and processes leave in real time")
	case t.Delay > 0:
		return refuse("messages that are awaited later may come of an agent that has left meanwhile")
	}
	return nil
}

// openElastic prepares the changes of the members, and returns the iteration at which the agent
// begins: first, where its checkpoint is, or from where on it is a member.
func (g *manyProcesses) openElastic(first int, anew bool) (_ int, err error) {
	e := g.elastic
	if e == nil {
		return first, nil
	}
	if err := e.begin(context.Background(), first); err != nil {
		return 0, err
	}
	if g.joined = anew && e.Life > 0; g.joined {
		if err := g.p.Network.Start(nil, 0); err != nil {
			return 0, err
		}
		g.r.driver = newSynchronous(g.r, 0)
		if err := g.r.makeAgents(0, nil); err != nil { // Once it is a member, the others wait for it.
			return 0, err
		}
		if err := g.agent().rehearse(); err != nil {
			return 0, err
		}
		if first, err = e.join(context.Background()); err != nil {
			return 0, err
		}
		v, err := e.Agreement.View(context.Background())
		if err != nil {
			return 0, err
		}
		g.coordinator = v.Writer
	}
	e.first = first
	e.Enter(membership.Exchange{T: first})
	return first, nil
}

// begins implements processGroup.
func (g *manyProcesses) begins() int {
	if !g.joined {
		return 0
	}
	return g.elastic.first
}

// joins implements processGroup.
func (g *manyProcesses) joins() bool { return g.joined }

// takeOver implements processGroup. The change counts when all members have confirmed that they have
// every message of it: if one member goes on, all others can. If an agent leaves before, or joins, all
// start again from the state before, with the new members.
func (g *manyProcesses) takeOver(a *agent, t int) error {
	p, members := g.r.progress, g.r.setup.Members
	restore, ledger := func() {}, a.exchange.ledger
	keep := sync.OnceFunc(func() { restore = a.keep() })
	k := &takeover{early: map[int]dist.Message{}}
	defer func() {
		for _, m := range k.early {
			m.Release()
		}
	}()
	for {
		revision := len(members.Until(t))
		current := func() bool { return len(members.Until(t)) == revision }
		ctx, giveUp := context.WithCancel(a.ctx)
		p.watch(func() {
			if !current() {
				giveUp()
			}
		})
		k.ctx, k.revision = ctx, revision
		err := a.attempt(t, k, keep, (*regrouping).confirm)
		again := ctx.Err() != nil && a.ctx.Err() == nil
		giveUp()
		switch {
		case err == nil && p.commit(a.ctx, t, current):
			return nil
		case errors.Is(err, errLeft):
			p.wait(a.ctx, current, func() {}) // The next change is valid here, too.
		case err != nil && !again:
			return err
		}
		if a.ctx.Err() != nil {
			return context.Cause(a.ctx)
		}
		restore()
		a.exchange.ledger = ledger
	}
}

// leaving implements processGroup.
func (g *manyProcesses) leaving() membership.Leaving {
	if g.elastic == nil {
		return membership.Staying{}
	}
	return g.elastic.Departures
}

// absent reports whether an agent is no member in iteration t, or leaves.
func (g *manyProcesses) absent(agent, t int) bool {
	return g.elastic != nil && (g.elastic.Away(agent) || !g.r.setup.Members.Present(agent, t))
}

// begin prepares the streams to slots that have had several agents, for a process that resumes at
// iteration first.
func (m *elasticMembers) begin(ctx context.Context, first int) error {
	v, err := m.Agreement.View(ctx)
	if err != nil {
		return err
	}
	m.known = len(v.Epochs) + v.Pending
	log := membership.Elastic(len(v.Lives))
	if err := log.Replace(v.Epochs); err != nil {
		return badView(err)
	}
	for i, life := range v.Lives {
		joined := log.Begins(i)
		switch {
		case life == 0 || m.Local(i):
		case log.Present(i, forever) && joined <= first:
			m.Slots.Admit(i, life, joined)
		default:
			m.Slots.Retire(i, life)
		}
	}
	return nil
}

// forever is an iteration later than all.
const forever = math.MaxInt - 1

func badView(err error) error {
	return fmt.Errorf("train: the members have agreed on changes that do not fit together: %w", err)
}

// join waits until the local agent is a member, and returns the iteration from which on it is.
func (m *elasticMembers) join(ctx context.Context) (int, error) {
	m.r.log.Info("asking the members to let this agent join")
	at, v, err := m.Agreement.Joined(ctx)
	if errors.Is(err, membership.ErrDropped) {
		return 0, ErrDropped
	}
	if err != nil {
		return 0, err
	}
	m.r.log.Info("joining", zap.Int("iteration", at))
	if err := m.r.setup.Members.Replace(v.Epochs); err != nil {
		return 0, badView(err)
	}
	return at, nil
}

// take takes the changes of a view.
func (m *elasticMembers) take(v membership.View) error {
	log := m.r.setup.Members
	if err := log.Replace(v.Epochs); err != nil {
		return badView(err)
	}
	for k, e := range v.Epochs {
		if k < m.seen {
			continue
		}
		if k > 0 && k < m.known && e.At > m.first && v.Epochs[k-1].At == e.At {
			// An attempt to take over the earlier change alone may be in the streams.
			return fmt.Errorf("%w: it resumed at iteration %d, and the members changed twice at iteration %d",
				ErrDropped, m.first, e.At)
		}
		for _, gone := range e.Left {
			if idle := e.IdleAt(m.p.Rank); !m.Local(gone) && m.Lacks(gone, e.At, idle, m.first) {
				// The messages between are lost with the process of the agent that has left.
				return fmt.Errorf("%w: it resumed at iteration %d and needs messages of agent %d up to %v",
					ErrDropped, m.first, gone, idle)
			}
			if !m.Local(gone) && !log.Present(gone, forever) { // This process may have begun after it had left.
				m.Slots.Retire(gone, v.Lives[gone])
			}
		}
		for _, i := range e.Joined {
			if m.Local(i) || !log.Present(i, forever) || log.Since(i) != e.At {
				continue
			}
			if log.Begins(i) > m.first { // The streams that were restored are an earlier agent's.
				m.Slots.Retire(i, v.Lives[i])
			}
			m.Slots.Admit(i, v.Lives[i], log.Begins(i))
			m.Comes(i)
		}
	}
	m.seen = len(v.Epochs)
	m.EndWaits()
	return nil
}

// Leave implements [membership.Local].
func (m *elasticMembers) Leave(agent, life int) membership.Exchange {
	if m.Local(agent) {
		return membership.Exchange{}
	}
	idle := m.Close(agent, max(m.r.setup.Members.Since(agent), m.r.setup.Members.Since(m.p.Rank)))
	m.Slots.Retire(agent, life)
	if m.resigned {
		return membership.Exchange{T: forever} // Its earlier process had these messages.
	}
	m.r.log.Warn("an agent leaves: it is no longer awaited", zap.Int("agent", agent), zap.Int("iteration", idle.T))
	return idle
}

// Hold implements [membership.Local].
func (m *elasticMembers) Hold() int { return m.r.progress.pause(m.r.setup.RoundLength()) }

// Lead implements [membership.Local].
func (m *elasticMembers) Lead() int {
	bytes := 4 * totalLen((&regrouping{agent: m.agent()}).donated())
	pace := m.p.Network.Position(m.p.Rank).Pace
	if bytes < cmp.Or(m.ahead, aheadFrom) || pace <= 0 {
		return 0
	}
	return int(math.Ceil(float64(bytes) / donationRate / pace.Seconds()))
}

const (
	// aheadFrom is the usual value of Elastic.ahead.
	aheadFrom = 16 << 20
	// donationRate is the rate in bytes a second at which it is expected to arrive.
	donationRate = 100e6
)

// Linked implements [membership.Local].
func (m *elasticMembers) Linked() bool { return m.Slots.Linked() }

// Seen implements [membership.Local]. A message of an iteration at which the members change may
// be a part of the change, or of the exchange after it. The agent has come to the head at least.
func (m *elasticMembers) Seen() map[int]membership.Exchange {
	s := m.r.setup
	seen := map[int]membership.Exchange{m.p.Rank: m.Now()}
	for i, t := range m.Node.Reported(m.Slots.Reported) {
		seen[i] = membership.Head(t)
	}
	for i := range s.Graph.N {
		if m.Local(i) {
			continue
		}
		if t, n := m.Slots.Arrived(i); n > 0 {
			at := membership.Head(t)
			if s.Members.Change(t) == nil && !s.Members.Donation(t).Gives(m.p.Rank) {
				at.K = min((n-1)/s.Traits.MessagesPerLink(), len(s.Traits.Between))
			}
			seen[i] = at.Later(seen[i])
		}
	}
	return seen
}

// Change implements [membership.Local].
func (m *elasticMembers) Change(v membership.View) {
	if m.resigned {
		return
	}
	if err := m.take(v); err != nil {
		m.resign(err)
		return
	}
	// An agent that joins while the role moves is to resume with the others, whose streams begin anew.
	if v.Writer != m.coordinator || m.joined && v.Moved == m.first {
		m.r.log.Warn("another process goes on to evaluate the run", zap.Int("agent", v.Writer))
		m.Move()
		m.r.progress.stopFrom(v.Moved)
	}
	m.r.progress.resume()
}

// resign ends this process, whose agent cannot go on as the member that it is, when the others have
// dropped it, or after a time. Until then the process has a vote: without it, the others may be no
// majority and unable to drop anybody.
func (m *elasticMembers) resign(err error) {
	m.resigned = true
	m.Hold()
	m.r.log.Warn("this agent cannot go on, and asks the members to drop it", zap.Error(err))
	go func() {
		ctx, stop := context.WithTimeout(m.ctx, resignWithin)
		defer stop()
		if m.Agreement.Drop(ctx, m.p.Rank) == nil {
			<-ctx.Done() // Dropped ends the run.
		}
		m.ended(err)
	}()
}

// resignWithin bounds the time for which a process waits until the others have dropped its agent.
const resignWithin = time.Minute

// Dropped implements [membership.Local].
func (m *elasticMembers) Dropped() { m.ended(ErrDropped) }

// Failed implements [membership.Local].
func (m *elasticMembers) Failed(err error) { m.ended(err) }
