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
// for exchanges and reports the number of the next message to send, the number of entries in the
// log, and these entries. If there were evaluations, the same follows of them for each other agent.
func (n *Node) Save() []byte {
	size, evaluated := 8+64*len(n.peers), false
	for _, p := range n.others() {
		p.mu.Lock()
		for s := range durableStreams {
			size += p.out[s].bytes
		}
		evaluated = evaluated || p.in[evaluations].next > 0 || p.out[evaluations].next > 0
		p.mu.Unlock()
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, size), n.wireBytesSent.Load())
	b = n.appendStreams(b, exchanges, reports)
	if evaluated {
		b = n.appendStreams(b, evaluations)
	}
	return b
}

// appendStreams appends, for each other agent, the number of the next message of the first stream to
// consume, and the logs of all of them.
func (n *Node) appendStreams(b []byte, streams ...int) []byte {
	le := binary.LittleEndian
	for _, p := range n.others() {
		p.mu.Lock()
		b = le.AppendUint64(b, p.in[streams[0]].next)
		for _, s := range streams {
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

// savedPeer has the saved streams of one other agent: the numbers of the next messages to consume, and
// the streams to it.
type savedPeer struct {
	next [durableStreams]uint64
	out  [numStreams]sendStream
}

// decodeState decodes the result of Save for a number of other agents.
func decodeState(state []byte, others, limit int) (wireBytes uint64, peers []savedPeer, err error) {
	r := stateReader{b: state}
	wireBytes, peers = r.uint64(), make([]savedPeer, others)
	for i := range peers {
		if err := r.streams(&peers[i], limit, exchanges, reports); err != nil {
			return 0, nil, err
		}
	}
	for i := range peers {
		if i == 0 && len(r.b) == 0 { // No evaluation has come before.
			break
		}
		if err := r.streams(&peers[i], limit, evaluations); err != nil {
			return 0, nil, err
		}
	}
	if len(r.b) != 0 {
		return 0, nil, fmt.Errorf("link: the saved stream state has %d extra bytes: it belongs to a run with more "+
			"agents, or is damaged", len(r.b))
	}
	return wireBytes, peers, nil
}

// Stable reports that the state returned by Save is on disk, as part of a checkpoint that needs no
// reports before number reported. The other agents may then delete the messages that the checkpoint
// before this one does not need: of the two that are kept, the newer one may be found damaged.
func (n *Node) Stable(state []byte, reported int) error {
	others := n.others()
	_, saved, err := decodeState(state, len(others), n.bodyCodec.limit())
	if err != nil {
		return err
	}
	for i, p := range others {
		now := saved[i].next
		now[reports] = uint64(reported)
		p.mu.Lock()
		for s, now := range now {
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
	others := n.others()
	wireBytes, saved, err := decodeState(state, len(others), n.bodyCodec.limit())
	if err != nil {
		return err
	}
	n.wireBytesSent.Store(wireBytes)
	for i, p := range others {
		p.mu.Lock()
		if !p.absent { // Else they are streams to an agent that has left.
			for s, next := range saved[i].next {
				p.in[s].next, p.in[s].written = next, next
			}
			p.out = saved[i].out
		}
		p.mu.Unlock()
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

// streams decodes the output of appendStreams about one other agent.
func (r *stateReader) streams(p *savedPeer, limit int, streams ...int) error {
	p.next[streams[0]] = r.uint64()
	for _, s := range streams {
		o := &p.out[s]
		o.next = r.uint64()
		kept := r.uint32()
		for k := range kept {
			rec := sentMessage{seq: r.uint64(), t: r.uint64(), rawSize: int(r.uint32())}
			body := r.take(uint64(r.uint32()))
			rec.body, rec.size = segments{body}, len(body)
			if r.cut || rec.rawSize > limit || k > 0 && !follows(o.log[k-1], rec.seq) {
				return errCut
			}
			o.log = append(o.log, rec)
			o.bytes += rec.size + messageOverhead
		}
		if kept > 0 && !follows(o.log[kept-1], o.next) {
			return errCut
		}
	}
	if r.cut {
		return errCut
	}
	return nil
}
