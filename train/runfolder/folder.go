package runfolder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"fspda/data/text"
	"fspda/internal/bounded"
	"fspda/internal/lockfile"
	"fspda/internal/wholefile"
	"fspda/train/config"
	"fspda/train/metric"
	"fspda/train/tensorboard"
)

// TokenizerFile is the file of a run folder that describes the tokens of a text.
const TokenizerFile = "tokenizer.json"

// Folder is the folder of a run, in which it leaves everything.
//
//	config.yaml     resolved, replayable
//	metrics.jsonl   one Row a line, with a checksum; metrics.csv the same
//	links.yaml      a copy of the simulated network, where there is one
//	samples.jsonl   of a language model: text that it wrote at each row
//	shards.json     classes per agent and the graph, for the report
//	tokenizer.json  of a text: the tokenizer that made its tokens
//	summary.json    the Summary, at the end
//	checkpoints/    see checkpoint.go; in best/ the best mean model so far, see best.go
//	agents/         see agentstore.go: of a run of many processes
//	tensorboard/    event files
//	plots/, report.html, report.md   made from the others by fspda/web
type Folder struct {
	Path string
	Disk Disk
	lock *flock.Flock

	found  *Checkpoint // The checkpoint that ResumesAt opened; nil: none, or OpenCheckpoint returned it.
	passed []error     // The reasons for which it passed newer ones over.

	// Damage says that OpenMetrics lost samples of a run that is resumed. Nothing depends on them.
	Damage error

	former int    // The length of the run before it was lengthened; 0: it was not.
	double string // The file with a copy of the rows, which cannot be repeated; empty: there is none.
	rows   []metric.Row
	copied *os.File
	jsonl  *os.File
	csv    *os.File
	events *tensorboard.Writer
}

// FolderError reports a run folder that cannot be used.
type FolderError struct {
	Path, Got, Hint string
	Err             error
}

func (e *FolderError) Error() string { return explain("run folder "+e.Path+": "+e.Got, e.Err, e.Hint) }

// ExitCode returns 2, the exit status for bad input.
func (e *FolderError) ExitCode() int { return 2 }

func (e *FolderError) Unwrap() error { return e.Err }

// unusable reports a folder that the file system does not let a run use because of err.
func unusable(path, got string, err error) error {
	hint := ""
	switch {
	case wholefile.DiskFull(err):
		hint = "make room, or choose another folder with --out"
	case errors.As(err, new(*fs.PathError)):
		hint = "choose a folder with --out that can be made, read and written to"
	}
	return &FolderError{Path: path, Got: got, Err: err, Hint: hint}
}

// ReadConfig returns the configuration of an existing run folder. The error wraps os.ErrNotExist if
// there is none.
func ReadConfig(path string) (config.Config, error) {
	name := filepath.Join(path, "config.yaml")
	text, err := bounded.YAMLFile(name)
	if err != nil {
		return config.Config{}, err
	}
	c := config.Default()
	return c, c.Parse(name, text)
}

// OpenFolder creates the run folder of a setup, or opens the folder of a run to be resumed. It
// refuses the folder of another configuration, and one that holds this run unless resume is set.
func OpenFolder(path string, s *config.Setup, resume bool) (*Folder, error) {
	f := &Folder{Path: path, Disk: OSDisk{}}
	old, err := ReadConfig(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if entries, err := os.ReadDir(path); err == nil && slices.ContainsFunc(entries, foreign) {
			return nil, &FolderError{Path: path, Got: "is not empty and holds no run (no config.yaml)",
				Hint: "choose another folder with --out"}
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, unusable(path, "cannot be opened", err)
		}
		if resume {
			return nil, &FolderError{Path: path, Got: "holds no run to resume", Hint: "leave --resume out to start one"}
		}
		return f, f.create(s)
	case err != nil:
		return nil, unusable(path, "cannot be read", err)
	}
	if err := f.check(s, old, resume); err != nil {
		return nil, err
	}
	open := f.lockFolder
	if len(s.Config.Stored().Differences(old)) > 0 {
		f.former, open = old.Iterations, func() error { return f.lengthen(s) }
	}
	if err := open(); err != nil {
		return f, err
	}
	if err := f.mendShards(s); err != nil {
		return nil, errors.Join(unusable(path, "cannot be written", err), f.Close())
	}
	return f, nil
}

