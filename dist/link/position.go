package link

import (
	"fmt"
	"sync"
	"time"

	"fspda/dist"
)

// ownPosition is the position of this node's agent, which the heartbeats carry.
type ownPosition struct {
	mu  sync.Mutex
	at  dist.Position
	log advances
}

// advances are the times at which an agent was seen to advance.
type advances struct {
	first, latest time.Time
	count         int
}

// seenPosition is the position of a peer's agent, as it has told.
type seenPosition struct {
	at dist.Position
	advances
}

// add records an advance.
func (a *advances) add() {
	a.latest = time.Now()
	if a.count++; a.count == 1 {
		a.first = a.latest
	}
}

// of describes a position that was reached by these advances.
func (a *advances) of(p dist.Position) dist.Advance {
	out := dist.Advance{Position: p, Since: time.Since(a.latest)}
	if a.count > 1 {
		out.Pace = a.latest.Sub(a.first) / time.Duration(a.count-1)
	}
	return out
}

// Advance says that this node's agent has done something in iteration t, and its phase.
func (n *Node) Advance(t int, phase dist.Phase) {
	o := &n.position
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = dist.Position{T: t, Phase: phase, Steps: o.at.Steps + 1}
	o.log.add()
}

// Await says that the agent waits for another one, until the function that it returns is called. An
// agent that never advances, such as one without iterations, does not wait.
func (n *Node) Await(from int) (over func()) {
	o := &n.position
	set := func(phase dist.Phase) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.at.Phase == dist.Idle {
			return
		}
		o.at.Phase, o.at.Awaits = phase, from
		o.at.Steps++
		o.log.add()
	}
	set(dist.Waiting)
	return func() { set(dist.Working) }
}

// Position returns how far an agent has come. It counts from the start if nothing was heard.
func (n *Node) Position(agent int) dist.Advance {
	if agent == n.opt.Self {
		n.position.mu.Lock()
		defer n.position.mu.Unlock()
		return n.position.log.of(n.position.at)
	}
	p := n.peer(agent)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.wanted && !p.told.at.IsZero() {
		return p.told.position()
	}
	return p.seen.of(p.seen.at)
}

// await says that this node's agent waits for the peer, until the function that it returns is
// called. The caller holds the lock, and does when it calls the function.
func (p *peer) await() (over func()) {
	if !p.busy() {
		p.link.wakeUp() // A heartbeat tells the peer at once.
	}
	p.awaits++
	end := p.node.Await(p.id)
	return func() {
		p.awaits--
		end()
	}
}

// busy reports whether the link to the peer is in use, so that each end must soon notice when the
// other one is gone. The caller holds the lock.
func (p *peer) busy() bool {
	at := &p.seen.at
	return time.Since(p.used) < inUse || p.awaits > 0 || p.sessionEpoch != 0 && !p.seldom ||
		at.Phase == dist.Waiting && at.Awaits == p.node.opt.Self
}

// use says that a message uses the link to the peer now. If it was not in use before, the heartbeats
// become more frequent. The caller holds the lock.
func (p *peer) use() {
	if !p.busy() {
		p.link.wakeUp()
	}
	p.used = time.Now()
}

// silentFor returns the time since the peer was heard. The caller holds the lock.
func (p *peer) silentFor() time.Duration {
	if !p.wanted {
		return p.told.silentFor(p.lastHeard)
	}
	return time.Since(p.lastHeard)
}

// setPosition writes the position of this node's agent into the header of an acknowledgement.
func (n *Node) setPosition(h *header) {
	n.position.mu.Lock()
	defer n.position.mu.Unlock()
	at := n.position.at
	h.t, h.seq, h.phase, h.awaits = uint64(max(0, at.T)), at.Steps, uint8(at.Phase), uint32(at.Awaits)
}

// follow takes the position in an acknowledgement of the peer. The caller holds the lock.
func (p *peer) follow(h *header) error {
	if int(h.awaits) >= p.node.opt.Agents {
		return &FrameError{Got: fmt.Sprintf("a position that awaits agent %d of %d", h.awaits, p.node.opt.Agents)}
	}
	at := dist.Position{T: int(h.t), Phase: dist.Phase(h.phase), Awaits: int(h.awaits), Steps: h.seq}
	if before := p.seen.at; at.Steps != before.Steps || at.T != before.T {
		if p.seen.add(); p.seen.count > 1 { // Heartbeats may be rarer than iterations.
			p.seen.count += max(0, at.T-before.T-1)
		}
	}
	was := p.busy()
	p.seen.at = at
	if !was && p.busy() {
		p.link.wakeUp()
	}
	return nil
}
