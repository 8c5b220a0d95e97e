package snapshot

import (
	"encoding/binary"
	"fmt"

	"fspda/device"
	"fspda/train/algo"
)

// Numbers carries numbers of an evaluation between agents that follow each other, in order.
type Numbers interface {
	Send(to int, numbers []float64) error
	Receive(from int, into []float64) error
}

// Part has the metrics of an agent's model that the agent's process computes for a row of all agents.
// Those that the row does not need are not set.
type Part struct {
	Distance float64 // squared distance from the mean model
	L2       float64 // the L2 term
	Loss     float64 // the objective
	GradSq   float64 // squared norm of its gradient
	Score    Score   // the predictions for the test set
	// Sums over all agents, which the last of them knows.
	Sums Sums
}

// Score sums the predictions of a model over test examples: one of each, or of each token of a
// window.
type Score struct {
	Loss, Hits, Hits5 float64
	Examples          int64 // predictions
}

// Add adds the score of more examples.
func (s *Score) Add(o Score) {
	s.Loss += o.Loss
	s.Hits += o.Hits
	s.Hits5 += o.Hits5
	s.Examples += o.Examples
}

// Rates returns accuracy and mean cross entropy.
func (s Score) Rates() (acc, loss float64) {
	return s.Hits / float64(s.Examples), s.Loss / float64(s.Examples)
}

// Sums are metrics of the mean model and of all duals.
type Sums struct {
	Loss, GradSq       float64 // objective at the mean model, and squared norm of its gradient
	DualSum, DualTrack float64
}

// partSize is the number of bytes of an encoded Part.
var partSize = binary.Size(Part{})

// EncodePart returns the part of a snapshot as bytes: the header as in Encode, the Part, and the
// buffers of batch norm.
func (sn *Snapshot) EncodePart() ([]byte, error) {
	b, err := sn.appendHeader()
	if err != nil {
		return nil, err
	}
	if b, err = binary.Append(b, binary.LittleEndian, sn.Part); err != nil || sn.Buffers == nil {
		return b, err
	}
	return sn.appendVectors(b, sn.Buffers)
}

// DecodePart fills a snapshot of the same lengths and edges from the result of EncodePart.
func (sn *Snapshot) DecodePart(b []byte) error {
	h, b, err := decodeHeader(b)
	if err != nil {
		return err
	}
	want := partSize
	if sn.Buffers != nil {
		want += 4 * sn.Buffers.Len()
	}
	if len(b) != want || !sn.hasEdges(h.Edges) {
		return fmt.Errorf("a part of an evaluation of another agent: %d bytes and %d edges, expected %d and %d", len(b),
			len(h.Edges), want, len(sn.Edges))
	}
	n, err := binary.Decode(b, binary.LittleEndian, &sn.Part)
	if err != nil {
		return err
	}
	sn.take(h)
	if sn.Buffers != nil {
		sn.readVector(sn.Buffers, b[n:])
	}
	return nil
}

// pieceHead is the number of bytes before the values of a piece, and pieceLen the number of values in
// a long one.
const (
	pieceHead = 8
	pieceLen  = 64 << 10
)

// Pieces calls yield with all vectors of the snapshot, also of its edges, in pieces: their numbers in
// the order of the vectors, their places, as uint32, and their values.
func (sn *Snapshot) Pieces(yield func(piece []byte) error) error {
	for k, v := range sn.withEdges() {
		host := make([]float32, v.Len())
		sn.Device.Read(host, v)
		if err := sn.DeviceErr(); err != nil {
			return err
		}
		for from := 0; from < len(host); from += pieceLen {
			b := binary.LittleEndian.AppendUint32(nil, uint32(k))
			b = binary.LittleEndian.AppendUint32(b, uint32(from))
			if err := yield(appendFloats(b, host[from:min(from+pieceLen, len(host))])); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadPiece copies a piece to dst, whose first from values have come, if it is the next one of vector
// k, and returns how many have come then. Any other one is left out.
func ReadPiece(dst []float32, piece []byte, k, from int) (int, error) {
	next := min(from+pieceLen, len(dst))
	if len(piece) < pieceHead {
		return from, fmt.Errorf("a piece of a vector of %d bytes", len(piece))
	}
	le := binary.LittleEndian
	if le.Uint32(piece) != uint32(k) || le.Uint32(piece[4:]) != uint32(from) {
		return from, nil
	}
	if len(piece) != pieceHead+4*(next-from) {
		return from, fmt.Errorf("a piece of a vector of %d bytes, expected %d", len(piece), pieceHead+4*(next-from))
	}
	readFloats(dst[from:next], piece[pieceHead:])
	return next, nil
}

// remote is the device of the vectors of an agent in another process. A vector has its values only if
// they were written; else they are fetched when they are read.
type remote struct {
	device.Device // nil: nothing is computed with such vectors
	fetch         func(k int, dst []float32) error
	err           error
}

// remoteVector is vector k of a snapshot.
type remoteVector struct {
	k, n   int
	values []float32 // nil: they are not in this process
}

func (v *remoteVector) Len() int { return v.n }

// NewVector implements device.Device.
func (r *remote) NewVector(n int) device.Vector { return &remoteVector{n: n} }

// Err implements device.Device: the error of a fetch.
func (r *remote) Err() error { return r.err }

// Write implements device.Device.
func (r *remote) Write(dst device.Vector, src []float32) {
	v := dst.(*remoteVector)
	v.values = append(v.values[:0], src...)
}

// Read implements device.Device.
func (r *remote) Read(dst []float32, src device.Vector) {
	v := src.(*remoteVector)
	if v.values != nil {
		copy(dst, v.values)
	} else if r.err == nil {
		r.err = r.fetch(v.k, dst)
	}
}

// NewRemote makes a snapshot of an agent in another process, with as many vectors as s has. Its
// vectors take no memory, except for the buffers: they are fetched one after the other, in the order
// of Pieces, when they are read. edges makes the memory of the agent's edges on a device.
func NewRemote(s *algo.State, buffers int, edges func(device.Device) []*algo.EdgeMemory,
	fetch func(k int, dst []float32) error) *Snapshot {
	dev := &remote{fetch: fetch}
	sn := New(dev, s, buffers, edges(dev))
	for k, v := range sn.withEdges() {
		v.(*remoteVector).k = k
	}
	return sn
}
