package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"fspda/device"
	"fspda/train/simnet"
)

// maxHeader is the longest encoding of a header that is accepted, in bytes.
const maxHeader = 4 << 20

// header holds the parts of an encoded snapshot that are not vectors.
type header struct {
	Counters
	Clock simnet.ClockState `json:"clock"`
	Edges []edgeHeader      `json:"edges,omitempty"` // edges, whose vectors follow the vectors of the agent
}

// edgeHeader describes the memory of an edge.
type edgeHeader struct {
	Peer  int `json:"peer"`
	Count int `json:"count"`
}

// Encode returns a snapshot as bytes: the length of its header as uint32, the header in JSON, and
// all vectors as float32, each little-endian. The memory of edges is included if the snapshot is to
// be saved: no evaluation reads it. Encode fails if the device has failed.
func (sn *Snapshot) Encode() ([]byte, error) {
	vectors := sn.Vectors()
	if sn.Save {
		vectors = sn.withEdges()
	}
	b, err := sn.appendHeader()
	if err != nil {
		return nil, err
	}
	return sn.appendVectors(b, vectors...)
}

// appendHeader returns the header, with its length before it.
func (sn *Snapshot) appendHeader() ([]byte, error) {
	h := header{Counters: sn.Counters, Clock: sn.Clock}
	if sn.Save {
		for _, e := range sn.Edges {
			h.Edges = append(h.Edges, edgeHeader{e.Peer, e.Count})
		}
	}
	text, err := json.Marshal(h)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...), err
}

func (sn *Snapshot) appendVectors(b []byte, vectors ...device.Vector) ([]byte, error) {
	for _, v := range vectors {
		host := make([]float32, v.Len())
		sn.Device.Read(host, v)
		b = appendFloats(b, host)
	}
	return b, sn.DeviceErr()
}

func appendFloats(b []byte, values []float32) []byte {
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// readFloats reads as many values as dst has, and returns the bytes behind them.
func readFloats(dst []float32, b []byte) []byte {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return b[4*len(dst):]
}

// withEdges lists Vectors and the vectors of the edges.
func (sn *Snapshot) withEdges() []device.Vector {
	vs := sn.Vectors()
	for _, e := range sn.Edges {
		vs = append(vs, e.Vectors...)
	}
	return vs
}

// Decode fills a snapshot of the same lengths and edges from the result of Encode. It leaves the
// memory of edges unchanged if the encoded snapshot was not to be saved.
func (sn *Snapshot) Decode(b []byte) error {
	h, b, err := decodeHeader(b)
	if err != nil {
		return err
	}
	vectors := sn.Vectors()
	if len(h.Edges) > 0 {
		vectors = sn.withEdges()
	}
	want := 0
	for _, v := range vectors {
		want += 4 * v.Len()
	}
	if len(b) != want || !sn.hasEdges(h.Edges) {
		return fmt.Errorf("a snapshot of another agent: %d bytes of vectors and %d edges, expected %d and %d", len(b),
			len(h.Edges), want, len(sn.Edges))
	}
	sn.take(h)
	for _, v := range vectors {
		b = sn.readVector(v, b)
	}
	return nil
}

// decodeHeader decodes the header, and returns the bytes behind it.
func decodeHeader(b []byte) (h header, rest []byte, err error) {
	if len(b) < 4 {
		return h, nil, fmt.Errorf("a snapshot of %d bytes is too short", len(b))
	}
	size := binary.LittleEndian.Uint32(b)
	if size > maxHeader || uint64(size) > uint64(len(b)-4) {
		return h, nil, fmt.Errorf("a snapshot of %d bytes with a header of %d", len(b), size)
	}
	if err := json.Unmarshal(b[4:4+size], &h); err != nil {
		return h, nil, fmt.Errorf("the header of a snapshot cannot be read: %w", err)
	}
	return h, b[4+size:], nil
}

// take sets the fields of a header, whose edges the snapshot has.
func (sn *Snapshot) take(h header) {
	sn.Counters, sn.Clock = h.Counters, h.Clock
	for i, e := range h.Edges {
		sn.Edges[i].Count = e.Count
	}
}

// readVector reads the values of a vector, and returns the bytes behind them.
func (sn *Snapshot) readVector(v device.Vector, b []byte) (rest []byte) {
	host := make([]float32, v.Len())
	rest = readFloats(host, b)
	sn.Device.Write(v, host)
	return rest
}

// hasEdges reports whether a header has no edges, or the edges of the snapshot.
func (sn *Snapshot) hasEdges(edges []edgeHeader) bool {
	if len(edges) > 0 && len(edges) != len(sn.Edges) {
		return false
	}
	for i, e := range edges {
		if e.Peer != sn.Edges[i].Peer {
			return false
		}
	}
	return true
}
