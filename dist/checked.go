package dist

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Checked is a [Transport] from other processes, whose messages may be invalid.
type Checked interface {
	Transport
	// RecvChecked is Recv of a message that check accepts. A message that is refused is not taken: its
	// sender is named, and sends it again. A value that is not finite is an error, a
	// [BadValueError].
	RecvChecked(ctx context.Context, self, from, t int, check func(Message) error) (Message, error)
	// PeekChecked is RecvChecked that leaves the message where it is. The caller releases it before the
	// message is received.
	PeekChecked(ctx context.Context, self, from, t int, check func(Message) error) (Message, error)
}

// InvalidError reports a message or a report of another agent that no agent of the run sends.
type InvalidError struct{ Got string }

func (e *InvalidError) Error() string { return "dist: an invalid message: " + e.Got }

// Invalidf returns an InvalidError.
func Invalidf(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

// BadValueError reports that an agent has sent a value that is not a finite number.
type BadValueError struct {
	From, T    int
	Vector, At int // The vector of the message, and the position of the value in it.
	Value      float32
}

func (e *BadValueError) Error() string {
	return fmt.Sprintf("dist: agent %d has sent values that are not finite in iteration %d: value %d of vector %d is "+
		"%v: it has diverged, or its device or program is faulty: look at its log, or lower alpha", e.From, e.T, e.At,
		e.Vector, e.Value)
}

// FirstNotFinite returns the position of the first value that is not finite in b, the output of
// Append; -1 if all are.
func (f ValueFormat) FirstNotFinite(b []byte) int {
	// The exponent of such a value has all bits set: one more in its last place carries into the
	// place of the sign, which is masked out.
	exponent, last := uint64(infinity<<32|infinity), uint64(1<<55|1<<23)
	const sign = 1<<63 | 1<<47 | 1<<31 | 1<<15
	width := f.Bits() / 8
	switch f {
	case FP16:
		exponent, last = 0x7c007c007c007c00, 0x0400040004000400
	case BF16:
		exponent, last = 0x7f807f807f807f80, 0x0080008000800080
	}
	signs := sign & (exponent + last)
	const block = 64 // bytes that are examined at once
	at := 0
	for ; at+block <= len(b); at += block {
		w := b[at : at+block : at+block]
		any := uint64(0)
		for k := 0; k < block; k += 8 {
			any |= binary.LittleEndian.Uint64(w[k:])&exponent + last
		}
		if any&signs != 0 {
			break
		}
	}
	one := make([]float32, 1)
	for ; at < len(b); at += width {
		if f.Read(one, b[at:at+width]); !finite(one[0]) {
			return at / width
		}
	}
	return -1
}

func finite(x float32) bool { return math.Float32bits(x)&infinity != infinity }

// NotFinite returns an error about the first value of a list of vectors that is not finite; nil if
// all are.
func NotFinite(vectors [][]float32) error {
	for i, v := range vectors {
		if at := slices.IndexFunc(v, func(x float32) bool { return !finite(x) }); at >= 0 {
			return &BadValueError{Vector: i, At: at, Value: v[at]}
		}
	}
	return nil
}
