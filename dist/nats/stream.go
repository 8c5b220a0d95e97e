package nats

// window is the number of messages of a stream that may be in flight: sent and not consumed by the
// receiver's agent.
const window = 8

// windowBytes bounds their bytes. Two messages are allowed regardless of size, as dist.Transport
// promises.
const windowBytes = 64 << 20

// sentMessage is a message that was sent and that its receiver may still request.
type sentMessage struct {
	seq, t  uint64
	body    segments // as sent
	size    int      // of the body
	rawSize int      // bytes uncompressed
	memory  *bodyRef // memory that the body refers to; nil: the body owns its memory
}

// sendStream is the sending end of a stream. Invariant: the log holds the messages first..next-1
// without gaps.
type sendStream struct {
	next     uint64 // number of the next message
	consumed uint64 // the receiver's agent has consumed all messages before this one
	log      []sentMessage
	bytes    int // of the bodies in log
}

// hasRoom reports whether a message of size bytes may be sent now.
func (o *sendStream) hasRoom(size int) bool {
	if o.consumed >= o.next {
		return true
	}
	flying := o.next - o.consumed
	if flying < 2 {
		return true
	}
	bytes := size
	for i := len(o.log) - 1; i >= 0 && o.log[i].seq >= o.consumed; i-- {
		bytes += o.log[i].size
	}
	return flying < window && bytes <= windowBytes
}

// firstKept returns the number of the first message in the log, or next if the log is empty.
func (o *sendStream) firstKept() uint64 {
	if len(o.log) > 0 {
		return o.log[0].seq
	}
	return o.next
}

// append numbers a message and adds it to the log.
func (o *sendStream) append(t int, body segments, raw int, l *bodyRef) sentMessage {
	r := sentMessage{seq: o.next, t: uint64(t), body: body, size: body.size(), rawSize: raw, memory: l}
	o.next++
	o.log = append(o.log, r)
	o.bytes += r.size
	return r
}

// find returns the message with a number, if it is in the log.
func (o *sendStream) find(seq uint64) (sentMessage, bool) {
	if len(o.log) == 0 || seq < o.log[0].seq || seq-o.log[0].seq >= uint64(len(o.log)) {
		return sentMessage{}, false
	}
	return o.log[seq-o.log[0].seq], true
}

// acknowledge records the receiver's position: its agent has consumed all messages before consumed
// and will never request those before stable. It reports whether consumed has grown.
func (o *sendStream) acknowledge(consumed, stable uint64) bool {
	changed := consumed > o.consumed
	o.consumed = max(o.consumed, consumed)
	drop := 0
	for drop < len(o.log) && o.log[drop].seq < min(stable, consumed) {
		o.bytes -= o.log[drop].size
		if drop < maxPooledBodies { // recycle only a few bodies; those of a long log are left to the garbage collector
			o.log[drop].memory.release()
		}
		o.log[drop] = sentMessage{}
		drop++
	}
	o.log = o.log[drop:]
	return changed
}

// recvMessage is a message that is being assembled from fragments.
type recvMessage struct {
	t          uint64
	compressed bool
	rawSize    int
	total      int
	body       []byte // the bytes received so far, without a gap
	// copying is true while a fragment is copied into body without the lock.
	copying bool
}

func (p *recvMessage) complete() bool { return len(p.body) == p.total }

// recvStream is the receiving end of a stream.
type recvStream struct {
	next      uint64 // the message that the agent consumes next
	stable    uint64 // messages before this one will never be requested again
	acked     uint64 // the value of next that the sender was last told
	messages  map[uint64]*recvMessage
	fragments int // number of fragments received; it grows while a message is arriving
}

// addFragment appends a fragment to its message and reports whether the message became complete.
// alloc returns the memory for the body of a message.
func (in *recvStream) addFragment(f *frame, limit int, alloc func(int) []byte) (whole bool) {
	p := in.fragmentTarget(f, len(f.payload), limit, alloc)
	if p == nil {
		return false
	}
	p.body = append(p.body, f.payload...)
	in.fragments++
	return p.complete()
}

// fragmentTarget returns the message that a fragment of size bytes continues, or nil if the
// fragment does not fit.
func (in *recvStream) fragmentTarget(f *frame, size, limit int, alloc func(int) []byte) *recvMessage {
	if f.seq < in.next || f.seq-in.next >= window || uint64(f.total) > uint64(limit) || uint64(f.raw) > uint64(limit) {
		return nil
	}
	p := in.messages[f.seq]
	if p == nil {
		if f.offset != 0 {
			return nil
		}
		p = &recvMessage{t: f.t, compressed: f.flags&flagCompressed != 0, rawSize: int(f.raw), total: int(f.total),
			body: alloc(int(f.total))}
		in.messages[f.seq] = p
		return p
	}
	if p.copying || p.complete() || p.t != f.t || p.total != int(f.total) || p.rawSize != int(f.raw) ||
		int(f.offset) != len(p.body) || len(p.body)+size > p.total {
		return nil
	}
	return p
}

// pop removes and returns the next message if it is complete.
func (in *recvStream) pop(durable bool) (*recvMessage, bool) {
	p := in.messages[in.next]
	if p == nil || !p.complete() {
		return nil, false
	}
	delete(in.messages, in.next)
	in.next++
	if !durable {
		in.stable = in.next
	}
	return p, true
}

// missingFrom returns the first missing byte of the next message.
func (in *recvStream) missingFrom() int {
	if p := in.messages[in.next]; p != nil {
		return len(p.body)
	}
	return 0
}

// dropPartial drops incomplete messages, because their sender has restarted.
func (in *recvStream) dropPartial() {
	for seq, p := range in.messages {
		if !p.complete() {
			delete(in.messages, seq)
		}
	}
}
