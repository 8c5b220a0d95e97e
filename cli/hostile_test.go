//go:build !windows

package cli

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// trainee is a training process of this program with its live page.
type trainee struct {
	cmd  *exec.Cmd
	log  output
	dir  string
	host string
}

// beginTraining starts one and waits for its page.
func beginTraining(t *testing.T, iterations int, more ...string) *trainee {
	t.Helper()
	tr := &trainee{dir: filepath.Join(t.TempDir(), "runs", "run")}
	args := []string{"train", "--web", "127.0.0.1:0", "--threads", "2", "--data-train", "2000", "--data-test", "100",
		"--batch", "32",
		"--iterations", strconv.Itoa(iterations), "--eval-points", "20", "--checkpoint-every", "0", "--out", tr.dir}
	tr.cmd = exec.Command(os.Args[0], append(args, more...)...)
	tr.cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	tr.cmd.Stderr = &tr.log
	if err := tr.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.cmd.Process.Kill() })
	tr.host = strings.TrimSuffix(tr.log.find(t, `url http://([^,\s]+)`), "/")
	return tr
}

// cost waits for the end and returns the processor time of the process, the duration of the run,
// and the last test accuracy.
func (tr *trainee) cost(t *testing.T) (processor, wall time.Duration, accuracy float64) {
	t.Helper()
	if err := tr.cmd.Wait(); err != nil {
		t.Fatalf("the training ended with %v\n%s", err, &tr.log)
	}
	text, err := os.ReadFile(filepath.Join(tr.dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sum struct {
		Status   string
		Wall     float64 `json:"wall_s"`
		Accuracy float64 `json:"test_acc_avg"`
	}
	if err := json.Unmarshal(text, &sum); err != nil || sum.Status != "finished" {
		t.Fatalf("%v\n%s", err, text)
	}
	s := tr.cmd.ProcessState
	return s.UserTime() + s.SystemTime(), time.Duration(sum.Wall * float64(time.Second)), sum.Accuracy
}

// crowd runs misbehaving clients until stop is closed: idle ones, which reconnect when they are
// disconnected, and a few of each busier kind.
func crowd(host string, idle int, stop chan struct{}) (opened func() int, left func()) {
	var all sync.WaitGroup
	var mu sync.Mutex
	count := 0
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	again := func(do func(c net.Conn)) {
		for !stopped() {
			c, err := net.DialTimeout("tcp", host, time.Second)
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			mu.Lock()
			count++
			mu.Unlock()
			over := make(chan struct{})
			go func() {
				select {
				case <-stop:
				case <-over:
				}
				c.Close()
			}()
			do(c)
			close(over)
			time.Sleep(50 * time.Millisecond)
		}
	}
	for range idle {
		all.Go(func() { again(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }) })
	}
	for _, request := range []string{
		"GET /api/events?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /api/run?run=run HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /files/run/metrics.jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /api/steer HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nContent-Type: " +
			"application/json\r\nContent-Length: 30\r\n\r\n{\"run\":\"run\",\"action\":\"stop\"}\n",
		"GET /files/run/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"\x16\x03\x01 \x00\xff noise\r\n\r\n",
	} {
		for k := range 20 {
			all.Go(func() {
				again(func(c net.Conn) {
					if k%2 == 0 { // every other one never reads
						go func() { _, _ = io.Copy(io.Discard, c) }()
					}
					for {
						if _, err := io.WriteString(c, request); err != nil || stopped() {
							return
						}
					}
				})
			})
		}
	}
	return func() int { mu.Lock(); defer mu.Unlock(); return count }, func() { close(stop); all.Wait() }
}

// serving matches the functions of a server and of the packages below it.
const serving = `net/http|internal/poll|runtime\.netpoll|web\.\(\*(Server|budget|trackedConn|limitedListener|pacedListener|stream|snapshotter|runList|tailer|bufferedResponse|meteredWriter)\)`

// shareOf returns the share of a profile's processor time that was spent on serving, including
// callees.
func shareOf(t *testing.T, profile string) (share float64, line string) {
	t.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount", "1", "-focus", serving, os.Args[0],
		profile).Output()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`nodes accounting for .*, ([\d.]+)% of .* total`).FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("no share in\n%s", out)
	}
	share, err = strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return share / 100, m[0]
}

// Ten thousand idle connections, readers that never read, random bytes and requests of other sites
// neither end a run nor change it, nor take more than 2 % of its processor time. The profile shows
// that share: clients and training use the processors of the same machine here, and the clients
// slow any process by more than that.
func TestHostileClientsOfARun(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes: set FSPDA_LONG=1")
	}
	const idle, iterations = 10_000, 15_000
	_, quiet, want := beginTraining(t, iterations).cost(t)
	profile := filepath.Join(t.TempDir(), "profile")
	t.Setenv("FSPDA_TEST_PROFILE", profile)
	tr := beginTraining(t, iterations)
	opened, leave := crowd(tr.host, idle, make(chan struct{}))
	processor, wall, got := tr.cost(t)
	n := opened()
	leave()
	share, line := shareOf(t, profile)
	t.Logf("%d connections; processor time %v in %v (%v without): %s", n, processor, wall, quiet, line)
	if n < idle/2 {
		t.Errorf("only %d connections were opened", n)
	}
	if got != want {
		t.Errorf("accuracy %v, without clients %v", got, want)
	}
	if share > 0.02 || share == 0 {
		t.Errorf("%.4f of the processor time went to clients", share)
	}
}

// The page of a run does not serve files outside the run, whatever a folder of runs holds.
func TestWebKeepsSecrets(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret.yaml")
	runs := filepath.Join(dir, "runs")
	if status, _, stderr := call(t, quick("--quiet", "--iterations", "2", "--eval-points", "1", "--out",
		filepath.Join(runs, "one"))...); status != 0 {
		t.Fatal(stderr)
	}
	if err := os.WriteFile(secret, []byte("classified"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"links.yaml": secret, "report.md": "../../secret.yaml"} {
		_ = os.Remove(filepath.Join(runs, "one", link))
		if err := os.Symlink(to, filepath.Join(runs, "one", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(runs, "out")); err != nil { // a folder that leads out
		t.Fatal(err)
	}
	url := serveRuns(t, runs)
	for _, path := range []string{"one/links.yaml", "one/report.md", "out/secret.yaml", "out/config.yaml",
		"..%2fsecret.yaml", "one/..%2f..%2fsecret.yaml", "one/%2e%2e/%2e%2e/secret.yaml", "one%2f..%2f..%2fsecret.yaml",
		"one/....//....//secret.yaml", "one/..%5c..%5csecret.yaml", "one/%252e%252e%252fsecret.yaml",
		"%c0%ae%c0%ae/secret.yaml", "one/config.yaml%00.html"} {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//" + r.URL.Host + "/files/" + path // as it stands, not tidied up
		a, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if a.StatusCode == http.StatusOK || strings.Contains(string(body), "classified") {
			t.Errorf("%s: status %d, %q", path, a.StatusCode, body)
		}
	}
	if r, err := http.Get(url + "files/one/config.yaml"); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("the run's own file: %v, %v", r, err)
	}
}

// serveRuns runs fspda web on a folder and returns its address.
func serveRuns(t *testing.T, dir string) string {
	t.Helper()
	var out output
	ctx, ended := t.Context(), make(chan int)
	go func() { ended <- Run(ctx, []string{"web", dir, "--listen", "127.0.0.1:0"}, &out, io.Discard) }()
	t.Cleanup(func() {
		if s := <-ended; s != 0 {
			t.Errorf("exit status %d", s)
		}
	})
	return out.find(t, `(http://\S+)`)
}
