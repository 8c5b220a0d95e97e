package membership

import (
	"context"
	"slices"
	"sync"
)

// Leaving knows of other agents whether they leave, for the agent that exchanges with them.
type Leaving interface {
	// Enter says that the local agent is at an exchange.
	Enter(Exchange)
	// Watch returns a context that ends when it is agreed that a peer leaves.
	Watch(ctx context.Context, peer int) (context.Context, func())
	// Uses says that the messages of a peer in an exchange are used, and reports whether they may be.
	// If not, it waits until that is agreed.
	Uses(ctx context.Context, peer int, e Exchange) bool
	// Gone reports whether it is agreed that a peer leaves.
	Gone(peer int) bool
	// Joint reports whether an exchange among all agents counts for all members or for none, so that
	// each tells the others that it has all messages, and waits for the same of them.
	Joint() bool
	// Confirms says that the local agent has all messages of such an exchange.
	Confirms(Exchange)
	// Commits says that all agents have them. It first waits until it is agreed where those begin to
	// fail that leave: from then on the exchange counts, without them. If it then fails with one of
	// these peers, it does not count, and Commits returns false.
	Commits(ctx context.Context, e Exchange, needed ...int) bool
}

// Staying is Leaving of agents that all stay, or leave as the log says.
type Staying struct{}

func (Staying) Enter(Exchange)                                             {}
func (Staying) Watch(ctx context.Context, _ int) (context.Context, func()) { return ctx, func() {} }
func (Staying) Uses(context.Context, int, Exchange) bool                   { return true }
func (Staying) Gone(int) bool                                              { return false }
func (Staying) Joint() bool                                                { return false }
func (Staying) Confirms(Exchange)                                          {}
func (Staying) Commits(context.Context, Exchange, ...int) bool             { return true }

// Departures is [Leaving] as the [Local] agent of a process needs it, which agrees with the others
// who leaves.
type Departures interface {
	Leaving
	// Close says that no further message of a peer is used, and returns the first exchange with it that
	// fails, in a given iteration or later.
	Close(peer, least int) Exchange
	// Away reports whether a peer leaves.
	Away(peer int) bool
	// EndWaits ends the waits for peers that leave. The log says from when on exchanges with them
	// fail.
	EndWaits()
	// Lacks reports whether the local agent, which began at iteration first, needs messages of a peer
	// that it does not have. The peer leaves at an iteration, and it is agreed that exchanges with it
	// fail from idle on.
	Lacks(peer, at int, idle Exchange, first int) bool
	// Now returns the exchange that the local agent is at. Before the first one of an iteration
	// it is the head of it.
	Now() Exchange
	// Comes says that the slot of a peer has a new agent.
	Comes(peer int)
}

// departures is [Departures] of a method whose agents exchange in pairs: at each end of an edge an
// agent that leaves may be left out from another iteration on.
type departures struct {
	Rules
	self  int
	mu    sync.Mutex
	now   Exchange
	peers []departure
}

// departure is the leaving of a peer.
type departure struct {
	taken  Exchange // The latest one in which messages of it were used; in iteration -1: none.
	leaves bool
	from   Exchange        // The first exchange with it that fails.
	agreed context.Context // Ends when the log says so.
	agree  context.CancelFunc
}

// Separate returns the Departures of an agent of a method in which members may leave an agent out
// from different exchanges on.
func Separate(self int, r Rules) Departures { return newDepartures(self, r) }

// Joint returns the Departures of a method in which all exchange with all: the messages of an
// agent that leaves count for all members or for none. exchanges reports whether an iteration has
// an exchange, and idle whether the log says that one with a peer fails.
func Joint(self int, r Rules, exchanges func(t int) bool, idle func(peer int, e Exchange) bool) Departures {
	return &jointDepartures{departures: newDepartures(self, r), exchanges: exchanges, idle: idle, confirmed: none}
}

// none is a place before all exchanges.
var none = Exchange{T: -1}

func newDepartures(self int, r Rules) *departures {
	d := &departures{Rules: r, self: self, peers: make([]departure, r.Agents)}
	for i := range d.peers {
		d.peers[i].stay()
	}
	return d
}

// stay sets a peer to one that does not leave.
func (p *departure) stay() {
	*p = departure{taken: none}
	p.agreed, p.agree = context.WithCancel(context.Background())
}

func (d *departures) Enter(e Exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = e
}

func (d *departures) Now() Exchange {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now.K == 0 {
		return Head(d.now.T)
	}
	return d.now
}

func (d *departures) Watch(ctx context.Context, peer int) (context.Context, func()) {
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

func (d *departures) Uses(ctx context.Context, peer int, e Exchange) bool {
	d.mu.Lock()
	p := &d.peers[peer]
	if !p.leaves || e.Before(p.from) {
		p.taken = e
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

func (d *departures) Joint() bool                                    { return false }
func (d *departures) Confirms(Exchange)                              {}
func (d *departures) Commits(context.Context, Exchange, ...int) bool { return true }

func (d *departures) Gone(peer int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[peer].agreed.Err() != nil
}

func (d *departures) Close(peer, least int) Exchange {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.peers[peer]
	if p.from = d.now.Later(Exchange{T: least}); !p.taken.Before(p.from) {
		p.from = p.taken.next(d.Exchanges)
	}
	p.leaves = true
	return p.from
}

func (d *departures) Lacks(peer, at int, idle Exchange, first int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	needs := Exchange{T: first}
	if p := &d.peers[peer]; p.leaves {
		needs = p.from
	}
	needs, misses := d.next(peer, d.self, needs, at)
	return misses && needs.Before(idle)
}

// jointDepartures is [Departures] of a method in which all exchange with all. What a member computes of
// such an exchange has no effect before all have confirmed that they have everything: then all can
// complete it, even if an agent dies, and else all leave the dead agent out of it.
type jointDepartures struct {
	*departures
	exchanges func(t int) bool
	idle      func(peer int, e Exchange) bool
	confirmed Exchange // The latest one whose messages the local agent has.
}

func (d *jointDepartures) Joint() bool { return true }

func (d *jointDepartures) Uses(_ context.Context, peer int, e Exchange) bool {
	return !d.Gone(peer) || !d.idle(peer, e)
}

func (d *jointDepartures) Confirms(e Exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = e
}

func (d *jointDepartures) Commits(ctx context.Context, e Exchange, needed ...int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := 0; i < len(d.peers); i++ {
		if p := &d.peers[i]; p.leaves && p.agreed.Err() == nil && ctx.Err() == nil {
			agreed := p.agreed
			d.mu.Unlock()
			select {
			case <-agreed.Done():
			case <-ctx.Done():
			}
			d.mu.Lock()
			i = -1 // Another one may leave meanwhile.
		}
	}
	if slices.ContainsFunc(needed, func(i int) bool { return d.idle(i, e) }) {
		return false
	}
	for i := range d.peers {
		d.peers[i].taken = e
	}
	return true
}

// Lacks needs the messages of exchanges that the local agent has not confirmed.
func (d *jointDepartures) Lacks(_, _ int, idle Exchange, _ int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := d.now.Later(d.confirmed.next(d.Exchanges)); e.Before(idle); e = e.next(d.Exchanges) {
		if d.exchanges(e.T) {
			return true
		}
	}
	return false
}

func (d *departures) Away(peer int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[peer].leaves
}

func (d *departures) EndWaits() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.peers {
		if p := &d.peers[i]; p.leaves {
			p.agree()
		}
	}
}

func (d *departures) Comes(peer int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[peer].stay()
}
