package live

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// letter is what the two ends of an edge write to each other. As bytes, little-endian:
//
//	 0  kind, flags, zero, zero   a byte each
//	 4  call                      uint32
//	 8  epoch, n                  uint32 each
//	16  t                         uint64
//	24  pace                      uint64, nanoseconds
//	32  lengths                   uint32 each of two vectors
//	40  values                    float32 each
type letter struct {
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

func (l *letter) is(flag uint8) bool { return l.flags&flag != 0 }

const letterHead = 40

// bytes writes a letter.
func (l *letter) bytes() []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, letterHead+4*(len(l.values)+len(l.buffers)))
	b = append(b, byte(l.kind), l.flags, 0, 0)
	b = le.AppendUint32(b, l.call)
	b = le.AppendUint32(b, uint32(l.epoch))
	b = le.AppendUint32(b, uint32(l.n))
	b = le.AppendUint64(b, uint64(l.t))
	b = le.AppendUint64(b, uint64(l.pace))
	b = le.AppendUint32(b, uint32(len(l.values)))
	b = le.AppendUint32(b, uint32(len(l.buffers)))
	for _, vs := range [2][]float32{l.values, l.buffers} {
		for _, v := range vs {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	return b
}

// LetterError reports a record that is no letter of this edge.
type LetterError struct {
	From int
	Got  string
}

func (e *LetterError) Error() string {
	return fmt.Sprintf("live: agent %d says what cannot be understood: %s; do both run the same program?", e.From, e.Got)
}

// bounds is what a letter may hold: vectors of the model and of its buffers, and times of the run.
type bounds struct{ dim, buffers, until int }

// readLetter reads a letter, and refuses one that no agent of this run writes.
func readLetter(b []byte, most bounds) (l letter, got string) {
	le := binary.LittleEndian
	if len(b) < letterHead {
		return l, fmt.Sprintf("a letter of %d bytes", len(b))
	}
	l = letter{kind: kind(b[0]), flags: b[1], call: le.Uint32(b[4:]), epoch: int(le.Uint32(b[8:])), n: int(le.Uint32(b[12:]))}
	t, pace, first, second := le.Uint64(b[16:]), le.Uint64(b[24:]), uint64(le.Uint32(b[32:])), uint64(le.Uint32(b[36:]))
	switch {
	case l.kind == 0 || l.kind >= kindEnd || l.flags >= flagsEnd || b[2] != 0 || b[3] != 0:
		return l, fmt.Sprintf("a letter of %v with flags %#x", l.kind, l.flags)
	case t > uint64(most.until)+maxBeyond || pace > uint64(time.Hour):
		return l, fmt.Sprintf("logical time %d in a run to %d, %d ns a gradient", t, most.until, pace)
	case first > uint64(most.dim) || second > uint64(most.buffers) || uint64(len(b)) != letterHead+4*(first+second):
		return l, fmt.Sprintf("vectors of %d and %d values in a letter of %d bytes", first, second, len(b))
	}
	l.t, l.pace = int(t), time.Duration(pace)
	b = b[letterHead:]
	l.values, b = floats(b, int(first))
	l.buffers, _ = floats(b, int(second))
	return l, ""
}

// maxBeyond is how far beyond the end of the run a logical time may be: the steps of mailboxes that are emptied there.
const maxBeyond = 1 << 20

// floats reads n values.
func floats(b []byte, n int) ([]float32, []byte) {
	if n == 0 {
		return nil, b
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, b[4*n:]
}
