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
	h := header{Counters: sn.Counters, Clock: sn.Clock}
	vectors := sn.Vectors()
	if sn.Save {
		for _, e := range sn.Edges {
			h.Edges = append(h.Edges, edgeHeader{e.Peer, e.Count})
		}
		vectors = sn.withEdges()
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	for _, v := range vectors {
		host := make([]float32, v.Len())
		sn.Device.Read(host, v)
		for _, x := range host {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b, sn.DeviceErr()
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
	if len(b) < 4 {
		return fmt.Errorf("a snapshot of %d bytes is too short", len(b))
	}
	size := binary.LittleEndian.Uint32(b)
	if size > maxHeader || uint64(size) > uint64(len(b)-4) {
		return fmt.Errorf("a snapshot of %d bytes with a header of %d", len(b), size)
	}
	var h header
	if err := json.Unmarshal(b[4:4+size], &h); err != nil {
		return fmt.Errorf("the header of a snapshot cannot be read: %w", err)
	}
	vectors := sn.Vectors()
	if len(h.Edges) > 0 {
		vectors = sn.withEdges()
	}
	want := 0
	for _, v := range vectors {
		want += 4 * v.Len()
	}
	b = b[4+size:]
	if len(b) != want || !sn.hasEdges(h.Edges) {
		return fmt.Errorf("a snapshot of another agent: %d bytes of vectors and %d edges, expected %d and %d", len(b),
			len(h.Edges), want, len(sn.Edges))
	}
	sn.Counters, sn.Clock = h.Counters, h.Clock
	for i, e := range h.Edges {
		sn.Edges[i].Count = e.Count
	}
	for _, v := range vectors {
		host := make([]float32, v.Len())
		for i := range host {
			host[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		b = b[4*len(host):]
		sn.Device.Write(v, host)
	}
	return nil
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
