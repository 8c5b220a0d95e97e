package nats

// window is how many messages of a line may be on their way: sent, and not taken by the receiver's
// agent.
const window = 8

// windowBytes is how many bytes of them, beyond the two messages that a Transport promises to hold.
const windowBytes = 64 << 20

// record is a message that was sent, as long as its receiver may ask for it.
type record struct {
	seq, t uint64
	body   segments // as sent
	size   int      // of the body
	raw    int      // bytes unpacked
	lent   *lent    // whose memory the body is; nil: its own
}

// outLine is one direction of a stream at its sender.
type outLine struct {
	next  uint64 // number of the next message
	taken uint64 // the receiver's agent has taken all before this one
	log   []record
	bytes int // of the bodies in log
}

// room tells whether another message of so many bytes may go.
func (o *outLine) room(size int) bool {
	if o.taken >= o.next {
		return true
	}
	flying := o.next - o.taken
	if flying < 2 {
		return true
	}
	bytes := size
	for i := len(o.log) - 1; i >= 0 && o.log[i].seq >= o.taken; i-- {
		bytes += o.log[i].size
	}
	return flying < window && bytes <= windowBytes
}

// first is the number of the first message that is still kept, or the next one.
func (o *outLine) first() uint64 {
	if len(o.log) > 0 {
		return o.log[0].seq
	}
	return o.next
}

// push numbers a message and keeps it.
func (o *outLine) push(t int, body segments, raw int, l *lent) record {
	r := record{seq: o.next, t: uint64(t), body: body, size: body.size(), raw: raw, lent: l}
	o.next++
	o.log = append(o.log, r)
	o.bytes += r.size
	return r
}

// find returns the message with a number, if it is still kept.
func (o *outLine) find(seq uint64) (record, bool) {
	if len(o.log) == 0 || seq < o.log[0].seq || seq-o.log[0].seq >= uint64(len(o.log)) {
		return record{}, false
	}
	return o.log[seq-o.log[0].seq], true
}

// heard notes how far the receiver is: its agent has taken all before taken, and will never ask for
// what is before stable. It tells whether anything changed.
func (o *outLine) heard(taken, stable uint64) bool {
	changed := taken > o.taken
	o.taken = max(o.taken, taken)
	drop := 0
	for drop < len(o.log) && o.log[drop].seq < min(stable, taken) {
		o.bytes -= o.log[drop].size
		if drop < idle { // the memory of a long log is for others
			o.log[drop].lent.release()
		}
		o.log[drop] = record{}
		drop++
	}
	o.log = o.log[drop:]
	return changed
}

// parcel is a message that arrives, piece by piece.
type parcel struct {
	t      uint64
	packed bool
	raw    int
	total  int
	body   []byte // as far as it is there without a gap
	// pouring says that a piece is just being added
	pouring bool
}

func (p *parcel) whole() bool { return len(p.body) == p.total }

// inLine is one direction of a stream at its receiver.
type inLine struct {
	next    uint64 // the message that the agent takes next
	stable  uint64 // what is before this one is never asked for again
	said    uint64 // the last next that the sender was told of
	parcels map[uint64]*parcel
	pieces  int // counts what arrived: a sign that more is on its way
}

// accept takes a piece that fits and tells whether a message became whole. lend makes memory for a
// message.
func (in *inLine) accept(f *frame, limit int, lend func(int) []byte) (whole bool) {
	p := in.open(f, len(f.piece), limit, lend)
	if p == nil {
		return false
	}
	p.body = append(p.body, f.piece...)
	in.pieces++
	return p.whole()
}

// open returns the message that a piece of so many bytes is the next of, or nil.
func (in *inLine) open(f *frame, size, limit int, lend func(int) []byte) *parcel {
	if f.seq < in.next || f.seq-in.next >= window || uint64(f.total) > uint64(limit) || uint64(f.raw) > uint64(limit) {
		return nil
	}
	p := in.parcels[f.seq]
	if p == nil {
		if f.offset != 0 {
			return nil
		}
		p = &parcel{t: f.t, packed: f.flags&flagPacked != 0, raw: int(f.raw), total: int(f.total),
			body: lend(int(f.total))}
		in.parcels[f.seq] = p
		return p
	}
	if p.pouring || p.whole() || p.t != f.t || p.total != int(f.total) || p.raw != int(f.raw) ||
		int(f.offset) != len(p.body) || len(p.body)+size > p.total {
		return nil
	}
	return p
}

// take removes the next message if it is whole.
func (in *inLine) take(durable bool) (*parcel, bool) {
	p := in.parcels[in.next]
	if p == nil || !p.whole() {
		return nil, false
	}
	delete(in.parcels, in.next)
	in.next++
	if !durable {
		in.stable = in.next
	}
	return p, true
}

// lacks returns the byte from which on the next message is missing.
func (in *inLine) lacks() int {
	if p := in.parcels[in.next]; p != nil {
		return len(p.body)
	}
	return 0
}

// forget drops what is not whole: its sender has begun another life.
func (in *inLine) forget() {
	for seq, p := range in.parcels {
		if !p.whole() {
			delete(in.parcels, seq)
		}
	}
}