// CheckResume returns the error with which OpenFolder would refuse to resume the run in a folder
// with a setup. It writes nothing.
func CheckResume(path string, s *config.Setup) error {
	old, err := ReadConfig(path)
	if err != nil {
		return unusable(path, "cannot be read", err)
	}
	return (&Folder{Path: path}).check(s, old, true)
}

// check returns the reason why the folder of a run of configuration old cannot be opened for s.
func (f *Folder) check(s *config.Setup, old config.Config, resume bool) error {
	diff := s.Config.Stored().Differences(old)
	switch {
	case len(diff) > 0 && resume && s.Lengthened(old):
		return f.checkLength(s, old)
	case len(diff) > 0:
		return &FolderError{Path: f.Path, Got: "holds a run of another configuration: " + strings.Join(diff, ", "),
			Hint: "choose another folder with --out, or give the same configuration"}
	case resume:
		return nil
	}
	hint := "add --resume to go on with it, or choose another folder with --out"
	if _, err := os.Stat(filepath.Join(f.Path, summaryFile)); err == nil {
		hint = "it is finished; choose another folder with --out, or lengthen it with --resume --iterations MORE"
	}
	return &FolderError{Path: f.Path, Got: "already holds this run", Hint: hint}
}

// checkLength returns the reason why s cannot continue the run of configuration old beyond its end.
func (f *Folder) checkLength(s *config.Setup, old config.Config) error {
	if err := s.Continues(old); err != nil {
		return &FolderError{Path: f.Path, Got: "holds a run that cannot be lengthened", Err: err}
	}
	done, err := f.Summary()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &FolderError{Path: f.Path, Got: fmt.Sprintf("holds a run of %d iterations that has not reached its end",
			old.Iterations), Hint: "resume it to its end first, without another length"}
	case err != nil:
		return &FolderError{Path: f.Path, Got: "summary.json cannot be read", Err: err}
	case done.Status != Finished:
		return &FolderError{Path: f.Path, Got: "holds a run that " + string(done.Status),
			Hint: "only a finished run can be lengthened"}
	}
	last, _, err := f.OpenCheckpoint(s) // opened before anything is written
	if err != nil {
		return err
	}
	if last == nil {
		return &FolderError{Path: f.Path, Got: "holds a finished run without a checkpoint, which cannot be lengthened",
			Hint: "put its folder checkpoints back, or train anew in another folder"}
	}
	return last.Close()
}

// lengthen opens the folder of a finished run that s continues beyond its end.
func (f *Folder) lengthen(s *config.Setup) error {
	if err := f.lockFolder(); err != nil {
		return err
	}
	// the checkpoint fits both lengths, so that the run can be resumed whatever is written before a
	// crash
	err := replaceText(f.Disk, filepath.Join(f.Path, "config.yaml"), s.Config.Stored().YAML())
	if err == nil {
		err = os.Remove(filepath.Join(f.Path, summaryFile))
	}
	if err != nil {
		return errors.Join(unusable(f.Path, "cannot be written", err), f.Close())
	}
	return nil
}

// lockFolder makes sure that no other process uses the folder.
func (f *Folder) lockFolder() (err error) {
	f.lock, err = lock(f.Path, "wait for it, or choose another folder with --out")
	return err
}

// ErrInUse is the cause of an error about a folder whose lock another process holds.
var ErrInUse = errors.New("it is in use by another process")

// lock locks a folder. If another process holds the lock, the error gives the hint.
func lock(path, hint string) (*flock.Flock, error) {
	switch l, ok, err := lockfile.TryLock(path); {
	case err != nil:
		return nil, unusable(path, "cannot be locked", err)
	case !ok:
		return nil, &FolderError{Path: path, Got: "cannot be locked", Err: ErrInUse, Hint: hint}
	default:
		return l, nil
	}
}

