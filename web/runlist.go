package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the search for runs.
const (
	searchInterval = 2 * time.Second
	// times as long as a search took, at least, until the next: many runs are looked for less often
	searchPauseFactor = 100
	maxSearchDepth    = 4       // folders below that of the server
	maxRuns           = 1000    // found
	maxEntries        = 50_000  // looked at
	maxFileSize       = 8 << 20 // bytes of config.yaml, summary.json and shards.json
)

// RunInfo is a line of the list of runs.
type RunInfo struct {
	Run        string   `json:"run"`    // its folder, within that of the server; "." is the latter itself
	Name       string   `json:"name"`   // for people
	Status     string   `json:"status"` // finished, stopped, diverged, running or unfinished
	Live       bool     `json:"live"`   // it is in the process that serves the page
	Algo       string   `json:"algo"`
	Data       string   `json:"data"`
	Agents     string   `json:"agents"`
	Graph      string   `json:"graph"`
	Iterations float64  `json:"iterations"` // of the whole run; 0 where unknown
	Accuracy   *float64 `json:"accuracy"`   // on the test set, of the mean model, at the end; null where unknown
	Bits       *float64 `json:"bits"`       // sent, at the end; null where unknown
	Changed    int64    `json:"changed"`    // when its metrics last grew, in seconds since 1970
}

// runList finds the runs below a folder, by config.yaml or metrics.jsonl, and remembers what it
// read.
type runList struct {
	root *os.Root
	only string // the one run to be seen; empty for all
	live *LiveRun

	mu    sync.Mutex
	next  time.Time // search
	infos []RunInfo
	read  map[string]cachedInfo
}

// cachedInfo is what was read of a run, and of which files.
type cachedInfo struct {
	config, summary time.Time
	info            RunInfo
}

// list returns the runs, the youngest first.
func (l *runList) list(now time.Time) []RunInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.next) {
		return l.infos
	}
	begin := time.Now()
	defer func() { l.next = now.Add(max(searchInterval, searchPauseFactor*time.Since(begin))) }()
	read := map[string]cachedInfo{}
	l.infos = nil
	for _, run := range l.search() {
		r := l.info(run, now)
		read[run] = r
		l.infos = append(l.infos, r.info)
	}
	l.read = read
	slices.SortStableFunc(l.infos, func(a, b RunInfo) int {
		if a.Live != b.Live {
			if a.Live {
				return -1
			}
			return 1
		}
		return int(b.Changed - a.Changed)
	})
	return l.infos
}

// has tells whether there is a run of that name.
func (l *runList) has(run string, now time.Time) bool {
	return slices.ContainsFunc(l.list(now), func(i RunInfo) bool { return i.Run == run })
}

// search returns the folders of runs.
func (l *runList) search() []string {
	if l.only != "" {
		return []string{l.only}
	}
	var found []string
	looked := 0
	// a folder that cannot be read holds no runs
	_ = fs.WalkDir(l.root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if looked++; looked > maxEntries || len(found) >= maxRuns {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return fs.SkipDir
		case !e.IsDir():
			return nil
		case p != "." && (strings.HasPrefix(e.Name(), ".") || strings.Count(p, "/") >= maxSearchDepth):
			return fs.SkipDir
		case l.regular(runFile(p, "config.yaml")) || l.regular(runFile(p, "metrics.jsonl")):
			found = append(found, p)
			return fs.SkipDir
		}
		return nil
	})
	return found
}

func (l *runList) regular(name string) bool {
	info, err := l.root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// info reads a run's line, from memory if its files are as they were.
func (l *runList) info(run string, now time.Time) cachedInfo {
	r := cachedInfo{config: l.modified(runFile(run, "config.yaml")), summary: l.modified(runFile(run, "summary.json"))}
	if old, ok := l.read[run]; ok && old.config.Equal(r.config) && old.summary.Equal(r.summary) {
		r.info = old.info
	} else {
		r.info = l.load(run)
	}
	changed := l.modified(runFile(run, "metrics.jsonl"))
	if changed.IsZero() {
		changed = r.config
	}
	r.info.Changed = changed.Unix()
	r.info.Live = l.live != nil && l.live.Run == run
	if r.info.Live {
		r.info.Status = "running"
	} else if r.summary.IsZero() {
		r.info.Status = "unfinished"
		if now.Sub(changed) < l.staleAfter(run) {
			r.info.Status = "running"
		}
	}
	return r
}

func (l *runList) modified(name string) time.Time {
	info, err := l.root.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}
	}
	return info.ModTime()
}

// load reads configuration and summary. What is damaged is left out here, and told of where the run
// is shown.
func (l *runList) load(run string) RunInfo {
	info := RunInfo{Run: run, Name: run}
	if run == "." {
		info.Name = path.Base(strings.ReplaceAll(l.root.Name(), "\\", "/"))
	}
	var config, summary settings
	if b, err := readFile(l.root, runFile(run, "config.yaml")); err == nil {
		_, config, _ = parseConfig("", b)
	}
	if b, err := readFile(l.root, runFile(run, "summary.json")); err == nil {
		summary, _ = parseSummary("", b)
	}
	info.Algo, info.Data = first("algo", config, summary), first("data", config, summary)
	info.Agents, info.Graph = first("agents", config, summary), first("graph", config, summary)
	if v, err := json.Number(config.text("iterations")).Float64(); err == nil {
		info.Iterations = v
	}
	info.Accuracy, info.Bits = pointer(summary.number("test_acc_avg")), pointer(summary.number("bits_total"))
	info.Status = first("status", summary)
	return info
}

// pointer is nil where v is not finite.
func pointer(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// staleAfter is how long the metrics of a run that is going on may stand still: three times the time
// between its latest evaluations.
func (l *runList) staleAfter(run string) time.Duration {
	least := 30 * time.Second
	name := runFile(run, "metrics.jsonl")
	f, _, err := openRegular(l.root, name)
	if err != nil {
		return least
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err != nil {
		return least
	} else if _, err := f.Seek(max(0, end-8192), io.SeekStart); err != nil {
		return least
	}
	b, err := io.ReadAll(io.LimitReader(f, 8192))
	if err != nil {
		return least
	}
	wall := []float64{math.NaN(), math.NaN()}
	for line := range bytes.Lines(b) {
		var row struct {
			Wall *float64 `json:"wall_s"`
		}
		if json.Unmarshal(line, &row) == nil && row.Wall != nil {
			wall = []float64{wall[1], *row.Wall}
		}
	}
	if d := 3 * (wall[1] - wall[0]); d > least.Seconds() && d < 1e6 {
		return time.Duration(d * float64(time.Second))
	}
	return least
}

// within is a file of a run, below the folder of the server.
func runFile(run, name string) string { return path.Join(run, name) }

// openRegular opens a regular file below root. Anything else might keep its reader waiting.
func openRegular(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("web: %s is not a file", name)
	}
	f, err := root.Open(name)
	return f, info, err
}

// readFile reads a regular file below root, or fails on one that is larger than any run writes.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, info, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("web: %s has %d bytes, more than the %d that are read", name, info.Size(), maxFileSize)
	}
	return io.ReadAll(io.LimitReader(f, maxFileSize))
}

// readable reads an optional file below root; nil without an error if there is none.
func readOptional(root *os.Root, name string) ([]byte, error) {
	b, err := readFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// FindRuns returns the runs in a folder, the latest first.
func FindRuns(dir string) ([]RunInfo, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("web: open the folder of runs: %w", err)
	}
	defer root.Close()
	l := &runList{root: root}
	return append([]RunInfo{}, l.list(time.Now())...), nil
}
