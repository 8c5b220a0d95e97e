package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"go.uber.org/zap"

	"fspda/train/config"
	"fspda/train/membership"
)

// Elastic lets the members of a run of many processes change while it runs.
type Elastic struct {
	Agreement membership.Agreement
	Slots     Slots
	Life      int // The number of agents that the slot of this process has had before.
	Writer    int // The agent whose process evaluates the run, as far as this process knows.
}

// Slots is a Network whose streams to a slot begin anew with each of its agents.
type Slots interface {
	// Retire says that the agent of a slot has left; the next one has this life.
	Retire(agent, life int)
	// Admit says that the agent of a slot takes part from iteration t on.
	Admit(agent, life, t int)
}

// ErrDropped ends a process whose agent is no member any more, or cannot go on as the member that it
// was. It can join again as a new one, with an empty folder.
var ErrDropped = errors.New("train: the other members go on without this agent")

// ErrMoved ends a run in each process, with checkpoints at one iteration, when another process is to
// evaluate it and to write its folder. All are to resume.
var ErrMoved = errors.New("train: the process that evaluated the run has left: another one goes on in its place")

// leaving knows of other agents whether they leave.
type leaving interface {
	// enter says that the local agent is in iteration t.
	enter(t int)
	// watch returns a context that ends when it is agreed that a peer leaves.
	watch(ctx context.Context, peer int) (context.Context, func())
	// uses says that the messages of a peer in iteration t are used, and reports whether they may be.
	// If not, it waits until that is agreed.
	uses(ctx context.Context, peer, t int) bool
	// gone reports whether it is agreed that a peer leaves.
	gone(peer int) bool
	// joint reports whether an exchange among all agents counts for all members or for none, so that
	// each tells the others that it has all messages, and waits for the same of them.
	joint() bool
	// confirms says that the local agent has all messages of such an exchange in iteration t.
	confirms(t int)
	// commits says that all agents have them. It first waits until it is agreed where those begin to
	// fail that leave: from then on the exchange counts, without them.
	commits(ctx context.Context, t int)
}

// staying is leaving of agents that all stay, or leave as the log says.
type staying struct{}

func (staying) enter(int)                                                  {}
func (staying) watch(ctx context.Context, _ int) (context.Context, func()) { return ctx, func() {} }
func (staying) uses(context.Context, int, int) bool                        { return true }
func (staying) gone(int) bool                                              { return false }
func (staying) joint() bool                                                { return false }
func (staying) confirms(int)                                               {}
func (staying) commits(context.Context, int)                               {}

// departures is leaving of a process that agrees with the others who leaves.
type departures struct {
	mu    sync.Mutex
	t     int
	peers []departure
}

// departure is the leaving of a peer.
type departure struct {
	taken  int // The latest iteration in which messages of it were used; -1: none.
	leaves bool
	from   int             // The iteration from which on exchanges with it fail.
	agreed context.Context // Ends when the log says so.
	agree  context.CancelFunc
}

func newDepartures(agents int) *departures {
	d := &departures{peers: make([]departure, agents)}
	for i := range d.peers {
		d.peers[i].stay()
	}
	return d
}

// stay sets a peer to one that does not leave.
func (p *departure) stay() {
	*p = departure{taken: -1}
	p.agreed, p.agree = context.WithCancel(context.Background())
}

func (d *departures) enter(t int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t = t
}

