package link

import (
	"encoding/binary"
	"fmt"
	"math"

	"fspda/dist"
)

// A frame is a message of the gRPC stream between two nodes: a header and a payload. The payload of
// data is a fragment of a message body; the fragments of a message follow each other without a gap.
// All numbers are little-endian.
//
//	 0  kind, flags, stream, phase    a byte each
//	 4  total, raw          uint32 each: bytes of the whole body, as sent and uncompressed
//	12  awaits              uint32
//	16  seq                 uint64, number of the message in its stream
//	24  t                   uint64, iteration
//	32  next, stable        uint64 each, for each stream: acknowledgement of the receiver's messages
//
// An acknowledgement or a frame with news tells the position of the sender's agent: phase, awaits,
// t, and in seq the steps of [dist.Position]. In other frames phase and awaits are zero.
const headerSize = 32 + 16*numStreams

type frameKind uint8

const (
	kindHello  frameKind = iota + 1 // handshake: who the sender is and its position in each stream
	kindRefuse                      // the reason why the receiver is refused; the stream ends
	kindData                        // a fragment of a message
	kindAck                         // nothing but the acknowledgement; also a heartbeat
	kindNews                        // a heartbeat of agent 0, with news of other agents
	kindEnd
)

// The streams between two nodes. Each is numbered separately.
const (
	exchanges = iota // messages of the algorithm
	reports          // reports of the run: snapshots, the end
	sessions         // sessions, which end with either process: see session.go
	numStreams
)

// durableStreams is the number of streams that survive a restart of a process.
const durableStreams = sessions

const (
	flagCompressed = 1 // the body is compressed
	flagFull       = 2 // the sender keeps many messages for the receiver, whose checkpoint would free them
)

// ack acknowledges the messages of each stream: next is the number of the message that the agent
// consumes next, stable the first number that it may still need again. Invariant: stable <= next.
type ack struct{ next, stable [numStreams]uint64 }

// header is the decoded header of a frame.
type header struct {
	kind       frameKind
	flags      uint8
	stream     uint8
	phase      uint8
	total, raw uint32
	awaits     uint32
	seq, t     uint64
	ack        ack
}

// FrameError reports bytes that are not valid in this protocol.
type FrameError struct{ Got string }

func (e *FrameError) Error() string { return "link: a frame was refused: " + e.Got }

// append appends the encoding of the header.
func (h *header) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, byte(h.kind), h.flags, h.stream, h.phase)
	dst = le.AppendUint32(dst, h.total)
	dst = le.AppendUint32(dst, h.raw)
	dst = le.AppendUint32(dst, h.awaits)
	dst = le.AppendUint64(dst, h.seq)
	dst = le.AppendUint64(dst, h.t)
	for s := range h.ack.next {
		dst = le.AppendUint64(dst, h.ack.next[s])
		dst = le.AppendUint64(dst, h.ack.stable[s])
	}
	return dst
}

// decodeHeader decodes the header of a frame whose payload has size bytes. It refuses a header that
// no sender of this version writes.
func decodeHeader(b *[headerSize]byte, size int) (h header, err error) {
	le := binary.LittleEndian
	h = header{kind: frameKind(b[0]), flags: b[1], stream: b[2], phase: b[3], total: le.Uint32(b[4:]),
		raw: le.Uint32(b[8:]), awaits: le.Uint32(b[12:]), seq: le.Uint64(b[16:]), t: le.Uint64(b[24:])}
	for s := range h.ack.next {
		h.ack.next[s], h.ack.stable[s] = le.Uint64(b[32+16*s:]), le.Uint64(b[40+16*s:])
		if h.ack.stable[s] > h.ack.next[s] {
			return h, &FrameError{Got: fmt.Sprintf("message %d of stream %d is stable, but only those before %d were "+
				"consumed", h.ack.stable[s], s, h.ack.next[s])}
		}
	}
	switch {
	case h.kind == 0 || h.kind >= kindEnd:
		return h, &FrameError{Got: fmt.Sprintf("kind %d does not exist", h.kind)}
	case h.flags&^(flagCompressed|flagFull) != 0:
		return h, &FrameError{Got: fmt.Sprintf("flags %#x do not exist", h.flags)}
	case h.kind != kindAck && h.kind != kindNews && (h.phase != 0 || h.awaits != 0) || h.phase > uint8(dist.Waiting):
		return h, &FrameError{Got: fmt.Sprintf("phase %d, awaiting agent %d, in a frame of kind %d", h.phase, h.awaits,
			h.kind)}
	case h.stream >= numStreams:
		return h, &FrameError{Got: fmt.Sprintf("stream %d does not exist", h.stream)}
	case h.t > math.MaxInt64:
		return h, &FrameError{Got: fmt.Sprintf("iteration %d is out of range", h.t)}
	case uint64(size) > uint64(h.total):
		return h, &FrameError{Got: fmt.Sprintf("a fragment of %d bytes of a message of %d bytes", size, h.total)}
	case h.flags&flagCompressed == 0 && h.raw != h.total:
		return h, &FrameError{Got: fmt.Sprintf("an uncompressed body of %d bytes that claims to decompress to %d",
			h.total, h.raw)}
	}
	return h, nil
}
