package live

import (
	"encoding/binary"
	"fmt"
	"time"

	"fspda/dist"
)

// message is a message between the two ends of an edge. Its encoding, little-endian:
//
//	 0  kind, flags, zero, zero   a byte each
//	 4  call                      uint32
//	 8  epoch, n                  uint32 each
//	16  t                         uint64
//	24  gradient time             uint64, nanoseconds
//	32  lengths                   uint32 each of two vectors
//	40  values                    float32 each; in an offer and in values, in the run's format
type message struct {
	kind         kind
	flags        uint8
	call         uint32 // number of the call in this session
	epoch, n     int    // epoch and number of the edge at the sender
	t            int    // logical time of the sender, or of the exchange
	gradientTime time.Duration
	values       []float32 // values on the mask; all of S or x
	buffers      []float32 // buffers of batch norm, in a model
}

type kind uint8

const (
	hello   kind = iota + 1 // the state of the sender's end of the edge
	state                   // all of S, for an end that is behind
	model                   // all of x, for an agent that joins
	call                    // requests an exchange
	decline                 // refuses the call
	offer                   // accepts the call, with values
	values                  // accepts the offer, with values: the sender has committed
	cancel                  // refuses the offer: the sender has not committed
	kindEnd
)

var kindNames = [...]string{"", "hello", "state", "model", "call", "decline", "offer", "values", "cancel"}

func (k kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Flags of a hello.
const (
	flagAnswer  = 1 << iota // it needs no answer
	flagFresh               // the sender has no history of this edge
	flagAtEnd               // the sender has reached the end of the run
	flagWant                // the sender joins and requests a model
	flagJoining             // the sender has no model worth sending yet
	flagFinal               // the sender has finished: its state does not change any more. Also of a state
	flagsEnd
)

func (msg *message) has(flag uint8) bool { return msg.flags&flag != 0 }

const headerSize = 40

// format returns the format of a message's values in a run with the given format. Duals and models
// are always float32.
func (k kind) format(wire dist.ValueFormat) dist.ValueFormat {
	if k == offer || k == values {
		return wire
	}
	return dist.FP32
}

func (msg *message) encode(wire dist.ValueFormat) []byte {
	le, format := binary.LittleEndian, msg.kind.format(wire)
	b := make([]byte, 0, headerSize+format.Bits()/8*len(msg.values)+4*len(msg.buffers))
	b = append(b, byte(msg.kind), msg.flags, 0, 0)
	b = le.AppendUint32(b, msg.call)
	b = le.AppendUint32(b, uint32(msg.epoch))
	b = le.AppendUint32(b, uint32(msg.n))
	b = le.AppendUint64(b, uint64(msg.t))
	b = le.AppendUint64(b, uint64(msg.gradientTime))
	b = le.AppendUint32(b, uint32(len(msg.values)))
	b = le.AppendUint32(b, uint32(len(msg.buffers)))
	return dist.FP32.Append(format.Append(b, msg.values), msg.buffers)
}

// MessageError reports an invalid message of another agent.
type MessageError struct {
	From int
	Got  string
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("live: agent %d has sent an invalid message: %s; do both run the same program?", e.From, e.Got)
}

// limits bounds the content of a message: lengths of vectors, logical time, and the format of
// values.
type limits struct {
	dim, buffers, until int
	wire                dist.ValueFormat
}

// decodeMessage decodes a message. got describes why it is invalid, "" if it is valid.
func decodeMessage(b []byte, allowed limits) (msg message, got string) {
	le := binary.LittleEndian
	if len(b) < headerSize {
		return msg, fmt.Sprintf("%d bytes without a header", len(b))
	}
	msg = message{kind: kind(b[0]), flags: b[1], call: le.Uint32(b[4:]), epoch: int(le.Uint32(b[8:])),
		n: int(le.Uint32(b[12:]))}
	format := msg.kind.format(allowed.wire)
	width := uint64(format.Bits() / 8)
	t, pace, first, second := le.Uint64(b[16:]), le.Uint64(b[24:]), uint64(le.Uint32(b[32:])), uint64(le.Uint32(b[36:]))
	switch {
	case msg.kind == 0 || msg.kind >= kindEnd || msg.flags >= flagsEnd || b[2] != 0 || b[3] != 0:
		return msg, fmt.Sprintf("a message of %v with flags %#x", msg.kind, msg.flags)
	case t > uint64(allowed.until)+maxOvertime || pace > uint64(time.Hour):
		return msg, fmt.Sprintf("logical time %d in a run of %d, %d ns per gradient", t, allowed.until, pace)
	case first > uint64(allowed.dim) || second > uint64(allowed.buffers) || uint64(len(
		b)) != headerSize+width*first+4*second:
		return msg, fmt.Sprintf("vectors of %d and %d values in a message of %d bytes", first, second, len(b))
	}
	msg.t, msg.gradientTime = int(t), time.Duration(pace)
	b = b[headerSize:]
	if format.FirstNotFinite(b[:width*first]) >= 0 || dist.FP32.FirstNotFinite(b[width*first:]) >= 0 {
		return msg, "values that are not finite"
	}
	msg.values = decodeValues(format, b[:width*first], int(first))
	msg.buffers = decodeValues(dist.FP32, b[width*first:], int(second))
	return msg, ""
}

// maxOvertime bounds the logical time beyond the end of the run: steps that only apply a mailbox.
const maxOvertime = 1 << 20

func decodeValues(format dist.ValueFormat, b []byte, n int) []float32 {
	if n == 0 {
		return nil
	}
	v := make([]float32, n)
	format.Read(v, b)
	return v
}
