package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"fspda/data"
	"fspda/train/tensorboard"
)

// Folder is the run folder: all that a run leaves behind.
//
//	config.yaml     resolved, replayable
//	metrics.jsonl   one Row a line; metrics.csv the same
//	links.yaml      a copy of the simulated network, where there is one
//	shards.json     classes per agent and the graph, for the report
//	summary.json    the Summary, at the end
//	checkpoints/    see checkpoint.go; in best/ the best mean model so far, see best.go
//	agents/         see home.go: of a run of many processes
//	tensorboard/    event files
//	plots/, report.html, report.md   made from the others by fspda/web
type Folder struct {
	Path string
	fs   disk
	lock *flock.Flock

	rows   []Row
	jsonl  *os.File
	csv    *os.File
	events *tensorboard.Writer
}

// FolderError reports an output folder that cannot be used.
type FolderError struct {
	Path, Got, Hint string
	Err             error
}

func (e *FolderError) Error() string { return explain("run folder "+e.Path+": "+e.Got, e.Err, e.Hint) }

// ExitCode returns 2, the exit status for bad input.
func (e *FolderError) ExitCode() int { return 2 }

func (e *FolderError) Unwrap() error { return e.Err }

// ReadConfig returns the configuration of an existing run folder, or an error that wraps
// os.ErrNotExist where there is none.
func ReadConfig(path string) (Config, error) {
	name := filepath.Join(path, "config.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		return Config{}, err
	}
	c := Default()
	return c, c.Parse(name, text)
}

// OpenFolder makes the run folder of a setup, or opens the one of a run to be resumed. It refuses a
// folder of another configuration, and one that already holds this run unless resume is set. A new
// folder appears only here, after the setup was found good.
func OpenFolder(path string, s *Setup, resume bool) (*Folder, error) {
	f := &Folder{Path: path, fs: osDisk{}}
	old, err := ReadConfig(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if entries, err := os.ReadDir(path); err == nil && slices.ContainsFunc(entries, foreign) {
			return nil, &FolderError{Path: path, Got: "is not empty and holds no run (no config.yaml)",
				Hint: "choose another folder with --out"}
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, &FolderError{Path: path, Got: "cannot be opened", Err: err}
		}
		if resume {
			return nil, &FolderError{Path: path, Got: "holds no run to resume", Hint: "leave --resume out to start one"}
		}
		return f, f.create(s)
	case err != nil:
		return nil, &FolderError{Path: path, Got: "cannot be read", Err: err}
	}
	if diff := s.Config.Differences(old); len(diff) > 0 {
		return nil, &FolderError{Path: path, Got: "holds a run of another configuration: " + strings.Join(diff, ", "),
			Hint: "choose another folder with --out, or give the same configuration"}
	}
	if !resume {
		hint := "add --resume to go on with it, or choose another folder with --out"
		if _, err := os.Stat(filepath.Join(path, "summary.json")); err == nil {
			hint = "it is finished; choose another folder with --out"
		}
		return nil, &FolderError{Path: path, Got: "already holds this run", Hint: hint}
	}
	return f, f.claim()
}

// claim keeps other processes out of the folder until close. The system lets go of the claim of a
// process that dies.
func (f *Folder) claim() error {
	f.lock = flock.New(filepath.Join(f.Path, ".lock"))
	switch ok, err := f.lock.TryLock(); {
	case err != nil:
		return &FolderError{Path: f.Path, Got: "cannot be locked", Err: err}
	case !ok:
		return &FolderError{Path: f.Path, Got: "is in use by another process",
			Hint: "wait for it, or choose another folder with --out"}
	}
	return nil
}

func (f *Folder) create(s *Setup) error {
	if err := f.fs.MkdirAll(f.Path); err != nil {
		return &FolderError{Path: f.Path, Got: "cannot be made", Err: err}
	}
	if err := f.claim(); err != nil {
		return err
	}
	shards, err := json.Marshal(map[string]any{
		"classes": s.Set.Classes, "agents": data.Histogram(s.Set.Train.Labels, s.Set.Classes,
			s.Shards), "edges": edgePairs(s)})
	if err != nil {
		return err
	}
	type file struct {
		name string
		text []byte
	}
	files := []file{{"shards.json", shards}}
	if s.Links != nil {
		files = append(files, file{"links.yaml", s.Links.Source()})
	}
	// the configuration last: with it the folder holds a run
	for _, file := range append(files, file{"config.yaml", s.Config.YAML()}) {
		if err := replace(f.fs, filepath.Join(f.Path, file.name), file.text); err != nil {
			return errors.Join(&FolderError{Path: f.Path, Got: "cannot be written", Err: err}, f.close())
		}
	}
	return nil
}

// foreign tells whether an entry of a folder without config.yaml is somebody else's, and not what
// create leaves when it is killed.
func foreign(e os.DirEntry) bool {
	return !slices.Contains([]string{".lock", agentsFolder, "shards.json", writing("shards.json"), "links.yaml",
		writing("links.yaml"), writing("config.yaml")}, e.Name())
}

func edgePairs(s *Setup) [][2]int {
	pairs := [][2]int{}
	for _, e := range s.Graph.Edges {
		pairs = append(pairs, [2]int{e.I, e.J})
	}
	return pairs
}

