package nats

import "sync/atomic"

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
	Asked, Repeated       uint64 // messages that this node asked for again, and that it was asked for
	Refused               uint64 // strangers
	Dropped               uint64 // frames that were none, or not for us
	Trouble               uint64 // reports of the connection: reconnects, messages that were dropped
	SentFrames, GotFrames uint64
	SentBytes, GotBytes   uint64 // of all frames
	Direct                uint64 // frames that came by the direct way, not over NATS
}

// Stats returns the counters.
func (n *Node) Stats() Stats {
	s := &n.stats
	return Stats{Messages: s.messages.Load(), Asked: s.asked.Load(), Repeated: s.repeated.Load(), Refused: s.refused.Load(), Dropped: s.dropped.Load(),
		Trouble: s.trouble.Load(), SentFrames: s.sentFrames.Load(), GotFrames: s.gotFrames.Load(), SentBytes: s.sentBytes.Load(), GotBytes: s.gotBytes.Load(), Direct: s.direct.Load()}
}