func (f *Folder) create(s *config.Setup) error {
	if err := f.Disk.MkdirAll(f.Path); err != nil {
		return unusable(f.Path, "cannot be made", err)
	}
	if err := f.lockFolder(); err != nil {
		return err
	}
	for _, file := range startFiles {
		if err := f.writeStart(file, s); err != nil {
			return errors.Join(unusable(f.Path, "cannot be written", err), f.Close())
		}
	}
	return nil
}

// startFile is a file that create writes.
type startFile struct {
	name string
	text func(s *config.Setup) ([]byte, error) // returns nil if a run has no such file
}

// startFiles lists the files that create writes, in this order. config.yaml is the last: with it
// the folder is a run folder.
var startFiles = []startFile{
	{"shards.json", shardsText},
	{TokenizerFile, func(s *config.Setup) ([]byte, error) {
		if s.Set.Text == nil || s.Set.Text.Tokenizer == nil {
			return nil, nil
		}
		return text.Describe(s.Set.Text.Tokenizer)
	}},
	{"links.yaml", func(s *config.Setup) ([]byte, error) {
		if s.Links == nil {
			return nil, nil
		}
		return s.Links.Source(), nil
	}},
	{"config.yaml", func(s *config.Setup) ([]byte, error) { return s.Config.Stored().YAML(), nil }},
}

// mendShards writes shards.json again if it is damaged or lost: the report at the end needs it.
func (f *Folder) mendShards(s *config.Setup) error {
	want, err := shardsText(s)
	if err != nil {
		return err
	}
	path := filepath.Join(f.Path, "shards.json")
	if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, want) {
		return nil
	}
	return replaceText(f.Disk, path, want)
}

// writeStart writes a file of a new folder. It removes one that the run does not have, which a
// start of another run may have left.
func (f *Folder) writeStart(file startFile, s *config.Setup) error {
	path := filepath.Join(f.Path, file.name)
	content, err := file.text(s)
	switch {
	case err != nil:
		return err
	case content == nil:
		return os.RemoveAll(path)
	}
	return replaceText(f.Disk, path, content)
}

// foreign reports whether an entry of a folder without config.yaml is none that create leaves when
// it is killed.
func foreign(e os.DirEntry) bool {
	return e.Name() != ".lock" && e.Name() != agentsFolder && !slices.ContainsFunc(startFiles, func(f startFile) bool {
		return e.Name() == f.name || e.Name() == writing(f.name)
	})
}

// shardsText returns the classes of each agent's examples, and the graph.
func shardsText(s *config.Setup) ([]byte, error) {
	counts := s.Counts()
	return json.Marshal(map[string]any{"classes": len(counts[0]), "agents": counts, "edges": edgePairs(s)})
}

func edgePairs(s *config.Setup) [][2]int {
	pairs := [][2]int{}
	for _, e := range s.Graph.Edges {
		pairs = append(pairs, [2]int{e.I, e.J})
	}
	return pairs
}