// openMetrics opens the metric files for appending and drops the rows from iteration first on,
// which are about to be made again.
func (f *Folder) openMetrics(s *Setup, first int) error {
	jsonl, csv := filepath.Join(f.Path, "metrics.jsonl"), filepath.Join(f.Path, "metrics.csv")
	rows, err := ReadMetrics(jsonl, first)
	fresh := errors.Is(err, os.ErrNotExist)
	if err != nil && !fresh {
		return &FolderError{Path: f.Path, Got: "its metrics cannot be read", Err: err,
			Hint: "mend the file, or start over in another folder with --out"}
	}
	if err := f.whole(s, rows, first); err != nil {
		return err
	}
	f.rows = rows
	var j, c bytes.Buffer
	c.WriteString(strings.Join(Columns(), ",") + "\n")
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		j.Write(append(line, '\n'))
		c.WriteString(r.CSV() + "\n")
	}
	if err := errors.Join(replace(f.fs, jsonl, j.Bytes()), replace(f.fs, csv, c.Bytes())); err != nil {
		return &FolderError{Path: f.Path, Got: "cannot be written", Err: err}
	}
	if f.jsonl, err = os.OpenFile(jsonl, os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return f.full(err)
	}
	if f.csv, err = os.OpenFile(csv, os.O_WRONLY|os.O_APPEND, 0o644); err != nil {
		return f.full(err)
	}
	if f.events, err = tensorboard.Create(filepath.Join(f.Path, "tensorboard")); err != nil {
		return f.full(err)
	}
	if fresh {
		return nil
	}
	if err := f.events.Restart(int64(first), float64(time.Now().UnixMicro())/1e6); err != nil {
		return f.full(err)
	}
	return nil
}

// whole refuses rows that are not those of all evaluations before iteration first: the run would go
// on without its past.
func (f *Folder) whole(s *Setup, rows []Row, first int) error {
	n := s.EvalsBefore(first)
	for k, r := range rows[:min(n, len(rows))] {
		if r.Iteration != s.EvalPoint(k) {
			n = k
			break
		}
	}
	if n == len(rows) {
		return nil
	}
	return &FolderError{Path: f.Path,
		Got:  fmt.Sprintf("metrics.jsonl does not hold the %d rows before iteration %d of its checkpoint, in order (%d are right, of %d)", s.EvalsBefore(first), first, min(n, len(rows)), len(rows)),
		Hint: "put the file back as it was, or start over in another folder with --out"}
}

// ReadMetrics reads the rows of a metrics.jsonl up to, not including, iteration before. A last line
// that was cut off, as a kill leaves it, is passed over; any other damage is an error.
func ReadMetrics(path string, before int) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows []Row
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	var broken error
	for n := 1; sc.Scan(); n++ {
		if broken != nil {
			return nil, broken
		}
		var r Row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			broken = fmt.Errorf("train: %s, line %d is not a row of metrics: %w", path, n, err)
			continue
		}
		if r.Iteration < before {
			rows = append(rows, r)
		}
	}
	return rows, sc.Err()
}

// append adds a row to all metric files.
func (f *Folder) append(r Row) error {
	f.rows = append(f.rows, r)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := f.jsonl.Write(append(line, '\n')); err != nil {
		return f.full(err)
	}
	if _, err := f.csv.WriteString(r.CSV() + "\n"); err != nil {
		return f.full(err)
	}
	now := float64(time.Now().UnixMicro()) / 1e6
	for i, v := range r.Values() {
		if name := Columns()[i]; name != "iteration" && v == v {
			if err := f.events.Scalar(name, int64(r.Iteration), now, v); err != nil {
				return f.full(err)
			}
		}
	}
	if err := f.events.Flush(); err != nil {
		return f.full(err)
	}
	return nil
}

func (f *Folder) full(err error) error {
	return &FolderError{Path: f.Path, Got: "metrics cannot be written", Err: err,
		Hint: "make room, then go on with --resume"}
}

// sync flushes the metric files, so that a checkpoint never knows of rows that the disk does not.
func (f *Folder) sync() error {
	if err := errors.Join(f.jsonl.Sync(), f.csv.Sync()); err != nil {
		return f.full(err)
	}
	return nil
}

// Close lets go of a folder that was opened for a run which does not come.
func (f *Folder) Close() error { return f.close() }

// close ends the writing of metrics and lets go of the folder.
func (f *Folder) close() error {
	errs := []error{f.lock.Unlock()}
	if f.jsonl != nil {
		errs = append(errs, f.jsonl.Close())
	}
	if f.csv != nil {
		errs = append(errs, f.csv.Close())
	}
	if f.events != nil {
		errs = append(errs, f.events.Close())
	}
	return errors.Join(errs...)
}

// WriteSummary writes summary.json.
func (f *Folder) WriteSummary(s Summary) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := replace(f.fs, filepath.Join(f.Path, "summary.json"), append(text, '\n')); err != nil {
		return &FolderError{Path: f.Path, Got: "summary.json cannot be written", Err: err}
	}
	return nil
}
