package web

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/internal/lockfile"
)

// The status of a run is that of its locks, whatever the times of its files.
func TestStatusIsThatOfTheLock(t *testing.T) {
	times := []time.Duration{-9000 * time.Hour, -time.Hour, -time.Second, 0, time.Minute, time.Hour, 9000 * time.Hour}
	for name, c := range map[string]struct {
		locked, summary string
		rows            int
		want            string
	}{
		"running":                      {".", "", 5, "running"},
		"before its first row":         {".", "", 0, "running"},
		"one row":                      {".", "", 1, "running"},
		"killed":                       {"", "", 5, "stopped"},
		"killed at once":               {"", "", 1, "stopped"},
		"finished":                     {"", `{"status": "finished"}`, 5, "finished"},
		"diverged":                     {"", `{"status": "diverged"}`, 5, "diverged"},
		"finished, and made longer":    {".", `{"status": "finished"}`, 5, "running"},
		"agents without agent 0":       {"agents/3", "", 5, "running"},
		"started by up, agent 0 ended": {"agents/up", "", 5, "running"},
	} {
		for _, at := range times {
			dir := t.TempDir()
			run := filepath.Join(dir, "run")
			for _, folder := range []string{".", "agents/3", "agents/up", "agents/4"} {
				if err := os.MkdirAll(filepath.Join(run, folder), 0o755); err != nil {
					t.Fatal(err)
				}
				l, ok, err := lockfile.TryLock(filepath.Join(run, folder))
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
				if folder != c.locked {
					_ = l.Unlock()
				}
				defer l.Unlock()
			}
			for file, text := range map[string]string{"config.yaml": testConfig, "summary.json": c.summary,
				"metrics.jsonl": jsonl(t, evaluations(c.rows))} {
				if text == "" {
					continue
				}
				path := filepath.Join(run, file)
				when := time.Now().Add(at)
				err := errors.Join(os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, when, when))
				if err != nil {
					t.Fatal(err)
				}
			}
			runs, err := FindRuns(dir)
			if err != nil || len(runs) != 1 || runs[0].Status != c.want {
				t.Errorf("%s, files of %v: %+v, %v, want %s", name, at, runs, err, c.want)
			}
		}
	}
}

// Runs behind symbolic links are listed, and nothing but them: no link leads out of them, and none
// is followed twice.
func TestLinksToRuns(t *testing.T) {
	dir := twoRuns(t)
	above := filepath.Dir(dir)
	far := filepath.Join(above, "far")
	if err := errors.Join(os.CopyFS(filepath.Join(far, "run"), os.DirFS(filepath.Join(dir, "one"))),
		os.CopyFS(filepath.Join(far, "several/a/run"), os.DirFS(filepath.Join(dir, "figure 1/storm"))),
		os.MkdirAll(filepath.Join(far, "notes"), 0o755),
		os.WriteFile(filepath.Join(far, "notes/config.txt"), []byte("classified"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"outside": filepath.Join(far, "run"), "relative": "../far/run", "latest": "one", "within": "figure 1",
		"of many": filepath.Join(far, "several"), "self": ".", "up": "..", "top": "/", "lost": "nowhere",
		"file": "one/config.yaml", "figure 1/deep": "../../far/run", "loop": "loop",
		"no run":                 filepath.Join(far, "notes"),
		"../far/several/a/again": filepath.Join(far, "several"), "../far/several/b": far,
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip("no links on this system:", err)
		}
	}
	runs, err := FindRuns(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range runs {
		names = append(names, r.Run)
		if r.Algo == "" || r.Status == "" {
			t.Errorf("%+v", r)
		}
	}
	slices.Sort(names)
	want := []string{"figure 1/deep", "figure 1/storm", "latest", "of many/a/run", "one", "outside", "relative",
		"within/storm"}
	if !slices.Equal(names, want) {
		t.Errorf("runs %q, want %q", names, want)
	}
	srv := newServer(t, Options{Dir: dir})
	for _, run := range []string{"outside", "latest"} {
		status, body := get(t, srv.URL+"/files/"+run+"/config.yaml")
		if status != 200 || !strings.Contains(body, "algo") {
			t.Errorf("%s: status %d", run, status)
		}
	}
	for _, path := range []string{"no%20run/config.txt", "top/etc/passwd", "outside/links.yaml",
		"outside/../notes/config.txt",
		"up/secret.yaml", "outside/..%2fnotes%2fconfig.txt"} {
		if status, body := get(t, srv.URL+"/files/"+path); status == 200 || strings.Contains(body, "classified") {
			t.Errorf("%s: status %d, %s", path, status, body)
		}
	}
	// A link that is gone, or leads elsewhere, is so at the next search.
	l := &runList{}
	if l.root, err = openTree(dir); err != nil {
		t.Fatal(err)
	}
	defer l.root.Close()
	first := l.search()
	if err := errors.Join(os.Remove(filepath.Join(dir, "outside")), os.Remove(filepath.Join(dir, "relative")),
		os.Symlink("../far/several/a/run", filepath.Join(dir, "relative"))); err != nil {
		t.Fatal(err)
	}
	if again := l.search(); len(again) != len(first)-1 || slices.Contains(again, "outside") {
		t.Errorf("runs %q, then %q", first, again)
	}
	if _, err := l.root.Stat("outside/config.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link that is gone: %v", err)
	}
	if _, err := l.root.Stat("relative/summary.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link that leads elsewhere: %v", err)
	}
}