// OpenMetrics opens the metric files for appending. It drops the rows from iteration first on, which
// the run will repeat, unless they are written twice.
func (f *Folder) OpenMetrics(s *config.Setup, first int) error {
	if n := f.CountRows(s); n > s.EvalsBefore(first) {
		first = s.EvalPoint(n)
	}
	jsonl, csv := filepath.Join(f.Path, "metrics.jsonl"), filepath.Join(f.Path, "metrics.csv")
	rows, err := f.readRows(first)
	fresh := errors.Is(err, os.ErrNotExist)
	if err != nil && !fresh && (first == 0 || f.checkRows(s, rows, first) != nil) {
		return &FolderError{Path: f.Path, Got: "its metrics cannot be read", Err: err,
			Hint: "mend the file, or start over in another folder with --out"}
	}
	if err := f.checkRows(s, rows, first); err != nil {
		return err
	}
	f.rows = rows
	if err := f.trimSamples(first); err != nil {
		return f.metricsError(err)
	}
	var j, c bytes.Buffer
	c.WriteString(strings.Join(metric.Columns(), ",") + "\n")
	for _, r := range rows {
		line, err := rowLine(r)
		if err != nil {
			return err
		}
		j.Write(line)
		c.WriteString(r.CSV() + "\n")
	}
	if err := errors.Join(replaceText(f.Disk, jsonl, j.Bytes()), replaceText(f.Disk, csv, c.Bytes())); err != nil {
		return unusable(f.Path, "cannot be written", err)
	}
	if f.double != "" {
		err := replaceText(f.Disk, f.double, j.Bytes())
		if err == nil {
			f.copied, err = os.OpenFile(f.double, os.O_WRONLY|os.O_APPEND, 0o644)
		}
		if err != nil {
			return f.metricsError(err)
		}
	}
	var errs [3]error
	f.jsonl, errs[0] = os.OpenFile(jsonl, os.O_WRONLY|os.O_APPEND, 0o644)
	f.csv, errs[1] = os.OpenFile(csv, os.O_WRONLY|os.O_APPEND, 0o644)
	f.events, errs[2] = tensorboard.Create(filepath.Join(f.Path, "tensorboard"))
	err = errors.Join(errs[:]...)
	now := float64(time.Now().UnixMicro()) / 1e6
	if err == nil && !fresh {
		err = f.events.Restart(int64(first), now)
	}
	if err == nil {
		err = f.events.Hyperparameters(hyperparameters(s.Config.Stored()), now)
	}
	return f.metricsError(err)
}

// hasRows refuses a checkpoint before which metrics.jsonl does not hold its rows, and closes it.
// Damage behind these rows does not matter: the run repeats what follows.
func (f *Folder) hasRows(s *config.Setup, c *Checkpoint) *CheckpointError {
	rows, err := f.readRows(c.Iteration)
	bad, ok := errors.AsType[*FolderError](f.checkRows(s, rows, c.Iteration))
	if !ok {
		return nil
	}
	_ = c.Close()
	bad.Err = err
	return &CheckpointError{Got: lacksRows, Err: bad}
}

// evaluations reports whether rows are of evaluations before iteration first, in order.
func evaluations(s *config.Setup, rows []metric.Row, first int) bool {
	latest := -1
	for _, r := range rows {
		if r.Iteration <= latest || r.Iteration >= first || s.EvalPoint(s.EvalsBefore(r.Iteration)) != r.Iteration {
			return false
		}
		latest = r.Iteration
	}
	return true
}

// checkRows refuses rows that are not exactly the rows of all evaluations before iteration first.
func (f *Folder) checkRows(s *config.Setup, rows []metric.Row, first int) error {
	n := s.EvalsBefore(first)
	if s.DropsSilent() && evaluations(s, rows, first) { // One may be missing whose process has left.
		return nil
	}
	for k, r := range rows[:min(n, len(rows))] {
		if r.Iteration != s.EvalPoint(k) {
			n = k
			break
		}
	}
	if n == len(rows) {
		return nil
	}
	return &FolderError{Path: f.Path, Got: fmt.Sprintf("metrics.jsonl does not hold the %d rows before iteration %d "+
		"of its checkpoint, in order (%d are right, of %d)", s.EvalsBefore(first), first, min(n, len(rows)), len(rows)),
		Hint: "put the file back as it was, or start over in another folder with --out"}
}

// CountRows returns the number of evaluations of a run, from its start, whose rows are there and are
// not repeated: without the last evaluation, and without the end of a run that is being lengthened.
func (f *Folder) CountRows(s *config.Setup) (n int) {
	if f.double == "" {
		return 0
	}
	rows, _ := f.readRows(s.Config.Iterations) // OpenMetrics reports an error
	for n < len(rows) && rows[n].Iteration == s.EvalPoint(n) && (f.former == 0 || rows[n].Iteration < f.former) {
		n++
	}
	return n
}

