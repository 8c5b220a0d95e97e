package live

import (
	"encoding/binary"
	"fmt"
	"time"

	"fspda/dist"
)

// letter is what the two ends of an edge write to each other. As bytes, little-endian:
//
//	 0  kind, flags, zero, zero   a byte each
//	 4  call                      uint32
//	 8  epoch, n                  uint32 each
//	16  t                         uint64
//	24  pace                      uint64, nanoseconds
//	32  lengths                   uint32 each of two vectors
//	40  values                    float32 each; those of an offer and its answer as the run's messages travel
type message struct {
	kind     kind
	flags    uint8
	call     uint32 // which call of this talk it is about
	epoch, n int    // of the edge at the writer
	t        int    // logical time: the writer's own, or that of the exchange
	pace     time.Duration
	values   []float32 // of the mask; all of S or x
	buffers  []float32 // of batch norm, in a model
}

type kind uint8

const (
	hello   kind = iota + 1 // where I stand
	state                   // all of my S, for an end that is behind
	model                   // my x, for one that joins
	call                    // shall we exchange?
	decline                 // not now
	offer                   // yes: my values
	values                  // mine; I have committed
	cancel                  // never mind: I have not
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
	flagAnswer  = 1 << iota // it needs none itself
	flagFresh               // I know nothing of this edge
	flagOver                // I am at the end of the run
	flagWant                // I join: send me your model
	flagJoining             // I have none that is worth anything yet
	flagsEnd
)

func (l *message) is(flag uint8) bool { return l.flags&flag != 0 }

const letterHead = 40

// format is how the values of a letter are written in a run whose messages travel as wire. Duals
// and models keep all their bits.
func (k kind) format(wire dist.ValueFormat) dist.ValueFormat {
	if k == offer || k == values {
		return wire
	}
	return dist.FP32
}

// bytes writes a letter.
func (l *message) bytes(wire dist.ValueFormat) []byte {
	le, format := binary.LittleEndian, l.kind.format(wire)
	b := make([]byte, 0, letterHead+format.Bits()/8*len(l.values)+4*len(l.buffers))
	b = append(b, byte(l.kind), l.flags, 0, 0)
	b = le.AppendUint32(b, l.call)
	b = le.AppendUint32(b, uint32(l.epoch))
	b = le.AppendUint32(b, uint32(l.n))
	b = le.AppendUint64(b, uint64(l.t))
	b = le.AppendUint64(b, uint64(l.pace))
	b = le.AppendUint32(b, uint32(len(l.values)))
	b = le.AppendUint32(b, uint32(len(l.buffers)))
	return dist.FP32.Append(format.Append(b, l.values), l.buffers)
}

// LetterError reports a record that is no letter of this edge.
type MessageError struct {
	From int
	Got  string
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("live: agent %d says what cannot be understood: %s; do both run the same program?", e.From,
		e.Got)
}

// bounds is what a letter may hold: vectors of the model and of its buffers, times of the run, and
// values as they travel.
type bounds struct {
	dim, buffers, until int
	wire                dist.ValueFormat
}

// readLetter reads a letter, and refuses one that no agent of this run writes.
func readLetter(b []byte, most bounds) (l message, got string) {
	le := binary.LittleEndian
	if len(b) < letterHead {
		return l, fmt.Sprintf("a letter of %d bytes", len(b))
	}
	l = message{kind: kind(b[0]), flags: b[1], call: le.Uint32(b[4:]), epoch: int(le.Uint32(b[8:])),
		n: int(le.Uint32(b[12:]))}
	format := l.kind.format(most.wire)
	width := uint64(format.Bits() / 8)
	t, pace, first, second := le.Uint64(b[16:]), le.Uint64(b[24:]), uint64(le.Uint32(b[32:])), uint64(le.Uint32(b[36:]))
	switch {
	case l.kind == 0 || l.kind >= kindEnd || l.flags >= flagsEnd || b[2] != 0 || b[3] != 0:
		return l, fmt.Sprintf("a letter of %v with flags %#x", l.kind, l.flags)
	case t > uint64(most.until)+maxBeyond || pace > uint64(time.Hour):
		return l, fmt.Sprintf("logical time %d in a run to %d, %d ns a gradient", t, most.until, pace)
	case first > uint64(most.dim) || second > uint64(most.buffers) || uint64(len(b)) != letterHead+width*first+4*second:
		return l, fmt.Sprintf("vectors of %d and %d values in a letter of %d bytes", first, second, len(b))
	}
	l.t, l.pace = int(t), time.Duration(pace)
	b = b[letterHead:]
	l.values = numbers(format, b[:width*first], int(first))
	l.buffers = numbers(dist.FP32, b[width*first:], int(second))
	return l, ""
}

// maxBeyond is how far beyond the end of the run a logical time may be: the steps of mailboxes that
// are emptied there.
const maxBeyond = 1 << 20

// numbers reads n values.
func numbers(format dist.ValueFormat, b []byte, n int) []float32 {
	if n == 0 {
		return nil
	}
	v := make([]float32, n)
	format.Read(v, b)
	return v
}
