package membership

import (
	"context"
	"sync"
)

// Leaving knows of other agents whether they leave, for the agent that exchanges with them.
type Leaving interface {
	// Enter says that the local agent is in iteration t.
	Enter(t int)
	// Watch returns a context that ends when it is agreed that a peer leaves.
	Watch(ctx context.Context, peer int) (context.Context, func())
	// Uses says that the messages of a peer in iteration t are used, and reports whether they may be.
	// If not, it waits until that is agreed.
	Uses(ctx context.Context, peer, t int) bool
	// Gone reports whether it is agreed that a peer leaves.
	Gone(peer int) bool
	// Joint reports whether an exchange among all agents counts for all members or for none, so that
	// each tells the others that it has all messages, and waits for the same of them.
	Joint() bool
	// Confirms says that the local agent has all messages of such an exchange in iteration t.
	Confirms(t int)
	// Commits says that all agents have them. It first waits until it is agreed where those begin to
	// fail that leave: from then on the exchange counts, without them.
	Commits(ctx context.Context, t int)
}

// Staying is Leaving of agents that all stay, or leave as the log says.
type Staying struct{}

func (Staying) Enter(int)                                                  {}
func (Staying) Watch(ctx context.Context, _ int) (context.Context, func()) { return ctx, func() {} }
func (Staying) Uses(context.Context, int, int) bool                        { return true }
func (Staying) Gone(int) bool                                              { return false }
func (Staying) Joint() bool                                                { return false }
func (Staying) Confirms(int)                                               {}
func (Staying) Commits(context.Context, int)                               {}

// Departures is [Leaving] as the [Local] agent of a process needs it, which agrees with the others
// who leaves.
type Departures interface {
	Leaving
	// Close says that no further message of a peer is used, and returns the iteration from which on
	// exchanges with it fail, at least a given one.
	Close(peer, least int) int
	// Away reports whether a peer leaves.
	Away(peer int) bool
	// Early reports whether a member goes on when the log has its note of who leaves, before the
	// change is agreed.
	Early() bool
	// EndWaits ends the waits for peers that leave, and tells of each of them from when on.
	EndWaits(tell func(peer, from int))
	// Lacks reports whether the local agent, which began at iteration first, needs messages of a peer
	// that it does not have. The peer leaves at an iteration, and it is agreed that exchanges with it
	// fail from idle on.
	Lacks(peer, at, idle, first int) bool
	// Comes says that the slot of a peer has a new agent.
	Comes(peer int)
}

// departures is [Departures] of a method whose agents exchange in pairs: at each end of an edge an
// agent that leaves may be left out from another iteration on.
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

// Separate returns the Departures of a method in which members may leave an agent out from different
// iterations on.
func Separate(agents int) Departures { return newDepartures(agents) }

// Joint returns the Departures of a method in which all exchange with all: the messages of an agent
// that leaves count for all members or for none. exchanges reports whether an iteration has an
// exchange, and idle whether the log says that exchanges with a peer fail in it.
func Joint(agents int, exchanges func(t int) bool, idle func(peer, t int) bool) Departures {
	return &jointDepartures{departures: newDepartures(agents), exchanges: exchanges, idle: idle, confirmed: -1}
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

func (d *departures) Enter(t int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.t = t
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

func (d *departures) Uses(ctx context.Context, peer, t int) bool {
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

func (d *departures) Joint() bool                  { return false }
func (d *departures) Confirms(int)                 {}
func (d *departures) Commits(context.Context, int) {}

func (d *departures) Gone(peer int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[peer].agreed.Err() != nil
}

func (d *departures) Close(peer, least int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.peers[peer]
	if p.from = max(least, d.t); p.taken >= p.from {
		p.from = p.taken + 1
	}
	p.leaves = true
	return p.from
}

func (d *departures) Lacks(peer, at, idle, first int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &d.peers[peer]
	return idle > first && !(p.leaves && min(p.from, at) == idle)
}

func (d *departures) Early() bool { return true }

// jointDepartures is [Departures] of a method in which all exchange with all. What a member computes of
// such an exchange has no effect before all have confirmed that they have everything: then all can
// complete it, even if an agent dies, and else all leave the dead agent out of it.
type jointDepartures struct {
	*departures
	exchanges func(t int) bool
	idle      func(peer, t int) bool
	confirmed int // The latest iteration whose messages the local agent has; -1: none.
}

func (d *jointDepartures) Joint() bool { return true }

func (d *jointDepartures) Early() bool { return false }

func (d *jointDepartures) Uses(_ context.Context, peer, t int) bool {
	return !d.Gone(peer) || !d.idle(peer, t)
}

func (d *jointDepartures) Confirms(t int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = t
}

func (d *jointDepartures) Commits(ctx context.Context, t int) {
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
	for i := range d.peers {
		d.peers[i].taken = t
	}
}

// Lacks needs the messages of exchanges that the local agent has not confirmed.
func (d *jointDepartures) Lacks(_, _, idle, _ int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for t := max(d.t, d.confirmed+1); t < idle; t++ {
		if d.exchanges(t) {
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

func (d *departures) EndWaits(tell func(peer, from int)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.peers {
		if p := &d.peers[i]; p.leaves && p.agreed.Err() == nil {
			tell(i, p.from)
			p.agree()
		}
	}
}

func (d *departures) Comes(peer int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peers[peer].stay()
}
