package train

import (
	"encoding/json"
	"errors"
	"fmt"

	"fspda/train/snapshot"
)

// A record is what one process of a run reports to another: a note, or the snapshot of an agent.
// The first byte says which.
const (
	recordNote     = 'n' // JSON of a note
	recordSnapshot = 's' // an encoded [snapshot.Snapshot]
)

// maxNote is the longest note that is accepted, in bytes.
const maxNote = 64 << 10

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

// snapshotRecord is the record of a snapshot.
func snapshotRecord(sn *snapshot.Snapshot) ([]byte, error) {
	b, err := sn.Encode()
	return append([]byte{recordSnapshot}, b...), err
}

// readRecord reads a snapshot into sn, or returns the note that the record is.
func readRecord(b []byte, sn *snapshot.Snapshot) (*note, error) {
	switch {
	case len(b) > 0 && b[0] == recordNote && len(b) <= maxNote:
		n := &note{}
		if err := json.Unmarshal(b[1:], n); err != nil {
			return nil, fmt.Errorf("train: a report cannot be read: %w", err)
		}
		return n, nil
	case len(b) > 5 && b[0] == recordSnapshot:
		return nil, sn.Decode(b[1:])
	}
	return nil, fmt.Errorf("train: a report of %d bytes is neither a note nor a snapshot", len(b))
}
