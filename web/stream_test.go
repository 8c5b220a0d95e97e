package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// eventReader reads server-sent events.
type eventReader struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Scanner
}

func listenTo(t *testing.T, url string) *eventReader {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Body.Close() })
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, %v", a.StatusCode, a.Header)
	}
	in := bufio.NewScanner(a.Body)
	in.Buffer(nil, 1<<22)
	return &eventReader{t, a.Body, in}
}

// next returns the data of the next event of that name.
func (e *eventReader) next(name string) map[string]any {
	e.t.Helper()
	for e.in.Scan() {
		if e.in.Text() != "event: "+name || !e.in.Scan() {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(strings.TrimPrefix(e.in.Text(), "data: ")), &m); err != nil {
			e.t.Fatalf("%v: %s", err, e.in.Text())
		}
		return m
	}
	e.t.Fatalf("no event %s: %v", name, e.in.Err())
	return nil
}

// A client receives the existing rows, new rows, frames of the live run, and a notice of new runs.
func TestStream(t *testing.T) {
	dir := twoRuns(t)
	run := &fakeRun{}
	srv := newServer(t, Options{Dir: dir, Live: run.live()})
	e := listenTo(t, srv.URL+"/api/events?run=one&run=figure+1/storm")
	if m := e.next("rows"); m["run"] != "one" || len(m["rows"].([]any)) != 30 {
		t.Errorf("%v", m)
	}
	if m := e.next("rows"); m["run"] != "figure 1/storm" || len(m["rows"].([]any)) != 5 {
		t.Errorf("%v", m)
	}
	agents := e.next("agents")
	if l := agents["loss"].([]any); l[0] != 0.5 || l[1] != nil {
		t.Errorf("losses %v", l)
	}
	first := e.next("frame")
	if first["state"] != "running" || first["iteration"] != 4.0 || first["iterations"] != 100.0 ||
		first["exchanged"] != 10.0 || len(first["exchanges"].([]any)) != 10 {
		t.Errorf("%v", first)
	}
	if m := e.next("frame"); m["exchanged"] != 20.0 || len(m["exchanges"].([]any)) != 10 {
		t.Errorf("%v", m)
	}
	appendTo(t, filepath.Join(dir, "one", "metrics.jsonl"), line(t, map[string]any{"iteration": 1e6}))
	if m := e.next("rows"); m["fresh"] != nil || len(m["rows"].([]any)) != 1 {
		t.Errorf("%v", m)
	}
	if err := os.Mkdir(filepath.Join(dir, "three"), 0o755); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(dir, "three", "metrics.jsonl"), "")
	e.next("runs")
	if _, body := get(t, srv.URL+"/api/runs"); !strings.Contains(body, `"three"`) {
		t.Errorf("%s", body)
	}
}

// The run is queried at most ten times a second, however many clients there are.
func TestManyClientsOneQuery(t *testing.T) {
	run := &fakeRun{}
	s, err := NewServer(Options{Dir: twoRuns(t), Live: run.live()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	for k := range 1000 {
		s.snapshotter.latest(now.Add(time.Duration(k) * time.Millisecond))
	}
	if run.queries != 10 {
		t.Errorf("the run was queried %d times in a second, want 10", run.queries)
	}
}

// The number of streams is limited, and a slot is free again when a client leaves.
func TestStreamsBounded(t *testing.T) {
	s, err := NewServer(Options{Dir: twoRuns(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range maxStreams {
		s.streams <- struct{}{}
	}
	l, _, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go Serve(ctx, l, s)
	if status, _ := get(t, URL(l)+"api/events?run=one"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	<-s.streams
	listenTo(t, URL(l)+"api/events?run=one").next("rows")
	for path, want := range map[string]int{"api/events?run=none": 404, "api/events?" + strings.Repeat("run=one&",
		maxStreamRuns+1): 400} {
		if status, _ := get(t, URL(l)+path); status != want {
			t.Errorf("%s: status %d, want %d", path, status, want)
		}
	}
}

// A client that does not read is disconnected and delays nobody.
func TestSlowReader(t *testing.T) {
	run := &fakeRun{}
	s, err := NewServer(Options{Dir: twoRuns(t), Live: run.live()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server, client := net.Pipe() // unbuffered: a write waits for its reader
	defer client.Close()
	st := &stream{s: s, ctx: t.Context(), w: pipeWriter{server}, ctl: http.NewResponseController(pipeWriter{server}),
		runs: []string{"one"}, at: map[string]cursor{}, live: true}
	begin := time.Now()
	if st.sendUpdates(begin) {
		t.Error("the stream continues for a client that does not read")
	}
	if d := time.Since(begin); d > writeTimeout+time.Minute {
		t.Errorf("a slow client delayed the stream by %v", d)
	}
}

// pipeWriter writes a response into a connection.
type pipeWriter struct{ c net.Conn }

func (p pipeWriter) Header() http.Header         { return http.Header{} }
func (p pipeWriter) WriteHeader(int)             {}
func (p pipeWriter) Write(b []byte) (int, error) { return p.c.Write(b) }
func (p pipeWriter) Flush()                      {}
func (p pipeWriter) SetWriteDeadline(at time.Time) error {
	return p.c.SetWriteDeadline(at.Add(-writeTimeout + 50*time.Millisecond))
}
