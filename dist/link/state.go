package link

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Save returns the state of the streams for a checkpoint: their positions, and the messages that
// were sent and may be requested again. The agent must call it between two iterations, so that it
// fits the agent's vectors.
//
// The encoding is, for each other agent by rank: the number of the next exchange to consume; then
// for each durable stream the number of the next message to send, the number of entries in the log,
// and these entries.
func (n *Node) Save() []byte {
	le := binary.LittleEndian
	size := 8 + 64*len(n.peers)
	for _, p := range n.others() {
		p.mu.Lock()
		size += p.out[exchanges].bytes + p.out[reports].bytes
		p.mu.Unlock()
	}
	b := le.AppendUint64(make([]byte, 0, size), n.wireBytesSent.Load())
	for _, p := range n.others() {
		p.mu.Lock()
		b = le.AppendUint64(b, p.in[exchanges].next)
		for s := range durableStreams {
			o := &p.out[s]
			b = le.AppendUint64(b, o.next)
			b = le.AppendUint32(b, uint32(len(o.log)))
			for _, r := range o.log {
				b = le.AppendUint64(b, r.seq)
				b = le.AppendUint64(b, r.t)
				b = le.AppendUint32(b, uint32(r.rawSize))
				b = le.AppendUint32(b, uint32(r.size))
				for _, part := range r.body {
					b = append(b, part...)
				}
			}
		}
		p.mu.Unlock()
	}
	return b
}

// Stable reports that the state returned by Save is on disk, as part of a checkpoint that needs no
// reports before number reported. The other agents may then delete the messages that the checkpoint
// before this one does not need: of the two that are kept, the newer one may be found damaged.
func (n *Node) Stable(state []byte, reported int) error {
	r := stateReader{b: state}
	r.uint64()
	for _, p := range n.others() {
		next, _, err := r.peer(n.bodyCodec.limit())
		if err != nil {
			return err
		}
		p.mu.Lock()
		for s, now := range [durableStreams]uint64{next, uint64(reported)} {
			in := &p.in[s]
			// rows may lack an agent that was absent: its reports have not come
			in.stable, in.written = max(in.stable, in.written), max(in.written, min(now, in.next))
		}
		p.link.acknowledge()
		p.mu.Unlock()
	}
	return nil
}

// restore sets the streams to a state that Save returned.
func (n *Node) restore(state []byte) error {
	r := stateReader{b: state}
	n.wireBytesSent.Store(r.uint64())
	for _, p := range n.others() {
		next, out, err := r.peer(n.bodyCodec.limit())
		if err != nil {
			return err
		}
		p.mu.Lock()
		if !p.absent { // Else they are streams to an agent that has left.
			p.in[exchanges].next, p.in[exchanges].written = next, next
			p.out = out
		}
		p.mu.Unlock()
	}
	if len(r.b) != 0 {
		return fmt.Errorf("link: the saved stream state has %d extra bytes: it belongs to a run with more agents, or "+
			"is damaged", len(r.b))
	}
	return nil
}

// stateReader decodes the result of Save.
type stateReader struct {
	b   []byte
	cut bool
}

var errCut = errors.New("link: the saved stream state is truncated or damaged")

func (r *stateReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.cut, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *stateReader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *stateReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// follows reports whether the entry after m may have the number seq. Further empty messages may lie
// between an empty one and the next entry.
func follows(m sentMessage, seq uint64) bool { return seq > m.seq && (seq == m.seq+1 || m.size == 0) }

// peer decodes the streams of one other agent.
func (r *stateReader) peer(limit int) (next uint64, out [numStreams]sendStream, err error) {
	next = r.uint64()
	for s := range durableStreams {
		o := &out[s]
		o.next = r.uint64()
		kept := r.uint32()
		for k := range kept {
			rec := sentMessage{seq: r.uint64(), t: r.uint64(), rawSize: int(r.uint32())}
			body := r.take(uint64(r.uint32()))
			rec.body, rec.size = segments{body}, len(body)
			if r.cut || rec.rawSize > limit || k > 0 && !follows(o.log[k-1], rec.seq) {
				return 0, out, errCut
			}
			o.log = append(o.log, rec)
			o.bytes += rec.size + messageOverhead
		}
		if kept > 0 && !follows(o.log[kept-1], o.next) {
			return 0, out, errCut
		}
	}
	if r.cut {
		return 0, out, errCut
	}
	return next, out, nil
}
