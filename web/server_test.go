package web

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fspda/internal/lockfile"
)

// twoRuns makes a folder with a finished run and one in a subfolder, and with files that must not
// be served: a secret in the parent folder, a link to it, and a folder that is no run.
func twoRuns(t testing.TB) (dir string) {
	t.Helper()
	above := t.TempDir()
	dir = filepath.Join(above, "runs")
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one/config.yaml", testConfig)
	write("one/summary.json", testSummary)
	write("one/shards.json", testShards(t, 10, 10))
	write("one/metrics.jsonl", jsonl(t, evaluations(30)))
	write("one/report.html", "<p>report</p>")
	write("one/checkpoints/0001/x.safetensors", "classified")
	write("figure 1/storm/config.yaml", testConfig)
	write("figure 1/storm/metrics.jsonl", jsonl(t, evaluations(5)))
	write("notes/config.txt", "classified")
	write("../secret.yaml", "classified")
	write("one/other.txt", "classified")
	if err := os.Symlink(filepath.Join(above, "secret.yaml"), filepath.Join(dir, "one", "links.yaml")); err != nil {
		t.Log("no links on this system:", err)
	}
	return dir
}

func newServer(t testing.TB, opt Options) *httptest.Server {
	t.Helper()
	s, err := NewServer(opt)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(func() { srv.Close(); s.Close() })
	return srv
}

// get returns the status and the body of a response.
func get(t testing.TB, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestServerListsRuns(t *testing.T) {
	dir := twoRuns(t)
	l, ok, err := lockfile.TryLock(filepath.Join(dir, "figure 1/storm"))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer l.Unlock()
	srv := newServer(t, Options{Dir: dir})
	_, body := get(t, srv.URL+"/api/runs")
	var answer struct {
		Runs  []RunInfo
		Live  string
		Steer bool
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	byName := map[string]RunInfo{}
	for _, r := range answer.Runs {
		byName[r.Run] = r
	}
	one, storm := byName["one"], byName["figure 1/storm"]
	if len(byName) != 2 || one.Status != "finished" || one.Algo != "fspda-sa" || *one.Accuracy != 0.9689 ||
		one.Iterations != 20000 {
		t.Errorf("%s", body)
	}
	if storm.Status != "running" || *storm.Accuracy != *storm.Latest["test_acc_avg"] || *storm.Bits != 800*6.4*79510 ||
		*storm.Latest["iteration"] != 800 || storm.Latest["perplexity"] != nil || answer.Live != "" || answer.Steer {
		t.Errorf("%s", body)
	}
	if one.Group == "" || one.Group != storm.Group || len(one.Settings) != 0 {
		t.Errorf("equal configurations: groups %q and %q, settings %v", one.Group, storm.Group, one.Settings)
	}
}

// The list has the settings in which runs differ, the algorithm first and the others in the order of
// the configuration. Runs that differ in their seeds only are of one group.
func TestServerListsWhatDiffers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, algo, alpha, seed, threads string) {
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		text := "data: mnist\nhidden:\n- 32\nalpha: " + alpha + "\nalgo: " + algo + "\nseed: " + seed + "\nthreads: " +
			threads + "\n"
		if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "dsgd", "0.1", "1", "2")
	write("b", "dsgd", "0.1", "2", "4")
	write("c", "fspda-sa", "0.2", "2", "2")
	var answer struct {
		Runs   []RunInfo
		Varied []string
	}
	_, body := get(t, newServer(t, Options{Dir: dir}).URL+"/api/runs")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(answer.Varied); got != "[algo alpha seed]" {
		t.Errorf("varied %s", got)
	}
	group := map[string]string{}
	for _, r := range answer.Runs {
		group[r.Run] = r.Group
		if r.Run == "b" && fmt.Sprint(r.Settings) != "map[algo:dsgd alpha:0.1 seed:2]" {
			t.Errorf("settings %v", r.Settings)
		}
	}
	if group["a"] != group["b"] || group["a"] == group["c"] {
		t.Errorf("groups %v", group)
	}
}

