package bench

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"fspda/train"
)

// HoldsNoRun reports whether something exists at path and is not the folder of a run.
func HoldsNoRun(path string) bool {
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(path, "config.yaml"))
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// ReadOutcome reads the outcome of a run from its folder. Of an unfinished run it returns the rows
// so far.
func ReadOutcome(folder string) (*Outcome, error) {
	c, err := train.ReadConfig(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &train.FolderError{Path: folder, Got: "holds no run (no config.yaml)",
			Hint: "name the folder of a run, such as one that fspda train made"}
	}
	if err != nil {
		return nil, &train.FolderError{Path: folder, Got: "cannot be read", Err: err,
			Hint: "name the folder of a run, or repair the file"}
	}
	o := &Outcome{Job: Job{Name: name(folder), Title: name(folder), Config: c}, Folder: folder}
	if o.Rows, err = train.ReadMetrics(filepath.Join(folder, "metrics.jsonl"), math.MaxInt); err != nil {
		return nil, &train.FolderError{Path: folder, Got: "its metrics cannot be read", Err: err,
			Hint: "wait for the first evaluation of the run, or repair the file"}
	}
	text, err := os.ReadFile(filepath.Join(folder, "summary.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if n := len(o.Rows); n > 0 { // a run without a summary has the time of its last row
			o.WallS = float64(o.Rows[n-1].WallS)
		}
		return o, nil
	}
	var s train.Summary
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, &train.FolderError{Path: folder, Got: "summary.json cannot be read", Err: err}
	}
	o.Status, o.WallS, o.Failure = s.Status, s.WallS, s.Failure
	return o, nil
}

func name(folder string) string {
	if abs, err := filepath.Abs(folder); err == nil {
		return filepath.Base(abs)
	}
	return filepath.Base(folder)
}
