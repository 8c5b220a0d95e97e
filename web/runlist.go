package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
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
	// the pause between searches, as a multiple of the time of one: a search over many runs is
	// rarer
	searchPauseFactor = 100
	maxSearchDepth    = 4       // levels below the folder of the server
	maxRuns           = 1000    // most runs of the list
	maxFolders        = 50_000  // folders visited
	maxFileSize       = 8 << 20 // bytes of config.yaml, summary.json and shards.json
)

// RunInfo is an entry of the list of runs.
type RunInfo struct {
	Run        string   `json:"run"`    // the run's folder, relative to the server's; "." is the latter itself
	Name       string   `json:"name"`   // name for display
	Status     string   `json:"status"` // finished, stopped, diverged or running
	Live       bool     `json:"live"`   // it runs in this process
	Algo       string   `json:"algo"`
	Data       string   `json:"data"`
	Agents     *float64 `json:"agents"` // null where unknown
	Graph      string   `json:"graph"`
	Iterations float64  `json:"iterations"`                   // iterations of the whole run; 0 where unknown
	Accuracy   *float64 `json:"accuracy"`                     // latest test accuracy of the mean model; null where unknown
	Bits       *float64 `json:"bits"`                         // sent so far; null where unknown
	Changed    int64    `json:"changed"`                      // when its metrics last grew, in seconds since 1970
	Failure    string   `json:"failed_to_converge,omitempty"` // why it is said to; empty of a run that converged

	Latest   map[string]*float64 `json:"latest"`   // columns of the latest evaluation; null where not measured
	Settings map[string]any      `json:"settings"` // those in which the runs of the list differ: numbers and texts
	Group    string              `json:"group"`    // equal for runs that differ in their seeds only; may be empty
}

// runList finds the runs below a folder, by config.yaml or metrics.jsonl, and caches the files that
// it reads.
type runList struct {
	root *runTree
	only string // the only run to show; empty for all
	live *LiveRun

	mu     sync.Mutex
	next   time.Time // time of the next search
	infos  []RunInfo
	varied []string // the keys of Settings, in the order of the configuration
	cache  map[string]cachedInfo
}

// cachedInfo is the information about a run, with the modification times of the files that it came
// from.
type cachedInfo struct {
	config, summary, metrics time.Time
	info                     RunInfo
	keys                     []string          // keys of the configuration, in its order
	values                   map[string]string // their values; nil without a configuration
	numbers                  map[string]any    // the values that are numbers, as they are
}

// list returns the runs, the latest first.
func (l *runList) list(now time.Time) []RunInfo {
	runs, _ := l.listVaried(now)
	return runs
}

// listVaried is list with the keys in which the runs differ.
func (l *runList) listVaried(now time.Time) (runs []RunInfo, varied []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now.Before(l.next) {
		l.refresh(now)
	}
	return l.infos, l.varied
}

// refresh searches the runs and reads the files that have changed.
func (l *runList) refresh(now time.Time) {
	begin := time.Now()
	defer func() { l.next = now.Add(max(searchInterval, searchPauseFactor*time.Since(begin))) }()
	read := map[string]cachedInfo{}
	l.infos = nil
	for _, run := range l.search() {
		r := l.info(run, now)
		read[run] = r
		l.infos = append(l.infos, r.info)
	}
	l.cache = read
	l.varied = variedKeys(read)
	for i := range l.infos {
		l.infos[i].Settings = read[l.infos[i].Run].typed(l.varied)
	}
	slices.SortStableFunc(l.infos, func(a, b RunInfo) int {
		if a.Live != b.Live {
			if a.Live {
				return -1
			}
			return 1
		}
		return int(b.Changed - a.Changed)
	})
}

func (l *runList) has(run string, now time.Time) bool {
	return slices.ContainsFunc(l.list(now), func(i RunInfo) bool { return i.Run == run })
}

// goesOn reports whether a run is running.
func (l *runList) goesOn(run string, now time.Time) bool {
	return slices.ContainsFunc(l.list(now), func(i RunInfo) bool { return i.Run == run && i.Status == "running" })
}

