package web

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fspda/internal/wholefile"
)

// tailMessage is a decoded message.
type tailMessage struct {
	Run            string
	Fresh          bool
	Damaged, Every int
	Columns        []string
	Rows           [][]*float64
}

// tailClient polls a tailer, each time after the poll interval.
type tailClient struct {
	t   *testing.T
	f   *tailer
	at  cursor
	now time.Time
}

func newTail(t *testing.T, dir string) *tailClient {
	root, err := openTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &tailClient{t: t, f: &tailer{root: root, path: "metrics.jsonl"}, now: time.Now()}
}

// next returns the next message; nil if there is none.
func (l *tailClient) next() *tailMessage {
	l.t.Helper()
	l.now = l.now.Add(pollInterval)
	b, to := l.f.rows("run", l.at, l.now)
	l.at = to
	if b == nil {
		return nil
	}
	m := &tailMessage{}
	if err := json.Unmarshal(b, m); err != nil {
		l.t.Fatalf("%v: %s", err, b)
	}
	for _, row := range m.Rows {
		if len(row) != len(m.Columns) {
			l.t.Fatalf("%d numbers in %d columns", len(row), len(m.Columns))
		}
	}
	return m
}

// iterations returns the iterations of the rows of a message.
func (m *tailMessage) iterations() []float64 {
	var at []float64
	for _, r := range m.Rows {
		at = append(at, *r[0])
	}
	return at
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file is tailMessage as it grows, line by line, through rows that a resumed run makes again and
// through its replacement.
func TestTail(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	l := newTail(t, dir)
	if m := l.next(); m != nil {
		t.Errorf("without a file: %+v", m)
	}
	rows := evaluations(6)
	appendTo(t, path, jsonl(t, rows[:3]))
	if m := l.next(); m == nil || !m.Fresh || len(m.Rows) != 3 || m.Every != 1 || m.Columns[0] != "iteration" {
		t.Fatalf("%+v", m)
	}
	if m := l.next(); m != nil {
		t.Errorf("message %+v although nothing was appended", m)
	}
	text := line(t, rows[3])
	appendTo(t, path, text[:20])
	if m := l.next(); m != nil {
		t.Errorf("message %+v with an incomplete line", m)
	}
	appendTo(t, path, text[20:]+"damaged\n\n"+line(t, rows[4]))
	if m := l.next(); m == nil || m.Fresh || len(m.Rows) != 2 || m.Damaged != 1 {
		t.Fatalf("%+v", m)
	}
	appendTo(t, path, line(t, rows[2])) // the run resumed from a checkpoint
	if m := l.next(); m == nil || !m.Fresh || len(m.Rows) != 3 || m.iterations()[2] != 400 {
		t.Fatalf("%+v", m)
	}
	if err := wholefile.Publish(path, []byte(jsonl(t, rows[:2]))); err != nil {
		t.Fatal(err)
	}
	if m := l.next(); m == nil || !m.Fresh || len(m.Rows) != 2 || m.Damaged != 0 {
		t.Fatalf("%+v", m)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if m := l.next(); m == nil || !m.Fresh || len(m.Rows) != 0 {
		t.Fatalf("after truncation: %+v", m)
	}
}

// A file is read at most once per poll interval.
func TestTailPolls(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	rows := evaluations(2)
	appendTo(t, path, line(t, rows[0]))
	l := newTail(t, dir)
	l.next()
	appendTo(t, path, line(t, rows[1]))
	if b, _ := l.f.rows("run", l.at, l.now.Add(pollInterval/2)); b != nil {
		t.Error("the file was read again within the poll interval")
	}
	if l.next() == nil {
		t.Error("the file was not read again")
	}
}

// A long history is split into messages and thinned out. The first row and the order are kept.
func TestTailLong(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 3*maxFullHistory + 1 {
		b.WriteString(line(t, map[string]any{"iteration": i}))
	}
	appendTo(t, filepath.Join(dir, "metrics.jsonl"), b.String())
	l := newTail(t, dir)
	var at []float64
	for m := l.next(); m != nil; m = l.next() {
		if len(m.Rows) > maxMessageRows {
			t.Fatalf("%d rows in a message", len(m.Rows))
		}
		at = append(at, m.iterations()...)
	}
	if len(at) < maxFullHistory/2 || len(at) > 2*maxFullHistory || at[0] != 0 {
		t.Errorf("%d rows, from %v", len(at), at[0])
	}
	for i := 1; i < len(at); i++ {
		if at[i] <= at[i-1] {
			t.Fatalf("iteration %v after %v", at[i], at[i-1])
		}
	}
}

// A folder named metrics.jsonl is ignored.
func TestTailFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "metrics.jsonl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if m := newTail(t, dir).next(); m != nil {
		t.Errorf("%+v", m)
	}
}

// The least recently used tailers are dropped.
func TestTailersBounded(t *testing.T) {
	fs := &tailers{runs: map[string]*tailer{}}
	now := time.Now()
	for i := range maxTailers + 10 {
		fs.get(string(rune('a'+i)), now.Add(time.Duration(i)*time.Second))
	}
	if len(fs.runs) != maxTailers || fs.runs["a"] != nil {
		t.Errorf("%d files are kept, the first of them is %v", len(fs.runs), fs.runs["a"])
	}
}
