//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/web"
)

// output collects the output of a program while others read it.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// find waits until a pattern appears in the output and returns its first group.
func (o *output) find(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if m := re.FindStringSubmatch(o.String()); m != nil {
			return m[1]
		}
	}
	t.Fatalf("no %s in\n%s", pattern, o)
	return ""
}

// follow reads the events of a run to their end and counts them by name.
func follow(url string) map[string]int {
	count := map[string]int{}
	r, err := http.Get(url)
	if err != nil {
		return count
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			count[name]++
		}
	}
	return count
}

// A run with several readers, one of which reads nothing, that is paused and resumed has the same
// metrics, bit for bit.
func TestWebChangesNothing(t *testing.T) {
	dir := t.TempDir()
	args := quick("--iterations", "3000", "--eval-points", "10")
	if status, _, stderr := call(t, append(args, "--quiet", "--out", filepath.Join(dir, "plain"))...); status != 0 {
		t.Fatal(stderr)
	}
	var out output
	seen := filepath.Join(dir, "seen")
	status := make(chan int)
	go func() {
		status <- Run(context.Background(), append(args, "--out", seen, "--web", ":0"), io.Discard, &out)
	}()
	url, token := out.find(t, `url ([^,\s]+)`), out.find(t, `token ([^,\s]+)`)
	var readers sync.WaitGroup
	var mu sync.Mutex
	events := map[string]int{}
	for range 3 {
		readers.Go(func() {
			n := follow(url + "api/events?run=seen")
			mu.Lock()
			defer mu.Unlock()
			for k, v := range n {
				events[k] += v
			}
		})
	}
	if r, err := http.Get(url + "api/events?run=seen"); err == nil { // never read
		defer r.Body.Close()
	}
	for _, action := range []string{"pause", "checkpoint", "resume"} {
		if s := steerAt(t, url, token, action); s != http.StatusNoContent && s != http.StatusConflict {
			t.Errorf("%s: status %d", action, s)
		}
	}
	if s := <-status; s != 0 {
		t.Errorf("exit status %d\n%s", s, &out)
	}
	readers.Wait()
	if events["rows"] == 0 || events["frame"] == 0 || events["agents"] == 0 {
		t.Errorf("the readers heard of %v", events)
	}
	if metricRows(t, seen) != metricRows(t, filepath.Join(dir, "plain")) {
		t.Error("another run")
	}
}

func steerAt(t *testing.T, url, token, action string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+"api/steer",
		strings.NewReader(fmt.Sprintf(`{"run":"seen","action":%q}`, action)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(web.TokenHeader, token)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode
}

// The stop button ends a run as Ctrl-C does, with a checkpoint to resume from. Without the token it
// does nothing.
func TestWebStops(t *testing.T) {
	var out output
	dir := filepath.Join(t.TempDir(), "seen")
	status := make(chan int)
	go func() {
		status <- Run(context.Background(), quick("--iterations", "10000000", "--eval-points", "1", "--out", dir,
			"--web", "127.0.0.1:0"), io.Discard, &out)
	}()
	url, token := out.find(t, `url ([^,\s]+)`), out.find(t, `token ([^,\s]+)`)
	if s := steerAt(t, url, "guess", "stop"); s != http.StatusForbidden {
		t.Errorf("a guessed token: status %d", s)
	}
	if s := steerAt(t, url, token, "stop"); s != http.StatusNoContent {
		t.Errorf("status %d", s)
	}
	if s := <-status; s != command.ExitStopped {
		t.Errorf("exit status %d\n%s", s, &out)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*")); len(found) == 0 {
		t.Error("no checkpoint was left")
	}
}

// fspda web prints its address and serves a folder until it is stopped.
func TestWebCommand(t *testing.T) {
	dir := t.TempDir()
	if status, _, stderr := call(t, quick("--quiet", "--out", filepath.Join(dir, "one"))...); status != 0 {
		t.Fatal(stderr)
	}
	ctx, stop := context.WithCancel(context.Background())
	var out output
	status := make(chan int)
	go func() { status <- Run(ctx, []string{"web", dir, "--listen", ":0"}, &out, io.Discard) }()
	url := out.find(t, `(http://\S+)`)
	r, err := http.Get(url + "api/runs")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if !strings.Contains(string(text), `"run":"one","name":"one","status":"finished","live":false`) {
		t.Errorf("%s", text)
	}
	stop()
	if s := <-status; s != 0 {
		t.Errorf("exit status %d", s)
	}
}

// Where no run has been made yet, fspda web waits for the first one in runs.
func TestWebWithoutRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(context.Background())
	var out output
	status := make(chan int)
	go func() { status <- Run(ctx, []string{"web", "--listen", ":0"}, &out, io.Discard) }()
	r, err := http.Get(out.find(t, `(http://\S+)`) + "api/runs")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if !strings.Contains(string(text), `"runs":[]`) || !strings.Contains(string(text), `"folder":"runs"`) {
		t.Errorf("%s", text)
	}
	stop()
	if s := <-status; s != 0 {
		t.Errorf("exit status %d", s)
	}
}

func TestWebRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "run")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no folder":   {[]string{"web", filepath.Join(file, "x")}, "name the folder"},
		"a file":      {[]string{"web", file}, "is not a folder"},
		"two":         {[]string{"web", "a", "b"}, "expected one folder"},
		"address":     {[]string{"web", t.TempDir(), "--listen", "8080"}, "HOST:PORT"},
		"train":       {quick("--out", out, "--web", "nowhere"), "HOST:PORT"},
		"web spelled": {[]string{"wbe"}, "did you mean web?"},
	} {
		if status, _, stderr := call(t, c.args...); status != command.ExitBadInput || !strings.Contains(stderr,
			c.want) {
			t.Errorf("%s: exit status %d, %s", name, status, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a run was begun")
	}
}

// A run in one process serves its metrics to monitoring, with the numbers of its evaluations.
func TestTrainMetrics(t *testing.T) {
	var out output
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	status := make(chan int)
	go func() {
		status <- Run(ctx, quick("--iterations", "10000000", "--eval-points", "1000000", "--out",
			filepath.Join(t.TempDir(), "seen"), "--metrics-listen", "127.0.0.1:0"), io.Discard, &out)
	}()
	url := out.find(t, `url ([^,\s]+metrics)`)
	text := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(text, "fspda_test_accuracy{"); {
		if time.Now().After(end) {
			t.Fatalf("no accuracy in\n%s", text)
		}
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	for _, want := range []string{`fspda_iterations{run="seen"} 1e+07`, `fspda_agents{run="seen"}`,
		`fspda_consensus{run="seen"}`, "# HELP fspda_loss Loss of the latest batch"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, "rank=") || strings.Contains(text, "fspda_peers_up{") {
		t.Error("a run in one process has ranks or peers")
	}
	stop()
	if s := <-status; s != command.ExitStopped {
		t.Errorf("exit status %d\n%s", s, &out)
	}
}
