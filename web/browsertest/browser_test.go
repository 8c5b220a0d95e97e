package browsertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"
)

// finding is one thing that drive.mjs looked at.
type finding struct {
	Name   string
	OK     bool
	Detail string
}

// tools are what the test needs beside Go.
type tools struct{ node, chromium, modules string }

// findTools skips the test where something is missing.
func findTools(t *testing.T) tools {
	t.Helper()
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute: set FSPDA_LONG=1")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node")
	}
	chromium := os.Getenv("FSPDA_CHROMIUM")
	if chromium == "" {
		if chromium, err = exec.LookPath("chromium"); err != nil {
			t.Skip("needs chromium: install it, or name a browser in FSPDA_CHROMIUM")
		}
	}
	modules := os.Getenv("FSPDA_NODE_MODULES")
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(modules, name, "package.json")); modules == "" || err != nil {
			t.Skipf("needs the npm package %s in the folder FSPDA_NODE_MODULES, which is %q", name, modules)
		}
	}
	return tools{node, chromium, modules}
}

// program builds fspda.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fspda")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", path, "fspda/cmd/fspda").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// log is what a program says, while it is being read.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// live is a run with its page.
type live struct {
	url, token string
	done       chan error
}

// start starts a run in dir and waits for its page.
func start(t *testing.T, program, dir string, args ...string) *live {
	t.Helper()
	return open(t, regexp.MustCompile(`url (http\S+), token (\S+)`), program, dir,
		append([]string{"train", "--web", "127.0.0.1:0"}, args...)...)
}

// shownRuns serves the runs in a folder below dir.
func shownRuns(t *testing.T, program, dir, folder string) *live {
	t.Helper()
	return open(t, regexp.MustCompile(`(http://\S+) (shows) the runs`), program, dir, "web", folder, "--listen",
		"127.0.0.1:0")
}

// open starts a program in dir and waits for the address of its page, which it prints like page.
func open(t *testing.T, page *regexp.Regexp, program, dir string, args ...string) *live {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	var out log
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Args[0] = dir, &out, &out, "fspda"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l := &live{done: make(chan error, 1)}
	go func() { l.done <- cmd.Wait() }()
	t.Cleanup(cancel)
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if m := page.FindStringSubmatch(out.String()); m != nil {
			l.url, l.token = m[1], m[2]
			return l
		}
	}
	t.Fatalf("no page\n%s", &out)
	return nil
}

// drive has a browser look at a page and returns what it found.
func drive(t *testing.T, with tools, scene string, l *live, shots string) {
	t.Helper()
	cmd := exec.Command(with.node, "drive.mjs", scene, l.url, l.token, shots)
	cmd.Env = append(os.Environ(), "FSPDA_CHROMIUM="+with.chromium, "FSPDA_NODE_MODULES="+with.modules)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	var findings []finding
	if err := json.Unmarshal(out, &findings); err != nil || len(findings) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range findings {
		if !f.OK {
			t.Errorf("%s: %s", f.Name, f.Detail)
			continue
		}
		t.Logf("as it should: %s: %s", f.Name, f.Detail)
	}
}

// screenshots is where pictures go.
func screenshots(t *testing.T) string {
	if keep := os.Getenv("FSPDA_KEEP"); keep != "" {
		if err := os.MkdirAll(keep, 0o755); err != nil {
			t.Fatal(err)
		}
		return keep
	}
	return t.TempDir()
}

// A person looks at a run of ten agents beside an earlier one, reads it, and stops it.
func TestRun(t *testing.T) {
	with, dir := findTools(t), t.TempDir()
	fspda := program(t)
	earlier := exec.Command(fspda, "train", "--algo", "dsgd", "--iterations", "2000", "--quiet")
	earlier.Dir = dir
	if out, err := earlier.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l := start(t, fspda, dir, "--iterations", "200000", "--eval-points", "2000")
	drive(t, with, "run", l, screenshots(t))
	select {
	case err := <-l.done:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 130 {
			t.Errorf("the stopped run ended with %v, want exit status 130", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the stop button did not end the run")
	}
}

// A person looks at seven runs: two algorithms with three seeds, and a third with other
// evaluations, which measures no gradients.
func TestRuns(t *testing.T) {
	with, dir := findTools(t), t.TempDir()
	fspda := program(t)
	train := func(args ...string) {
		args = append([]string{"train", "--quiet", "--data-train", "2000", "--data-test", "400", "--hidden", "16"},
			args...)
		cmd := exec.Command(fspda, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	for _, seed := range []string{"1", "2", "3"} {
		for _, algo := range []string{"dsgd", "fspda-sa"} {
			train("--algo", algo, "--seed", seed, "--iterations", "1000", "--eval-points", "20")
		}
	}
	train("--algo", "choco", "--iterations", "1300", "--eval-points", "9", "--metrics", "test")
	drive(t, with, "runs", shownRuns(t, fspda, dir, "runs"), screenshots(t))
}

// A folder without runs says how to make one.
func TestNoRuns(t *testing.T) {
	with := findTools(t)
	drive(t, with, "none", shownRuns(t, program(t), t.TempDir(), "."), screenshots(t))
}

// A thousand agents are drawn at the pace of the screen.
func TestThousandAgents(t *testing.T) {
	with := findTools(t)
	l := start(t, program(t), t.TempDir(), "--agents", "1000", "--graph", "torus", "--edges", "k-edges(20)",
		"--data-train", "20000", "--partition", "sorted", "--hidden", "8", "--batch", "8",
		"--eval-agents", "4", "--eta", "0.0001", "--iterations", "1000000", "--eval-points", "2000")
	drive(t, with, "thousand", l, screenshots(t))
}

// The report of the default job and a comparison are files that need nothing else, and can be read
// by everybody.
func TestPages(t *testing.T) {
	with, dir := findTools(t), t.TempDir()
	fspda := program(t)
	commands := [][]string{{"train", "--quiet"}, {"train", "--algo", "dsgd", "--quiet"},
		{"compare", "runs/fspda-sa-synthetic-1", "runs/dsgd-synthetic-1", "--out", "both"}}
	seeds := []string{"compare", "--out", "seeds"}
	for _, algo := range []string{"fspda-sa", "dsgd"} { // standard deviations make wide tables
		for _, seed := range []string{"1", "2"} {
			run := filepath.Join("small", algo+"-"+seed)
			commands = append(commands, []string{"train", "--quiet", "--algo", algo, "--seed", seed,
				"--data-train", "1000", "--data-test", "200", "--hidden", "8", "--iterations", "200",
				"--eval-points", "10", "--out", run})
			seeds = append(seeds, run)
		}
	}
	for _, args := range append(commands, seeds) {
		cmd := exec.Command(fspda, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	pages := "report=" + filepath.Join(dir, "runs", "fspda-sa-synthetic-1", "report.html") + ",compare=" +
		filepath.Join(dir, "both", "compare.html") + ",compare-seeds=" + filepath.Join(dir, "seeds", "compare.html")
	drive(t, with, "pages", &live{url: pages}, screenshots(t))
}