// A folder that is a run itself is listed as ".", and Only hides all other runs.
func TestServerOfOneRun(t *testing.T) {
	dir := twoRuns(t)
	_, body := get(t, newServer(t, Options{Dir: filepath.Join(dir, "one")}).URL+"/api/runs")
	if !strings.Contains(body, `"run":".","name":"one"`) {
		t.Errorf("%s", body)
	}
	srv := newServer(t, Options{Dir: dir, Only: "one"})
	if _, body := get(t, srv.URL+"/api/runs"); strings.Contains(body, "storm") {
		t.Errorf("%s", body)
	}
	for _, path := range []string{"/api/run?run=figure+1/storm", "/api/events?run=figure+1/storm",
		"/files/figure%201/storm/config.yaml"} {
		if status, _ := get(t, srv.URL+path); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

func TestServerDescribes(t *testing.T) {
	dir := twoRuns(t)
	srv := newServer(t, Options{Dir: dir})
	_, body := get(t, srv.URL+"/api/run?run=one")
	var about struct {
		Sentence, Config, Command, Accounting, Graph string
		Agents, Edges                                [][]int
		Files, Problems                              []string
	}
	if err := json.Unmarshal([]byte(body), &about); err != nil {
		t.Fatal(err)
	}
	if len(about.Agents) != 10 || len(about.Edges) == 0 || !strings.HasPrefix(about.Sentence, "fspda-sa trained") ||
		about.Config != testConfig || about.Accounting != "shared-seed" ||
		about.Graph != "er10-published" || !strings.Contains(about.Command, "--seed 1") {
		t.Errorf("%s", body)
	}
	if got := strings.Join(about.Files, " "); got != "config.yaml metrics.jsonl report.html shards.json summary.json" {
		t.Errorf("files %s", got)
	}
	if len(about.Problems) > 1 || len(about.Problems) == 1 && !strings.Contains(about.Problems[0], "links.yaml") {
		t.Errorf("problems %v", about.Problems)
	}
	if _, body := get(t, srv.URL+"/api/run?run=figure+1/storm"); !strings.Contains(body,
		"fspda train -c "+filepath.Join(dir, "figure 1", "storm", "config.yaml")) {
		t.Errorf("the command does not use the configuration: %s", body)
	}
	if err := os.WriteFile(filepath.Join(dir, "one", "shards.json"),
		[]byte(`{"classes":1,"agents":[[1]],"edges":[[0,9]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, body := get(t, srv.URL+"/api/run?run=one"); !strings.Contains(body, "want agents from 0 to 0") {
		t.Errorf("a damaged file is not reported: %s", body)
	}
}

// Only the public files of runs below the folder are served, for any spelling of the path.
func TestServerServesNothingElse(t *testing.T) {
	dir := twoRuns(t)
	srv := newServer(t, Options{Dir: dir})
	for _, path := range []string{
		"/files/one/report.html", "/files/one/metrics.jsonl", "/files/figure%201/storm/config.yaml",
	} {
		if status, body := get(t, srv.URL+path); status != http.StatusOK || body == "" {
			t.Errorf("%s: status %d", path, status)
		}
	}
	for _, path := range []string{
		"/files/../secret.yaml", "/files/one/../../secret.yaml", "/files/%2e%2e/secret.yaml", "/files/..%2fsecret.yaml",
		"/files/one/..%2f..%2fsecret.yaml", "/files/one/links.yaml",
		"/files/one/other.txt", "/files/one/checkpoints/0001/x.safetensors", "/files/notes/config.txt",
		"/files//etc/passwd", "/files/%2fetc%2fpasswd", "/files/one%00/config.yaml",
		"/assets/../server.go", "/assets/README.md", "/api/run?run=../runs/one", "/api/run?run=/etc",
		"/api/run?run=notes", "/api/run", "/api/run?run=one/checkpoints", "/api/events?run=..",
		"/static/index.html", "/debug/pprof/", "/favicon.ico",
	} {
		r, err := http.NewRequest(http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Opaque = "//" + r.URL.Host + path // verbatim, without normalization
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK || strings.Contains(string(body), "classified") {
			t.Errorf("%s: status %d, %q", path, answer.StatusCode, body)
		}
	}
}

// Every response forbids loading from other sites, framing and caching. A report may have its own
// styles, and no script.
func TestServerHeaders(t *testing.T) {
	srv := newServer(t, Options{Dir: twoRuns(t), Loopback: true})
	for path, want := range map[string]string{"/": "script-src 'self'", "/api/runs": "default-src 'none'",
		"/files/one/report.html": "sandbox", "/nothing": "frame-ancestors 'none'"} {
		r, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if h := r.Header; !strings.Contains(h.Get("Content-Security-Policy"), want) ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for host, want := range map[string]int{"127.0.0.1:1": 200, "localhost": 200, "[::1]:80": 200, "evil.example": 421,
		"evil.example:80": 421, "10.0.0.1": 421, "localhost.evil.example": 421} {
		r, _ := http.NewRequest(http.MethodGet, srv.URL+"/api/runs", nil)
		r.Host = host
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("host %s: status %d, want %d", host, a.StatusCode, want)
		}
	}
}

// fakeRun is a live run that counts queries and records actions.
type fakeRun struct {
	mu      sync.Mutex
	queries int
	did     []string
}

func (f *fakeRun) live() *LiveRun {
	return &LiveRun{Run: "one", Iterations: 100, Command: "fspda train", Status: func(since uint64) RunStatus {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.queries++
		n := uint64(10 * f.queries)
		s := RunStatus{State: "running", Memory: 1 << 20, Exchanged: n, Agents: []AgentStatus{{5, 0.5, 0.25, 0.9, 1000},
			{4, math.NaN(), math.NaN(), math.NaN(), 0}}}
		for range n - since {
			s.Exchanges = append(s.Exchanges, [2]int{0, 1})
		}
		return s
	}, Ended: func() bool { return false }, Control: func(action string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if action == "stop" {
			return fmt.Errorf("the run has ended")
		}
		f.did = append(f.did, action)
		return nil
	}}
}

// A live run is running until it ends, though its page is served on; then it is as its summary says.
func TestLiveRunEnds(t *testing.T) {
	var ended bool
	live := &LiveRun{Run: "one", Iterations: 100, Ended: func() bool { return ended }}
	s, err := NewServer(Options{Dir: twoRuns(t), Live: live})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"running", "finished"} {
		if got := s.runs.info("one", time.Now()).info.Status; got != want {
			t.Errorf("a live run that has ended: %v, has the status %q in the list, want %q", ended, got, want)
		}
		ended = true
	}
}

// Controlling a run requires the token, the content type and the same origin.
func TestControl(t *testing.T) {
	run := &fakeRun{}
	srv := newServer(t, Options{Dir: twoRuns(t), Live: run.live(), Token: "sesame"})
	steer := func(method, token, kind, body string, more ...string) int {
		r, _ := http.NewRequest(method, srv.URL+"/api/steer", strings.NewReader(body))
		if token != "" {
			r.Header.Set(TokenHeader, token)
		}
		r.Header.Set("Content-Type", kind)
		for i := 0; i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	const js, pause = "application/json", `{"run":"one","action":"pause"}`
	for name, c := range map[string]struct{ got, want int }{
		"no token":       {steer("POST", "", js, pause), 403},
		"wrong token":    {steer("POST", "sesamE", js, pause), 403},
		"a form":         {steer("POST", "sesame", "application/x-www-form-urlencoded", pause), 415},
		"a plain text":   {steer("POST", "sesame", "text/plain", pause), 415},
		"get":            {steer("GET", "sesame", js, pause), 405},
		"another site":   {steer("POST", "sesame", js, pause, "Sec-Fetch-Site", "cross-site"), 403},
		"another origin": {steer("POST", "sesame", js, pause, "Origin", "http://evil.example"), 403},
		"another run":    {steer("POST", "sesame", js, `{"run":"two","action":"pause"}`), 400},
		"no such action": {steer("POST", "sesame", js, `{"run":"one","action":"rm"}`), 400},
		"not JSON":       {steer("POST", "sesame", js, "pause"), 400},
		"too long":       {steer("POST", "sesame", js, `{"run":"`+strings.Repeat("x", 1<<16)), 400},
		"refused":        {steer("POST", "sesame", js, `{"run":"one","action":"stop"}`), 409},
		"preflight": {steer("OPTIONS", "", js, "", "Origin", "http://evil.example",
			"Access-Control-Request-Method", "POST"), 405},
		"of the same page": {steer("POST", "sesame", js, `{"run":"one","action":"checkpoint"}`, "Origin", srv.URL,
			"Sec-Fetch-Site", "same-origin"), 204},
	} {
		if c.got != c.want {
			t.Errorf("%s: status %d, want %d", name, c.got, c.want)
		}
	}
	if got := strings.Join(run.did, " "); got != "checkpoint" {
		t.Errorf("the run received the actions %s", got)
	}
	for name, opt := range map[string]Options{"no run": {Dir: t.TempDir(), Token: "sesame"},
		"no token": {Dir: t.TempDir(), Live: run.live()}} {
		r, err := http.Post(newServer(t, opt).URL+"/api/steer", js, strings.NewReader(pause))
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", name, r.StatusCode)
		}
	}
}

func TestNewServerWithoutFolder(t *testing.T) {
	if _, err := NewServer(Options{Dir: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}

// For any request the server responds without a server error, without the secret, and without an
// action.
func FuzzServer(f *testing.F) {
	dir := twoRuns(f)
	run := &fakeRun{}
	s, err := NewServer(Options{Dir: dir, Live: run.live(), Token: NewToken(), Loopback: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	for _, seed := range []string{"/", "/files/one/config.yaml", "/files/../../secret.yaml", "/api/run?run=one",
		"/api/run?run=%00", "/api/steer", "/assets/page.js", "//", "/files/one/..%5c..%5csecret.yaml"} {
		f.Add("GET", seed, "127.0.0.1", "")
		f.Add("POST", seed, "localhost", `{"run":"one","action":"stop"}`)
	}
	f.Fuzz(func(t *testing.T, method, target, host, body string) {
		r, err := http.NewRequest(method, "http://x", strings.NewReader(body))
		if err != nil {
			return
		}
		u, err := r.URL.Parse(target)
		if err != nil {
			return
		}
		if strings.HasPrefix(u.Path, "/api/events") {
			return // event streams do not end
		}
		r.URL, r.Host = u, host
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if strings.Contains(w.Body.String(), "classified") || w.Code < 200 || w.Code >= 500 {
			t.Errorf("%s %q: status %d, %q", method, target, w.Code, w.Body)
		}
		if len(run.did) > 0 {
			t.Errorf("%s %q: the run received the actions %v", method, target, run.did)
		}
	})
}

func TestStaleAfter(t *testing.T) {
	dir := twoRuns(t)
	root, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	l := &runList{root: root}
	// The rows of the test are 200/350 s apart, so the minimum of 30 s applies.
	if d := l.staleAfter("one"); d != 30*time.Second {
		t.Errorf("staleAfter is %v, want 30s", d)
	}
	slow := line(t, map[string]any{"iteration": 0, "wall_s": 100}) + line(t, map[string]any{"iteration": 1,
		"wall_s": 700})
	if err := os.WriteFile(filepath.Join(dir, "figure 1/storm/metrics.jsonl"), []byte(slow), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := l.staleAfter("figure 1/storm"); d != 30*time.Minute {
		t.Errorf("staleAfter is %v, want 3 × 10 min", d)
	}
	// The lock of a run cannot be tried where it is no file, as it cannot by another user.
	if err := os.Mkdir(filepath.Join(dir, "figure 1/storm", lockfile.Name), 0o755); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(29 * time.Minute)
	if s := l.info("figure 1/storm", later).info.Status; s != "running" {
		t.Errorf("after 29 minutes the run is %s", s)
	}
	if s := l.info("figure 1/storm", later.Add(2*time.Minute)).info.Status; s != "stopped" {
		t.Errorf("after 31 minutes the run is %s", s)
	}
}
