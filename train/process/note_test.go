package process

import (
	"encoding/json"
	"math"
	"testing"

	"fspda/cpu"
	"fspda/train/metric"
	"fspda/train/snapshot"
)

// The bytes of notes are fixed: processes of different versions exchange them.
func TestNoteBytes(t *testing.T) {
	for want, n := range map[string]Note{
		`n{"kind":"stopped","t":0,"loss":0}`:                 {Kind: NoteStopped},
		`n{"kind":"end","t":7,"loss":0,"status":"finished"}`: {Kind: NoteEnd, T: 7, Status: "finished"},
		`n{"kind":"diverged","agent":2,"t":3,"event":9,"loss":null,"cause":"c"}`: {
			Kind: NoteDiverged, Agent: 2, T: 3, Event: 9, Loss: metric.Num(math.NaN()), Cause: "c"},
	} {
		if got := string(n.record()); got != want {
			t.Errorf("%+v is %s, want %s", n, got, want)
		}
	}
}

// Records are read without a panic, and what is read as a note can be written again.
func FuzzRecord(f *testing.F) {
	dev := cpu.New()
	sn := &snapshot.Snapshot{Device: dev, X: dev.NewVector(3)}
	record, err := snapshotRecord(sn)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	part, err := sn.EncodePart()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte{recordPart}, part...))
	f.Add(Note{Kind: NoteEnd, T: 7, Status: "finished"}.record())
	f.Fuzz(func(t *testing.T, b []byte) {
		if !isNote(b) { // an error is as good: it must not panic
			_ = readSnapshot(b, sn)
			_ = readPart(b, sn)
			return
		}
		n, err := readNote(b)
		if err != nil {
			return
		}
		if text, err := json.Marshal(n); err != nil || len(text) == 0 {
			t.Errorf("%+v cannot be written: %v", n, err)
		}
	})
}
