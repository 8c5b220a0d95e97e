package web

import (
	"bytes"
	"encoding/json"
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
	// the pause between searches, as a multiple of the time of one: a search over many runs is
	// rarer
	searchPauseFactor = 100
	maxSearchDepth    = 4       // levels below the folder of the server
	maxRuns           = 1000    // in the list
	maxEntries        = 50_000  // directory entries visited
	maxFileSize       = 8 << 20 // bytes of config.yaml, summary.json and shards.json
)

// RunInfo is an entry of the list of runs.
type RunInfo struct {
	Run        string   `json:"run"`    // its folder, relative to that of the server; "." is the latter itself
	Name       string   `json:"name"`   // for display
	Status     string   `json:"status"` // finished, stopped, diverged, running or unfinished
	Live       bool     `json:"live"`   // it runs in this process
	Algo       string   `json:"algo"`
	Data       string   `json:"data"`
	Agents     string   `json:"agents"`
	Graph      string   `json:"graph"`
	Iterations float64  `json:"iterations"` // of the whole run; 0 where unknown
	Accuracy   *float64 `json:"accuracy"`   // on the test set, of the mean model, at the end; null where unknown
	Bits       *float64 `json:"bits"`       // sent, at the end; null where unknown
	Changed    int64    `json:"changed"`    // when its metrics last grew, in seconds since 1970
}

// runList finds the runs below a folder, by config.yaml or metrics.jsonl, and caches what it reads.
type runList struct {
	root *os.Root
	only string // the only run to show; empty for all
	live *LiveRun

	mu    sync.Mutex
	next  time.Time // of the next search
	infos []RunInfo
	cache map[string]cachedInfo
}

// cachedInfo is the information about a run, with the modification times of the files that it came
// from.
type cachedInfo struct {
	config, summary time.Time
	info            RunInfo
}

// list returns the runs, the latest first.
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
	l.cache = read
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

// has reports whether there is a run of that name.
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

// info returns the entry of a run, from the cache if its files are unchanged.
func (l *runList) info(run string, now time.Time) cachedInfo {
	r := cachedInfo{config: l.modified(runFile(run, "config.yaml")), summary: l.modified(runFile(run, "summary.json"))}
	if old, ok := l.cache[run]; ok && old.config.Equal(r.config) && old.summary.Equal(r.summary) {
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

// load reads the configuration and the summary. It ignores damaged files; describe reports them.
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

// runFile returns the path of a file of a run, relative to the folder of the server.
func runFile(run, name string) string { return path.Join(run, name) }

// openRegular opens a regular file below root. Opening a named pipe would block.
func openRegular(root *os.Root, name string) (*os.File, os.FileInfo, error) {
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
func readFile(root *os.Root, name string) ([]byte, error) {
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("web: open the folder of runs: %w", err)
	}
	defer root.Close()
	l := &runList{root: root}
	return append([]RunInfo{}, l.list(time.Now())...), nil
}