// RowsWithoutCheckpoint returns how many rows a run has that begins at iteration 0 for lack of a
// checkpoint, and drops them. It refuses a run with rows to its end, which had a checkpoint there.
func (f *Folder) RowsWithoutCheckpoint(s *config.Setup) (int, error) {
	rows, err := ReadMetrics(filepath.Join(f.Path, "metrics.jsonl"), math.MaxInt)
	if err != nil || len(rows) == 0 { // OpenMetrics reports an error
		return 0, nil
	}
	if last := rows[len(rows)-1].Iteration; last >= s.Config.Iterations {
		return 0, &FolderError{Path: f.Path, Got: fmt.Sprintf("holds a run that has reached iteration %d, without a "+
			"checkpoint: resuming would drop its rows and train again", last),
			Hint: "put its folder checkpoints back, or remove metrics.jsonl to train again from iteration 0"}
	}
	return len(rows), nil
}

// ReadMetrics reads the rows of a metrics.jsonl before the given iteration. It ignores a truncated
// last line, as a killed process leaves it; any other damage is an error.
func ReadMetrics(path string, before int) ([]metric.Row, error) {
	rows, err := readRows(path, before)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// readRows is ReadMetrics, and also returns the rows before the damage.
func readRows(path string, before int) (rows []metric.Row, err error) {
	f, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	var broken error
	for n := 1; sc.Scan(); n++ {
		if broken != nil {
			return rows, broken
		}
		r, err := readRow(sc.Bytes())
		if err != nil {
			broken = fmt.Errorf("runfolder: %s, line %d is not a row of metrics: %w", path, n, err)
			continue
		}
		if r.Iteration < before {
			rows = append(rows, r)
		}
	}
	return rows, sc.Err()
}

// WriteTwice makes a copy of the rows in another folder, from which those are read that metrics.jsonl
// has lost. It is for runs that do not repeat them.
func (f *Folder) WriteTwice(dir string) { f.double = filepath.Join(dir, "rows.jsonl") }

// readRows reads the rows of metrics.jsonl before an iteration, or of their copy if it has more.
func (f *Folder) readRows(before int) ([]metric.Row, error) {
	rows, err := readRows(filepath.Join(f.Path, "metrics.jsonl"), before)
	if f.double != "" {
		if more, _ := readRows(f.double, before); len(more) > len(rows) {
			return more, nil
		}
	}
	return rows, err
}

// Append adds a row to all metric files.
func (f *Folder) Append(r metric.Row) error {
	f.rows = append(f.rows, r)
	line, err := rowLine(r)
	if err != nil {
		return err
	}
	if f.copied != nil {
		if _, err := f.copied.Write(line); err != nil {
			return f.metricsError(err)
		}
	}
	if _, err := f.jsonl.Write(line); err != nil {
		return f.metricsError(err)
	}
	if _, err := f.csv.WriteString(r.CSV() + "\n"); err != nil {
		return f.metricsError(err)
	}
	now := float64(time.Now().UnixMicro()) / 1e6
	err = scalars(r, func(tag string, v float64) error { return f.events.Scalar(tag, int64(r.Iteration), now, v) })
	if err == nil {
		err = f.events.Flush()
	}
	return f.metricsError(err)
}

// metricsError returns the error of metrics that cannot be written because of err; nil: none.
func (f *Folder) metricsError(err error) error {
	if err == nil {
		return nil
	}
	return &FolderError{Path: f.Path, Got: "metrics cannot be written", Err: err,
		Hint: writeHint(err, "go on with --resume")}
}

// Sync flushes the metric files. Call it before a checkpoint, which must not be newer than the rows
// on the disk.
func (f *Folder) Sync() error {
	errs := []error{f.jsonl.Sync(), f.csv.Sync()}
	if f.copied != nil {
		errs = append(errs, f.copied.Sync())
	}
	return f.metricsError(errors.Join(errs...))
}

// Close closes the metric files and unlocks the folder.
func (f *Folder) Close() error {
	errs := []error{f.lock.Unlock()}
	if f.found != nil {
		errs = append(errs, f.found.Close())
	}
	if f.copied != nil {
		errs = append(errs, f.copied.Close())
	}
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

// Rows returns the rows of the run so far.
func (f *Folder) Rows() []metric.Row { return f.rows }
