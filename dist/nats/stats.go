package nats

import (
	"sync/atomic"
	"time"
)

// stats count what a node does. They are what people watch, and no part of a run.
type stats struct {
	messages, asked, repeated atomic.Uint64
	refused, dropped, trouble atomic.Uint64
	sentFrames, sentBytes     atomic.Uint64
	gotFrames, gotBytes       atomic.Uint64
	direct                    atomic.Uint64
}

// Stats is what a node has done so far.
type Stats struct {
	Messages              uint64 // sent, each counted once
	Requested, Repeated   uint64 // messages that this node asked for again, and that it was asked for
	Refused               uint64 // strangers
	Dropped               uint64 // frames that were none, or not for us
	ConnErrors            uint64 // reports of the connection: reconnects, messages that were dropped
	SentFrames, GotFrames uint64
	SentBytes, GotBytes   uint64 // of all frames
	Direct                uint64 // frames that came by the direct way, not over NATS
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	s := &n.stats
	return Stats{Messages: s.messages.Load(), Requested: s.asked.Load(), Repeated: s.repeated.Load(),
		Refused: s.refused.Load(), Dropped: s.dropped.Load(),
		ConnErrors: s.trouble.Load(), SentFrames: s.sentFrames.Load(), GotFrames: s.gotFrames.Load(), SentBytes: s.sentBytes.Load(), GotBytes: s.gotBytes.Load(), Direct: s.direct.Load()}
}

// Sight is what a node knows of another agent.
type PeerStatus struct {
	Agent     int
	Connected bool          // they have shaken hands
	SilentFor time.Duration // since it was last heard of; 0 where it never was
	LogBytes  int           // bytes of messages that it may ask for again
	Direct    bool          // large messages have a direct way
}

// Sights returns what is to be seen of all other agents, in their order.
func (n *Node) Peers() []PeerStatus {
	var out []PeerStatus
	for _, p := range n.others() {
		p.mu.Lock()
		s := PeerStatus{Agent: p.id, Connected: p.settled, LogBytes: p.out[exchanges].bytes}
		if !p.heard.IsZero() {
			s.SilentFor = time.Since(p.heard)
		}
		p.mu.Unlock()
		s.Direct = p.way.there()
		out = append(out, s)
	}
	return out
}

// Failure is what ended the node's work, or nil while it goes on.
func (n *Node) Failure() error {
	select {
	case <-n.dead:
		return n.failure
	default:
		return nil
	}
}
