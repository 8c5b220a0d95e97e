package bench

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"fspda/train"
)

// ReadOutcome reads a run folder: what a run that has ended came to, or how far one has come that
// has not.
func ReadOutcome(folder string) (*Outcome, error) {
	c, err := train.ReadConfig(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &train.FolderError{Path: folder, Got: "holds no run (no config.yaml)",
			Hint: "name the folder of a run, such as one that fspda train made"}
	}
	if err != nil {
		return nil, &train.FolderError{Path: folder, Got: "cannot be read", Err: err}
	}
	o := &Outcome{Job: Job{Name: name(folder), Title: name(folder), Config: c}, Folder: folder}
	if o.Rows, err = train.ReadMetrics(filepath.Join(folder, "metrics.jsonl"), math.MaxInt); err != nil {
		return nil, &train.FolderError{Path: folder, Got: "its metrics cannot be read", Err: err,
			Hint: "let the run evaluate once, or mend the file"}
	}
	text, err := os.ReadFile(filepath.Join(folder, "summary.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	var s train.Summary
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, &train.FolderError{Path: folder, Got: "summary.json cannot be read", Err: err}
	}
	o.Status, o.WallS = s.Status, s.WallS
	return o, nil
}

// name is the folder's own name.
func name(folder string) string {
	if abs, err := filepath.Abs(folder); err == nil {
		return filepath.Base(abs)
	}
	return filepath.Base(folder)
}
