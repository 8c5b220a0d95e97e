package nats

import (
	"encoding/binary"
	"fmt"
)

// ack is the payload of a kindAck frame. For each stream to its sender it holds next, the number of
// the message that the agent consumes next, and stable, the first number that it may still request.
// Invariant: stable <= next.
type ack struct {
	next, stable [numStreams]uint64
	// the log for the sender is long: a checkpoint of the receiver would let the sender delete most
	// of it
	full bool
}

const ackSize = 16*numStreams + 1

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