// search returns the folders of runs.
func (l *runList) search() []string {
	if l.only != "" {
		return []string{l.only}
	}
	var found []string
	looked := 0
	l.root.walk(func(p string) error {
		if looked++; looked > maxFolders || len(found) >= maxRuns {
			return fs.SkipAll
		}
		switch {
		case p != "." && (strings.HasPrefix(path.Base(p), ".") || strings.Count(p, "/") >= maxSearchDepth):
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

// info returns the entry of a run, from the cache if its files are unchanged.
func (l *runList) info(run string, now time.Time) cachedInfo {
	at := func(name string) time.Time { return l.modified(runFile(run, name)) }
	r := cachedInfo{config: at("config.yaml"), summary: at("summary.json"), metrics: at("metrics.jsonl")}
	if old, ok := l.cache[run]; ok && old.config.Equal(r.config) && old.summary.Equal(r.summary) &&
		old.metrics.Equal(r.metrics) {
		r = old
	} else {
		l.load(run, &r)
	}
	changed := r.metrics
	if changed.IsZero() {
		changed = r.config
	}
	r.info.Changed = changed.Unix()
	r.info.Live = l.live != nil && l.live.Run == run
	running, known := r.info.Live && !l.live.Ended(), r.info.Live
	if !known {
		running, known = l.root.running(run)
	}
	if !known { // as another user: a running run grows
		running = r.summary.IsZero() && now.Sub(changed).Abs() < l.staleAfter(run)
	}
	switch {
	case running:
		r.info.Status = "running"
	case r.summary.IsZero():
		r.info.Status = "stopped"
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

// load reads the configuration, the summary and the latest evaluation. It ignores damaged files;
// describe reports them.
func (l *runList) load(run string, r *cachedInfo) {
	info := RunInfo{Run: run, Name: run}
	if run == "." {
		info.Name = path.Base(strings.ReplaceAll(l.root.Name(), "\\", "/"))
	}
	var config, summary settings
	if b, err := readFile(l.root, runFile(run, "config.yaml")); err == nil {
		config = r.configure("", b)
	}
	if b, err := readFile(l.root, runFile(run, "summary.json")); err == nil {
		summary, _ = parseSummary("", b)
	}
	info.Algo, info.Data = first("algo", config, summary), first("data", config, summary)
	info.Graph, info.Failure = first("graph", config, summary), summary.text(failureKey)
	if info.Agents = pointer(config.number("agents")); info.Agents == nil {
		info.Agents = pointer(summary.number("agents"))
	}
	if v := config.number("iterations"); finite(v) {
		info.Iterations = v
	}
	rows := l.lastRows(run)
	latest := rows[len(rows)-1]
	info.Latest = map[string]*float64{}
	for _, column := range latestColumns {
		info.Latest[column] = pointer(latest.number(column))
	}
	info.Accuracy, info.Bits = info.Latest["test_acc_avg"], info.Latest["bits_total"]
	if summary != nil {
		info.Accuracy, info.Bits = pointer(summary.number("test_acc_avg")), pointer(summary.number("bits_total"))
	}
	info.Status, info.Group = first("status", summary), r.info.Group
	r.info = info
}

// latestColumns lists the columns of RunInfo.Latest.
var latestColumns = []string{"iteration", "train_loss_avg", "train_loss_worst", "test_acc_avg", "test_acc_min",
	"consensus", "perplexity", "bits_total", "wall_s"}

// pointer returns a pointer to v, or nil if v is not finite.
func pointer(v float64) *float64 {
	if !finite(v) {
		return nil
	}
	return &v
}

// staleAfter returns how long the metrics of an active run may stay unchanged: three times the
// interval between its latest two evaluations, at least 30 s.
func (l *runList) staleAfter(run string) time.Duration {
	least := 30 * time.Second
	rows := l.lastRows(run)
	if d := 3 * (rows[1].number("wall_s") - rows[0].number("wall_s")); d > least.Seconds() && d < 1e6 {
		return time.Duration(d * float64(time.Second))
	}
	return least
}

// tailBytes is how much of the end of metrics.jsonl is read for the latest evaluations.
const tailBytes = 8192

// lastRows returns the latest two evaluations of a run, nil in place of those that are not there.
func (l *runList) lastRows(run string) (rows [2]settings) {
	f, info, err := openRegular(l.root, runFile(run, "metrics.jsonl"))
	if err != nil {
		return rows
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return rows
	}
	for line := range bytes.Lines(b) {
		var row settings
		if json.Unmarshal(line, &row) == nil && row != nil {
			rows = [2]settings{rows[1], row}
		}
	}
	return rows
}

// runFile returns the path of a file of a run, relative to the folder of the server.
func runFile(run, name string) string { return path.Join(run, name) }

// openRegular opens a regular file below root. Opening a named pipe would block.
func openRegular(root *runTree, name string) (*os.File, os.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("web: %s is not a regular file", name)
	}
	f, err := root.Open(name)
	return f, info, err
}

// readFile reads a regular file of at most maxFileSize bytes below root.
func readFile(root *runTree, name string) ([]byte, error) {
	f, info, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxFileSize {
		return nil, fmt.Errorf("web: %s has %d bytes, want at most %d", name, info.Size(), maxFileSize)
	}
	return io.ReadAll(io.LimitReader(f, maxFileSize))
}

// FindRuns returns the runs in a folder, the latest first.
func FindRuns(dir string) ([]RunInfo, error) {
	root, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	l := &runList{root: root}
	return append([]RunInfo{}, l.list(time.Now())...), nil
}
