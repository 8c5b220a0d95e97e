package nats

import (
	"encoding/binary"
	"fmt"
)

// ack is the body of a kindAck frame: for each stream that leads to its sender, the message that
// its agent takes next, and the one from which on it may still ask.
type ack struct {
	next, stable [streams]uint64
	// the log of what the receiver may ask for is long: a checkpoint of the receiver would make it
	// short
	full bool
}

const ackSize = 16*streams + 1

func (a *ack) append(dst []byte) []byte {
	for s := range a.next {
		dst = binary.LittleEndian.AppendUint64(dst, a.next[s])
		dst = binary.LittleEndian.AppendUint64(dst, a.stable[s])
	}
	if a.full {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func decodeAck(b []byte) (a ack, err error) {
	if len(b) != ackSize || b[ackSize-1] > 1 {
		return a, &FrameError{Got: fmt.Sprintf("an acknowledgement of %d bytes, expected %d", len(b), ackSize)}
	}
	for s := range a.next {
		a.next[s] = binary.LittleEndian.Uint64(b[16*s:])
		a.stable[s] = binary.LittleEndian.Uint64(b[16*s+8:])
	}
	a.full = b[ackSize-1] == 1
	return a, nil
}
