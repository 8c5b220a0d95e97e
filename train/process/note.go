package process

import (
	"encoding/json"
	"slices"

	"fspda/dist"
	"fspda/train/metric"
	"fspda/train/snapshot"
)

// A record is a report of one process to another: a note, the snapshot of an agent, the part of one,
// or a piece of its vectors. The first byte says which.
const (
	recordNote     = 'n' // JSON of a Note
	recordSnapshot = 's' // an encoded [snapshot.Snapshot]
	recordPart     = 'p' // an encoded part of one
	recordPiece    = 'v' // a piece of one of its vectors
)

// maxNote is the longest note that is accepted, in bytes.
const maxNote = 64 << 10

// Note tells other processes about an event in the run.
type Note struct {
	Kind   NoteKind   `json:"kind"`
	Agent  int        `json:"agent,omitempty"` // the agent that diverged
	T      int        `json:"t"`               // iteration
	Event  int        `json:"event,omitempty"` // the event in which the agent diverged, in virtual time
	Loss   metric.Num `json:"loss"`            // loss of the agent that diverged
	Cause  string     `json:"cause,omitempty"` // the failure that led to the divergence; empty if it is not known
	Status string     `json:"status,omitempty"`
	Stop   int64      `json:"stop,omitempty"` // number of the stop that the note is about
}

// NoteKind is the kind of event that a Note tells about.
type NoteKind string

const (
	NoteDiverged NoteKind = "diverged" // an agent has diverged
	NoteStopped  NoteKind = "stopped"  // the sending agent has stopped and sends no further reports
	NoteEnd      NoteKind = "end"      // the run has ended, with a status
	NoteStopping NoteKind = "stopping" // the sending agent is to stop, and waits at an iteration
	NoteHold     NoteKind = "hold"     // the coordinator is to stop, and waits for all to be told the same
	NoteStop     NoteKind = "stop"     // the iteration at which all stop; -1: each stops where it waits
)

// fromAgents reports whether other agents than the coordinator send such notes.
func (k NoteKind) fromAgents() bool {
	return slices.Contains([]NoteKind{NoteDiverged, NoteStopped, NoteStopping}, k)
}

// record encodes a note.
func (n Note) record() []byte {
	text, err := json.Marshal(n)
	if err != nil {
		panic("process: a note cannot be encoded: " + err.Error()) // plain fields: cannot happen
	}
	return append([]byte{recordNote}, text...)
}

// snapshotRecord encodes a snapshot.
func snapshotRecord(sn *snapshot.Snapshot) ([]byte, error) {
	b, err := sn.Encode()
	return append([]byte{recordSnapshot}, b...), err
}

// readNote decodes a record that must be a note.
func readNote(b []byte) (n Note, err error) {
	if len(b) == 0 || b[0] != recordNote || len(b) > maxNote {
		return n, dist.Invalidf("a report of %d bytes is not a note", len(b))
	}
	if err := json.Unmarshal(b[1:], &n); err != nil {
		return n, dist.Invalidf("a note cannot be read: %v", err)
	}
	return n, nil
}

// isNote reports whether a record is not for an evaluation; then it must be a note.
func isNote(b []byte) bool {
	return len(b) == 0 || !slices.Contains([]byte{recordSnapshot, recordPart, recordPiece}, b[0])
}

// readSnapshot decodes a record that is a snapshot into sn.
func readSnapshot(b []byte, sn *snapshot.Snapshot) error { return readAs(recordSnapshot, b, sn.Decode) }

// readPart decodes a record that is the part of a snapshot into sn.
func readPart(b []byte, sn *snapshot.Snapshot) error { return readAs(recordPart, b, sn.DecodePart) }

func readAs(kind byte, b []byte, decode func([]byte) error) error {
	if b[0] != kind {
		return dist.Invalidf("a report of kind %q, expected %q", b[0], kind)
	}
	if err := decode(b[1:]); err != nil {
		return dist.Invalidf("a report cannot be read: %v", err)
	}
	return nil
}
