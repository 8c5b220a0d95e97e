package link

import (
	"sync/atomic"
	"time"
)

// stats are the counters of a node. They are for monitoring only and have no influence on a run.
type stats struct {
	messages, reconnects, resent atomic.Uint64
	refused, dropped             atomic.Uint64
	sentFrames, sentBytes        atomic.Uint64
	gotFrames, gotBytes          atomic.Uint64
	direct                       atomic.Uint64
}

// Stats is a snapshot of the counters of a node.
type Stats struct {
	Messages   uint64 // The messages that were sent, each counted once.
	Reconnects uint64 // The connections that replaced an earlier one of the same peer.
	Resent     uint64 // The messages that were sent again over them.
	Refused    uint64 // The handshakes of nodes of other runs.
	Dropped    uint64 // The invalid frames and packets, and handshakes in the name of others.
	ConnErrors uint64 // The errors of the connection by which agents are found.

	SentFrames, GotFrames uint64
	SentBytes, GotBytes   uint64 // The bytes of all frames.
	Direct                uint64 // The frames that were received over links that are not relayed.
}

func (n *Node) Stats() Stats {
	s, d := &n.stats, n.opt.Discovery.Stats()
	return Stats{Messages: s.messages.Load(), Reconnects: s.reconnects.Load(), Resent: s.resent.Load(),
		Refused: s.refused.Load(), Dropped: s.dropped.Load() + d.Dropped,
		ConnErrors: d.Trouble, SentFrames: s.sentFrames.Load(),
		GotFrames: s.gotFrames.Load(), SentBytes: s.sentBytes.Load(), GotBytes: s.gotBytes.Load(),
		Direct: s.direct.Load()}
}

// PeerStatus describes the connection to another agent.
type PeerStatus struct {
	Agent     int
	Linked    bool // There is to be a connection. If not, agent 0 tells of the agent.
	Connected bool
	SilentFor time.Duration // The time since the last frame of the agent.
	LogBytes  int           // The bytes of the messages that are kept for it.
	Direct    bool          // The connection is not relayed.
}

// Peers returns the status of all other agents, by rank.
func (n *Node) Peers() []PeerStatus {
	var out []PeerStatus
	for _, p := range n.others() {
		p.mu.Lock()
		s := PeerStatus{Agent: p.id, Linked: p.wanted, Connected: p.link != nil,
			Direct: p.link != nil && p.link.direct, SilentFor: p.silentFor(), LogBytes: p.out[exchanges].bytes}
		p.mu.Unlock()
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