func (d *departures) watch(ctx context.Context, peer int) (context.Context, func()) {
	d.mu.Lock()
	agreed := d.peers[peer].agreed
	d.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(agreed, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func (d *departures) uses(ctx context.Context, peer, t int) bool {
	d.mu.Lock()
	p := &d.peers[peer]
	if !p.leaves || t < p.from {
		p.taken = t
		d.mu.Unlock()
		return true
	}
	agreed := p.agreed
	d.mu.Unlock()
	select {
	case <-agreed.Done():
	case <-ctx.Done():
	}
	return false
}

func (d *departures) joint() bool                  { return false }
func (d *departures) confirms(int)                 {}
func (d *departures) commits(context.Context, int) {}

func (d *departures) gone(peer int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[peer].agreed.Err() != nil
}

// close says that no further message of a peer is used, and returns the iteration from which on
// exchanges with it fail, at least a given one.
func (d *departures) close(peer, least int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.peers[peer]
	if p.from = max(least, d.t); p.taken >= p.from {
		p.from = p.taken + 1
	}
	p.leaves = true
	return p.from
}

// lacks reports whether the local agent needs messages of a peer that it does not have: the peer
// leaves at an iteration, and it is agreed that exchanges with it fail from idle on.
func (d *departures) lacks(peer, at, idle, first int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.peers[peer]
	return idle > first && !(p.leaves && min(p.from, at) == idle)
}

// early reports whether a member goes on when the log has its note of who leaves, before the change
// is agreed.
func (d *departures) early() bool { return true }

// jointDepartures is leaving of a method in which all exchange with all. What a member computes of
// such an exchange has no effect before all have confirmed that they have everything: then all can
// complete it, even if an agent dies, and else all leave the dead agent out of it.
type jointDepartures struct {
	*departures
	// exchanges reports whether an iteration has an exchange.
	exchanges func(t int) bool
	// idle reports whether the log says that exchanges with a peer fail in iteration t.
	idle      func(peer, t int) bool
	confirmed int // The latest iteration whose messages the local agent has; -1: none.
}

func (d *jointDepartures) joint() bool { return true }

func (d *jointDepartures) early() bool { return false }

func (d *jointDepartures) uses(_ context.Context, peer, t int) bool {
	return !d.gone(peer) || !d.idle(peer, t)
}

func (d *jointDepartures) confirms(t int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = t
}

func (d *jointDepartures) commits(ctx context.Context, t int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := 0; i < len(d.peers); i++ {
		if p := &d.peers[i]; p.leaves && p.agreed.Err() == nil && ctx.Err() == nil {
			d.mu.Unlock()
			select {
			case <-p.agreed.Done():
			case <-ctx.Done():
			}
			d.mu.Lock()
			i = -1 // Another one may leave meanwhile.
		}
	}
	for i := range d.peers {
		d.peers[i].taken = t
	}
}

// lacks needs the messages of exchanges that the local agent has not confirmed.
func (d *jointDepartures) lacks(_, _, idle, _ int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for t := max(d.t, d.confirmed+1); t < idle; t++ {
		if d.exchanges(t) {
			return true
		}
	}
	return false
}

// away reports whether a peer leaves.
func (d *departures) away(peer int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[peer].leaves
}

// fail ends the waits for peers that leave, and tells of each of them from when on.
func (d *departures) fail(tell func(peer, from int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.peers {
		if p := &d.peers[i]; p.leaves && p.agreed.Err() == nil {
			tell(i, p.from)
			p.agree()
		}
	}
}

// departing is leaving as the agreement of the members needs it: departures or jointDepartures.
type departing interface {
	leaving
	close(peer, least int) int
	away(peer int) bool
	fail(tell func(peer, from int))
	lacks(peer, at, idle, first int) bool
	early() bool
	comes(peer int)
}

// newDeparting returns the way in which agents of the run's method leave.
func (g *manyProcesses) newDeparting() departing {
	s := g.r.setup
	d := newDepartures(s.Graph.N)
	if !s.Traits.Edges.Collective {
		return d
	}
	return &jointDepartures{departures: d, confirmed: -1,
		exchanges: func(t int) bool { return !s.AllReduces() || s.AllReducesAt(t) },
		idle:      func(peer, t int) bool { return s.Members.Idle(g.p.Rank, peer, t) }}
}

// elasticMembers is the [membership.Local] of a process.
type elasticMembers struct {
	*manyProcesses
	*Elastic
	departing
	first int // The iteration at which this process began.
	seen  int // The changes that were taken.
	ended context.CancelCauseFunc
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
	case t.MessagesPerIteration() > t.MessagesPerLink():
		return refuse(s.Config.Algo + " has several exchanges in an iteration, and an agent may leave between them")
	}
	return nil
}

// openElastic prepares the changes of the members, and returns the iteration at which the agent
// begins: first, where its checkpoint is, or from where on it is a member.
func (g *manyProcesses) openElastic(first int, anew bool) (int, error) {
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
		at, err := e.join(context.Background())
		if err != nil {
			return 0, err
		}
		first = at
		v, err := e.Agreement.View(context.Background())
		if err != nil {
			return 0, err
		}
		g.coordinator = v.Writer
	}
	e.first = first
	e.enter(first)
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

// leaving implements processGroup.
func (g *manyProcesses) leaving() leaving {
	if g.elastic == nil {
		return staying{}
	}
	return g.elastic.departing
}

// absent reports whether an agent is no member in iteration t, or leaves.
func (g *manyProcesses) absent(agent, t int) bool {
	return g.elastic != nil && (g.elastic.away(agent) || !g.r.setup.Members.Present(agent, t))
}

// begin prepares the streams to slots that have had several agents, for a process that resumes at
// iteration first.
func (m *elasticMembers) begin(ctx context.Context, first int) error {
	v, err := m.Agreement.View(ctx)
	if err != nil {
		return err
	}
	log := membership.Elastic(len(v.Lives))
	if err := log.Replace(v.Epochs); err != nil {
		return badView(err)
	}
	for i, life := range v.Lives {
		joined := log.Since(i)
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
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrDropped, err)
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
	for _, e := range v.Epochs[m.seen:] {
		for _, gone := range e.Left {
			if idle := idleAt(e, m.p.Rank); !m.Local(gone) && m.lacks(gone, e.At, idle, m.first) {
				// The messages between are lost with the process of the agent that has left.
				return fmt.Errorf("%w: it resumed at iteration %d and needs messages of agent %d up to iteration %d",
					ErrDropped, m.first, gone, idle)
			}
		}
		for _, i := range e.Joined {
			if m.Local(i) || !log.Present(i, forever) || log.Since(i) != e.At {
				continue
			}
			if e.At > m.first { // The streams that were restored are an earlier agent's.
				m.Slots.Retire(i, v.Lives[i])
			}
			m.Slots.Admit(i, v.Lives[i], e.At)
			m.comes(i)
		}
	}
	m.seen = len(v.Epochs)
	m.fail(func(int, int) {}) // The log says it.
	return nil
}

// comes says that a slot has a new agent.
func (d *departures) comes(peer int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[peer].stay()
}

// Leave implements [membership.Local].
func (m *elasticMembers) Leave(agent, life int) int {
	if m.Local(agent) {
		return 0
	}
	idle := m.close(agent, max(m.r.setup.Members.Since(agent), m.r.setup.Members.Since(m.p.Rank)))
	m.Slots.Retire(agent, life)
	m.r.log.Warn("an agent leaves: it is no longer awaited", zap.Int("agent", agent), zap.Int("iteration", idle))
	return idle
}

// Hold implements [membership.Local].
func (m *elasticMembers) Hold() int { return m.r.progress.pause(m.r.setup.RoundLength()) }

// Fail implements [membership.Local].
func (m *elasticMembers) Fail() {
	if !m.early() {
		return // The agreement says it of all members alike.
	}
	m.fail(func(peer, from int) { m.r.setup.Members.Fence(m.p.Rank, peer, from) })
}

// Change implements [membership.Local].
func (m *elasticMembers) Change(v membership.View) {
	if err := m.take(v); err != nil {
		m.ended(err)
		return
	}
	if v.Writer != m.coordinator {
		at := 0
		if n := len(v.Epochs); n > 0 {
			at = v.Epochs[n-1].At
		}
		m.r.log.Warn("another process goes on to evaluate the run", zap.Int("agent", v.Writer))
		m.Move()
		m.r.progress.stopFrom(at)
	}
	m.r.progress.resume()
}

// idleAt is the iteration from which on exchanges of an agent with one that leaves fail.
func idleAt(e membership.Epoch, agent int) int {
	if t, noted := e.Idle[agent]; noted {
		return t
	}
	return e.At
}

// Dropped implements [membership.Local].
func (m *elasticMembers) Dropped() { m.ended(ErrDropped) }
