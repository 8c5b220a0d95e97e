package link

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A slot of a run may have several agents, one after the other. Each is a life of the slot. Streams
// between two agents begin anew with each life of either.

// fieldLife is the name of the field of a refusal that says which life of a slot is expected.
const fieldLife = "life"

// lifetime is the life of a peer.
type lifetime struct {
	life   int
	absent bool   // Nothing is sent to the slot: its agent has left, and no new one takes part.
	from   uint64 // No message of an earlier iteration is sent.
}

// LifeError reports that another node goes on without the agent of this one, and expects a later
// agent of its slot.
type LifeError struct {
	Peer int
	Life int // The expected life.
}

func (e *LifeError) Error() string {
	return fmt.Sprintf("link: agent %d and others have gone on without this agent: it can join again as a new one, by "+
		"the same command with membership elastic", e.Peer)
}

// Retire says that the agent of a slot has left: what it has sent is dropped, nothing is sent to its
// slot, and its messages are refused. The next process of the slot must be of a later life.
func (n *Node) Retire(agent, life int) {
	p := n.peer(agent)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life < life || !p.absent {
		p.retire(life)
	}
}

// retire is Retire. The caller holds the lock.
func (p *peer) retire(life int) {
	p.lifetime = lifetime{life, true, math.MaxUint64}
	for s := range durableStreams {
		for _, m := range p.out[s].log {
			m.memory.release()
		}
		p.out[s], p.in[s] = sendStream{}, recvStream{}
		p.offences[s] = offence{}
	}
	p.node.logBytes.Add(-int64(p.counted))
	p.counted = 0
	p.link.end(errSuperseded)
	p.link = nil
	p.notify()
}

// Admit says that the agent of a slot takes part from iteration t on, of this life. It keeps what
// was restored of its streams.
func (n *Node) Admit(agent, life, t int) {
	p := n.peer(agent)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lifetime = lifetime{life, false, uint64(t)}
}

// Linked reports whether this process has been connected to all present agents to which it needs a
// link. After that they receive no message of an earlier process of this agent.
func (n *Node) Linked() bool {
	return !slices.ContainsFunc(n.others(), func(p *peer) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.wanted && !p.absent && p.incarnation == 0
	})
}

// Arrived returns the latest iteration of which exchange messages have arrived from another
// agent, and their number; 0: none have arrived.
func (n *Node) Arrived(agent int) (t, messages int) {
	p := n.peer(agent)
	p.mu.Lock()
	defer p.mu.Unlock()
	in := &p.in[exchanges]
	return int(in.latest), in.ofLatest
}

// Reported returns the latest iteration of which a report has arrived from another agent; -1:
// none has.
func (n *Node) Reported(agent int) int {
	p := n.peer(agent)
	p.mu.Lock()
	defer p.mu.Unlock()
	if in := &p.in[reports]; in.ofLatest > 0 {
		return int(in.latest)
	}
	return -1
}

// SkipReports gives the first report of this node to another one a number, or a later one. The node
// must not have sent it a report.
func (n *Node) SkipReports(to, number int) {
	p := n.peer(to)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[reports].skipTo(uint64(number))
	p.notify()
}

// drops reports whether a message to the peer is not sent. The caller holds the lock.
func (l *lifetime) drops(stream int, m *sentMessage) bool {
	return stream == reports && l.absent || stream == exchanges && m.t < l.from
}

// outlived handles a refusal that is about lives: this node has to give way to a later agent of its
// slot, or it learns of a later agent of the other slot. Ours is the life that the other node expects
// of this one, and Theirs its own.
func (p *peer) outlived(r *refusal) error {
	expected, err := strconv.Atoi(r.Ours)
	life, bad := strconv.Atoi(r.Theirs)
	if err != nil || bad != nil {
		return &FrameError{Got: "a refusal because of lives " + clip(r.Ours) + " and " + clip(r.Theirs)}
	}
	if expected > p.node.opt.Life {
		p.node.fail(&LifeError{p.id, expected})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if life > p.life {
		p.retire(life)
	}
	return errRefused
}

// refuseLife returns a refusal unless both ends know which lives they have; nil: they do. A later
// life than the known one shows that the earlier agent has left. The caller holds the lock.
func (p *peer) refuseLife(h *hello) *refusal {
	own := p.node.opt.Life
	if h.Expects > own {
		p.node.fail(&LifeError{p.id, h.Expects})
	}
	if h.Life > p.life {
		p.retire(h.Life)
	}
	if h.Life == p.life && h.Expects == own {
		return nil
	}
	return &refusal{Field: fieldLife, Ours: strconv.Itoa(p.life), Theirs: strconv.Itoa(own)}
}

// Lost reports whether an error of a node says that this agent cannot go on from its checkpoint, or
// without one, since the others keep no longer what it needs.
func Lost(err error) bool {
	e, ok := errors.AsType[*HandshakeError](err)
	return ok && (e.Field == fieldPosition || e.Field == fieldAhead)
}
