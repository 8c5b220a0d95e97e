package link

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"go.uber.org/zap"
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

// drops reports whether a message to the peer is not sent. The caller holds the lock.
func (l *lifetime) drops(stream int, m *sentMessage) bool {
	return stream == reports && l.absent || stream == exchanges && m.t < l.from
}

// outlived handles a refusal that is about lives: this node may have to give way to a later agent of
// its slot, or the other one does not know yet that it is that later agent.
func (p *peer) outlived(r *refusal) error {
	life, err := strconv.Atoi(r.Ours)
	if err != nil {
		return &FrameError{Got: "a refusal because of life " + clip(r.Ours)}
	}
	if life > p.node.opt.Life {
		p.node.fail(&LifeError{p.id, life})
	}
	return errRefused
}

// refuseLife returns a refusal of an agent of an earlier life than the expected one; nil: it is none.
// A later one shows that the earlier one has left. The caller holds the lock.
func (p *peer) refuseLife(h *hello) *refusal {
	if h.Life > p.life {
		p.retire(h.Life)
	}
	if h.Life == p.life {
		return nil
	}
	p.node.log.Debug("an agent of another life was refused", zap.Int("peer", p.id), zap.Int("life", h.Life),
		zap.Int("expected", p.life))
	return &refusal{Field: fieldLife, Ours: strconv.Itoa(p.life), Theirs: strconv.Itoa(h.Life)}
}

// Lost reports whether an error of a node says that this agent cannot go on from its checkpoint, or
// without one, since the others keep no longer what it needs.
func Lost(err error) bool {
	e, ok := errors.AsType[*HandshakeError](err)
	return ok && (e.Field == fieldPosition || e.Field == fieldAhead)
}
