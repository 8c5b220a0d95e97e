package link

import (
	"cmp"
	"slices"
)

// window is the number of messages of a stream that may be in flight: sent and not consumed by the
// receiver's agent.
const window = 32

// windowBytes bounds their bytes. Two messages are allowed regardless of size, as dist.Transport
// promises.
const windowBytes = 64 << 20

// reportBytes takes the place of windowBytes for reports, of which one is allowed regardless of
// size. Agent 0 has those of all agents in its memory until it takes them; the others wait in the
// logs of their senders.
const reportBytes = 1 << 20

// sentMessage is a message that was sent and that its receiver may still need.
type sentMessage struct {
	seq, t  uint64
	body    segments // The bytes that are sent.
	size    int      // The number of these bytes.
	rawSize int      // The number of bytes before compression.
	memory  *bodyRef // The memory that the body refers to; nil: the body owns its memory.

	uncounted bool // The message is not counted in WireBytes.
}

// messageOverhead is roughly the memory of a message in the log beside its body.
const messageOverhead = 200

// maxUnsaved is the largest number of messages of a stream that a process may have sent after the
// checkpoint from which the next process of its agent continues. The receiver's own log of as many
// messages would occupy 13 GB.
const maxUnsaved = 1 << 26

// sendStream is the sending end of a stream. Invariant: the log holds the messages first..next-1,
// ascending. The numbers between an entry and the next one are empty messages, which follow an
// empty entry.
type sendStream struct {
	next     uint64 // The number of the next message.
	restored uint64 // The value of next when this process started.
	consumed uint64 // The receiver's agent has consumed all messages before this one.
	sent     uint64 // Messages before this one were sent at least once, by this or an earlier process.
	log      []sentMessage
	bytes    int // The memory of the log.
}

// hasRoom reports whether message seq, of size bytes, may be logged now.
func (o *sendStream) hasRoom(seq uint64, size int) bool { return o.fits(seq, size, 2, windowBytes) }

// mayGo reports whether message seq of a stream, of size bytes, may be in flight now.
func (o *sendStream) mayGo(stream int, seq uint64, size int) bool {
	if stream == reports {
		return o.fits(seq, size, 1, reportBytes)
	}
	return o.hasRoom(seq, size)
}

// fits reports whether message seq, of size bytes, is in a window of most bytes, or of few messages.
func (o *sendStream) fits(seq uint64, size int, few uint64, most int) bool {
	if seq < o.consumed+few {
		return true
	}
	for k := o.consumed; k < seq; k++ {
		m, _ := o.find(k)
		if size += m.size; k-o.consumed >= window-1 || size > most {
			return false
		}
	}
	return true
}

// firstKept returns the number of the first message in the log, or next if the log is empty.
func (o *sendStream) firstKept() uint64 {
	if len(o.log) > 0 {
		return o.log[0].seq
	}
	return o.next
}

// append adds a message to the log, numbers it and returns it.
func (o *sendStream) append(m sentMessage) sentMessage {
	m.seq, m.size = o.next, m.body.size()
	o.next++
	o.log = append(o.log, m)
	o.bytes += m.size + messageOverhead
	return m
}

// skip numbers the messages of this process from arrived on, if the receiver has messages before
// that which an earlier process sent after the checkpoint. Empty messages take the numbers between,
// which share one entry of the log. No message of this process may have been sent.
func (o *sendStream) skip(arrived uint64) {
	if arrived <= o.restored {
		return
	}
	at := len(o.log) - int(o.next-o.restored)
	for k := range o.log[at:] {
		o.log[at+k].seq += arrived - o.restored
	}
	o.log = slices.Insert(o.log, at, sentMessage{seq: o.restored})
	o.next += arrived - o.restored
	o.bytes += messageOverhead
}

// skipTo numbers the messages of this process from a number on, if it is a later one. None of them may
// have been sent.
func (o *sendStream) skipTo(number uint64) {
	if number <= o.next {
		return
	}
	o.log = append(o.log, sentMessage{seq: o.next})
	o.next, o.restored = number, number
	o.bytes += messageOverhead
}

func (o *sendStream) find(seq uint64) (sentMessage, bool) {
	if seq < o.firstKept() || seq >= o.next {
		return sentMessage{}, false
	}
	at, found := slices.BinarySearchFunc(o.log, seq, func(m sentMessage, seq uint64) int {
		return cmp.Compare(m.seq, seq)
	})
	if !found {
		return sentMessage{seq: seq}, true
	}
	return o.log[at], true
}

// entryEnd returns the number after the last message of an entry of the log.
func (o *sendStream) entryEnd(at int) uint64 {
	if at+1 < len(o.log) {
		return o.log[at+1].seq
	}
	return o.next
}

// acknowledge records the receiver's position: its agent has consumed all messages before consumed
// and will never need those before stable again. It reports whether consumed has grown.
func (o *sendStream) acknowledge(consumed, stable uint64) bool {
	changed := consumed > o.consumed
	o.consumed = max(o.consumed, consumed)
	drop := 0
	for drop < len(o.log) && o.entryEnd(drop) <= stable {
		o.bytes -= o.log[drop].size + messageOverhead
		if drop < maxPooledBodies { // A few bodies are recycled. The garbage collector frees the rest of a long log.
			o.log[drop].memory.release()
		}
		o.log[drop] = sentMessage{}
		drop++
	}
	o.log = o.log[drop:]
	return changed
}

// recvMessage is a message that is being assembled from fragments, or complete.
type recvMessage struct {
	seq, t     uint64
	stream     uint8
	compressed bool
	rawSize    int
	total      int
	body       []byte // the bytes received so far
}

// recvStream is the receiving end of a stream. Invariant: stable <= written <= next with
// checkpoints, acked <= next.
type recvStream struct {
	next    uint64 // The message that the agent consumes next.
	latest  uint64 // The latest iteration of the messages that have arrived in this process.
	written uint64 // The value of next in the newest checkpoint.
	stable  uint64 // Messages before this one will never be needed again.
	acked   uint64 // The value of next that the sender was last told.
	// ofLatest is the number of messages of iteration latest that have arrived.
	ofLatest int
	// ackDueBytes are the bytes of the messages that were consumed after that.
	ackDueBytes int
	queue       []*recvMessage // The complete messages next, next+1, …
}

// take adds a message that has arrived.
func (in *recvStream) take(m *recvMessage) {
	in.queue = append(in.queue, m)
	switch {
	case in.ofLatest == 0 || m.t > in.latest:
		in.latest, in.ofLatest = m.t, 1
	case m.t == in.latest:
		in.ofLatest++
	}
}

// arrived returns the number of the message that must arrive next.
func (in *recvStream) arrived() uint64 { return in.next + uint64(len(in.queue)) }

// hasRoom reports whether a sender that keeps to the window may send a message of size bytes now.
func (in *recvStream) hasRoom(size int) bool {
	for _, m := range in.queue {
		size += m.total
	}
	return len(in.queue) < 2 || len(in.queue) < window && size <= windowBytes
}

// pop removes and returns the next message, nil if it has not arrived.
func (in *recvStream) pop(durable bool) *recvMessage {
	if len(in.queue) == 0 {
		return nil
	}
	m := in.queue[0]
	in.queue[0] = nil
	in.queue = in.queue[1:]
	in.next++
	in.ackDueBytes += m.total
	if !durable {
		in.stable = in.next
	}
	return m
}
