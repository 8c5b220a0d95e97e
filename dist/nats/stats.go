package nats

import (
	"sync/atomic"
	"time"
)

// stats are the counters of a node. They are for monitoring only and have no influence on a run.
type stats struct {
	messages, requested, retransmitted atomic.Uint64
	refused, dropped, connErrors       atomic.Uint64
	sentFrames, sentBytes              atomic.Uint64
	gotFrames, gotBytes                atomic.Uint64
	direct                             atomic.Uint64
}

// Stats is a snapshot of the counters of a node.
type Stats struct {
	Messages                 uint64 // sent, each counted once
	Requested, Retransmitted uint64 // messages that this node requested again, and that it was asked to send again
	Refused                  uint64 // handshakes of nodes of other runs
	Dropped                  uint64 // invalid frames, and frames for other nodes
	ConnErrors               uint64 // errors of the NATS connection: reconnects, dropped messages
	SentFrames, GotFrames    uint64
	SentBytes, GotBytes      uint64 // of all frames
	Direct                   uint64 // frames received over direct links
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	s := &n.stats
	return Stats{Messages: s.messages.Load(), Requested: s.requested.Load(), Retransmitted: s.retransmitted.Load(),
		Refused: s.refused.Load(), Dropped: s.dropped.Load(),
		ConnErrors: s.connErrors.Load(), SentFrames: s.sentFrames.Load(),
		GotFrames: s.gotFrames.Load(), SentBytes: s.sentBytes.Load(), GotBytes: s.gotBytes.Load(),
		Direct: s.direct.Load()}
}

// PeerStatus describes the connection to another agent.
type PeerStatus struct {
	Agent     int
	Connected bool          // the handshake is complete
	SilentFor time.Duration // since the last frame of the agent; 0: there was none
	LogBytes  int           // bytes of the messages that it may request again
	Direct    bool          // large messages use a direct link
}

// Peers returns the status of all other agents, by rank.
func (n *Node) Peers() []PeerStatus {
	var out []PeerStatus
	for _, p := range n.others() {
		p.mu.Lock()
		s := PeerStatus{Agent: p.id, Connected: p.connected, LogBytes: p.out[exchanges].bytes}
		if !p.lastHeard.IsZero() {
			s.SilentFor = time.Since(p.lastHeard)
		}
		p.mu.Unlock()
		s.Direct = p.link.connected()
		out = append(out, s)
	}
	return out
}

// Failure returns the error that ended the node's work, or nil.
func (n *Node) Failure() error {
	select {
	case <-n.failed:
		return n.failure
	default:
		return nil
	}
}
