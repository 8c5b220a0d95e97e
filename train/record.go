package train

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"fspda/device"
	"fspda/dist"
)

// A record is what one process of a run reports to another: a note, or the snapshot of an agent.
// The first byte says which.
const (
	recordNote     = 'n' // JSON of a note
	recordSnapshot = 's' // length of the head as uint32, little-endian; the head in JSON; all vectors as float32
)

// maxHead is the longest head of a snapshot, or note.
const maxHead = 64 << 10

// note is news of the run.
type note struct {
	Kind   noteKind `json:"kind"`
	Agent  int      `json:"agent,omitempty"`  // who diverged
	T      int      `json:"t"`                // iteration
	Event  int      `json:"event,omitempty"`  // of an asynchronous run: where it diverged
	Loss   Num      `json:"loss"`             // that it diverged with
	Cause  string   `json:"cause,omitempty"`  // what came before the loss could show it
	Status Status   `json:"status,omitempty"` // of the whole run
}

type noteKind string

const (
	noteDiverged noteKind = "diverged" // an agent's loss left the range of sense
	noteStopped  noteKind = "walked"   // the agent has stopped: it reports no more
	noteEnd      noteKind = "end"      // all are: the run is over
)

func (n note) record() []byte {
	text, err := json.Marshal(n)
	if err != nil {
		panic("train: a note that JSON cannot hold: " + err.Error()) // plain fields: cannot happen
	}
	return append([]byte{recordNote}, text...)
}

// divergence is the error that a note tells of.
func (n note) divergence() *DivergedError {
	d := &DivergedError{Agent: n.Agent, T: n.T, Event: n.Event, Loss: float64(n.Loss)}
	if n.Cause != "" {
		d.Cause = errors.New(n.Cause)
	}
	return d
}

func noteOf(d *DivergedError) note {
	n := note{Kind: noteDiverged, Agent: d.Agent, T: d.T, Event: d.Event, Loss: Num(d.Loss)}
	if d.Cause != nil {
		n.Cause = d.Cause.Error()
	}
	return n
}

// head is what a snapshot holds beside its vectors.
type head struct {
	Ledger  dist.Ledger      `json:"ledger"`
	Meter   meter            `json:"losses"`
	Grads   int              `json:"grads"`
	Decodes dist.DecodeStats `json:"decodes"`
	Scale   device.LossScale `json:"scale,omitzero"`
	Time    float64          `json:"time"`
}

// vectors lists those of a snapshot, in the order of a record.
func (sn *snapshot) vectors() []device.Vector {
	vs := append([]device.Vector{sn.x}, sn.aux...)
	if sn.buffers != nil {
		vs = append(vs, sn.buffers)
	}
	return vs
}

// record writes a snapshot.
func (sn *snapshot) record(dev device.Device) ([]byte, error) {
	text, err := json.Marshal(head{Ledger: sn.ledger, Meter: sn.meter, Grads: sn.grads, Decodes: sn.decodes,
		Scale: sn.scale, Time: sn.time})
	if err != nil {
		return nil, err
	}
	b := append(binary.LittleEndian.AppendUint32([]byte{recordSnapshot}, uint32(len(text))), text...)
	for _, v := range sn.vectors() {
		host := make([]float32, v.Len())
		dev.Read(host, v)
		for _, x := range host {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b, failureOf(dev)
}

// readRecord reads a snapshot into sn, or returns the note that the record is.
func readRecord(b []byte, dev device.Device, sn *snapshot) (*note, error) {
	switch {
	case len(b) > 0 && b[0] == recordNote && len(b) <= maxHead:
		n := &note{}
		if err := json.Unmarshal(b[1:], n); err != nil {
			return nil, fmt.Errorf("train: a report cannot be read: %w", err)
		}
		return n, nil
	case len(b) > 5 && b[0] == recordSnapshot:
		return nil, sn.read(b[1:], dev)
	}
	return nil, fmt.Errorf("train: a report of %d bytes is neither a note nor a snapshot", len(b))
}

// read fills a snapshot from its record.
func (sn *snapshot) read(b []byte, dev device.Device) error {
	size := binary.LittleEndian.Uint32(b)
	want := 0
	for _, v := range sn.vectors() {
		want += 4 * v.Len()
	}
	if size > maxHead || uint64(len(b)) != 4+uint64(size)+uint64(want) {
		return fmt.Errorf("train: a snapshot of %d bytes, of which %d are its head; expected %d of vectors", len(b),
			size, want)
	}
	var h head
	if err := json.Unmarshal(b[4:4+size], &h); err != nil {
		return fmt.Errorf("train: the head of a snapshot cannot be read: %w", err)
	}
	sn.ledger, sn.meter, sn.grads, sn.decodes, sn.scale, sn.time = h.Ledger, h.Meter, h.Grads, h.Decodes, h.Scale, h.Time
	b = b[4+size:]
	for _, v := range sn.vectors() {
		host := make([]float32, v.Len())
		for i := range host {
			host[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		b = b[4*len(host):]
		dev.Write(v, host)
	}
	return nil
}
