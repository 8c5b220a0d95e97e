package train

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/internal/rng"
)

var wall = regexp.MustCompile(`"wall_s":[^,}]*`)

// metrics is metrics.jsonl without its timing column.
func metrics(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return wall.ReplaceAllString(string(text), "")
}

// A run that is stopped at random points, again and again, and resumed gives the bits of one that was not.
func TestResume(t *testing.T) {
	for _, edit := range []func(*Config){
		func(*Config) {},
		func(c *Config) { c.Momentum, c.Schedule, c.Warmup = 0.5, "cosine", 1 },
		func(c *Config) { c.Algo, c.Momentum = "dsgd", 0.9 },
		func(c *Config) { c.Algo = "sgd" },
	} {
		c := small()
		edit(&c)
		c.EvalPoints = 12
		whole, part := runFolder(t), runFolder(t)
		want, err := inFolder(t, context.Background(), c, whole, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := rng.New(1, "stops")
		var got *Result
		stops := 0
		for {
			ctx, stop := context.WithCancel(context.Background())
			at := -1
			if stops < 5 {
				at = s.IntN(c.Iterations)
			}
			got, err = inFolder(t, ctx, c, part, Options{OnStep: stopper(at, stop)})
			stop()
			if err != nil {
				t.Fatal(err)
			}
			if got.Status == Finished {
				break
			}
			if got.Status != Stopped || got.Models != nil {
				t.Fatalf("status %s", got.Status)
			}
			stops++
		}
		if stops == 0 {
			t.Fatal("the run was never stopped")
		}
		if trace(t, got) != trace(t, want) {
			t.Errorf("%s: stopped %d times, another result", c.Algo, stops)
		}
		if metrics(t, part) != metrics(t, whole) {
			t.Errorf("%s: metrics.jsonl differs", c.Algo)
		}
		if lines := strings.Count(metrics(t, part), "\n"); lines != 13 {
			t.Errorf("%d rows", lines)
		}
	}
}

// A kill leaves rows that are newer than the checkpoint, perhaps half a line: they are made again.
func TestResumeAfterKill(t *testing.T) {
	c := small()
	c.EvalPoints = 12
	whole, part := runFolder(t), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	stopAt(t, c, part, 20)
	f, err := os.OpenFile(filepath.Join(part, "metrics.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"iteration":55,"epoch":1}` + "\n" + `{"iteration":60,"epo`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.MkdirAll(filepath.Join(part, "checkpoints", ".writing"), 0o755); err != nil { // a kill while checkpointing
		t.Fatal(err)
	}
	if _, err := inFolder(t, context.Background(), c, part, Options{}); err != nil {
		t.Fatal(err)
	}
	if metrics(t, part) != metrics(t, whole) {
		t.Error("metrics.jsonl differs")
	}
}

// stopAt runs c in dir until agent 0 reaches an iteration, and leaves a checkpoint.
func stopAt(t *testing.T, c Config, dir string, at int) *Result {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := inFolder(t, ctx, c, dir, Options{OnStep: stopper(at, stop)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != Stopped {
		t.Fatalf("status %s", r.Status)
	}
	return r
}

// stopper stops a run when agent 0 is at an iteration, and holds that agent up a little: the signal needs a moment to arrive, and so
// small a run would be over by then.
func stopper(at int, stop func()) func(int) {
	return func(it int) {
		if it == at {
			stop()
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func newestCheckpoint(t *testing.T, dir string) string {
	t.Helper()
	names, err := listCheckpoints(filepath.Join(dir, "checkpoints"))
	if err != nil || len(names) == 0 {
		t.Fatalf("checkpoints %v, %v", names, err)
	}
	return filepath.Join(dir, "checkpoints", names[len(names)-1])
}

// Every kind of damage to a checkpoint is named, and nothing is changed.
func TestDamagedCheckpoint(t *testing.T) {
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, ck string) {
			path := filepath.Join(ck, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace := func(old, with string) func(*testing.T, string) {
		return edit(manifestFile, func(b []byte) []byte { return []byte(strings.Replace(string(b), old, with, 1)) })
	}
	for _, c := range []struct {
		name   string
		damage func(*testing.T, string)
		want   string
	}{
		{"bit flipped", edit(vectorsFile, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), "checksum"},
		{"vectors cut off", edit(vectorsFile, func(b []byte) []byte { return b[:len(b)-100] }), "bytes"},
		{"vectors gone", func(t *testing.T, ck string) { os.Remove(filepath.Join(ck, vectorsFile)) }, "vectors cannot be read"},
		{"manifest cut off", edit(manifestFile, func(b []byte) []byte { return b[:len(b)/2] }), "not JSON"},
		{"manifest gone", func(t *testing.T, ck string) { os.Remove(filepath.Join(ck, manifestFile)) }, "manifest cannot be read"},
		{"other version", replace(`"rng_version": 1`, `"rng_version": 7`), "version"},
		{"other config", replace(`"config_fingerprint": "`, `"config_fingerprint": "00`), "another configuration"},
		{"other data", replace(`"data_fingerprint": "`, `"data_fingerprint": "00`), "other data"},
		{"agents lost", replace(`"agents": 5`, `"agents": 6`), "contradicts"},
		{"beyond the end", replace(`"iteration": `, `"iteration": 99999`), "iteration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, dir := small(), runFolder(t)
			stopAt(t, cfg, dir, 20)
			before := metrics(t, dir)
			c.damage(t, newestCheckpoint(t, dir))
			_, err := inFolder(t, context.Background(), cfg, dir, Options{})
			var ce *CheckpointError
			if !errors.As(err, &ce) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "iter-") {
				t.Fatalf("error %v, want one about %q", err, c.want)
			}
			if metrics(t, dir) != before {
				t.Error("the metrics were touched")
			}
		})
	}
}

// fullDisk is a disk on which files of more than limit bytes find no room.
type fullDisk struct {
	disk
	limit int64
}

func (d fullDisk) WriteFile(path string, write func(io.Writer) error) (int64, error) {
	return d.disk.WriteFile(path, func(w io.Writer) error { return write(&stingy{w, d.limit}) })
}

type stingy struct {
	w    io.Writer
	left int64
}

func (s *stingy) Write(p []byte) (int, error) {
	if int64(len(p)) > s.left {
		n, _ := s.w.Write(p[:s.left])
		s.left = 0
		return n, syscall.ENOSPC
	}
	s.left -= int64(len(p))
	return s.w.Write(p)
}

// A disk that is full while checkpointing ends the run with a clear error; the previous checkpoint survives and the run goes on from it.
func TestFullDisk(t *testing.T) {
	c, dir, whole := small(), runFolder(t), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	stopAt(t, c, dir, 20)
	before := newestCheckpoint(t, dir)
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	f.fs = fullDisk{osDisk{}, 10000} // the metrics fit, the vectors do not
	_, err = Run(context.Background(), s, Options{Device: cpuDevice, Model: m, Folder: f})
	var ce *CheckpointError
	if !errors.As(err, &ce) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "--resume") {
		t.Fatalf("error %v", err)
	}
	if got := newestCheckpoint(t, dir); got != before {
		t.Errorf("the newest checkpoint is %s, was %s", got, before)
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "checkpoints")); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if metrics(t, dir) != metrics(t, whole) {
		t.Error("the run that went on differs")
	}
}

// Old checkpoints go, the newest two stay.
func TestPrune(t *testing.T) {
	c, dir := small(), runFolder(t)
	for _, at := range []int{10, 20, 30, 40} {
		stopAt(t, c, dir, at)
	}
	names, err := listCheckpoints(filepath.Join(dir, "checkpoints"))
	if err != nil || len(names) != keepCheckpoints {
		t.Errorf("%v, %v", names, err)
	}
}

func TestFolderRefusals(t *testing.T) {
	c, dir := small(), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	s, _ := resolve(t, c)
	other := c
	other.Alpha, other.Seed = 0.2, 5
	so, _ := resolve(t, other)
	busy := t.TempDir()
	if err := os.WriteFile(filepath.Join(busy, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		setup  *Setup
		resume bool
		want   string
	}{
		{dir, s, false, "already holds this run"},
		{dir, so, true, "alpha (0.3 there, 0.2 here), seed (1 there, 5 here)"},
		{dir, so, false, "another configuration"},
		{busy, s, false, "not empty"},
		{filepath.Join(busy, "new"), s, true, "no run to resume"},
		{filepath.Join(busy, "thesis.txt"), s, false, "cannot"},
	} {
		_, err := OpenFolder(c.path, c.setup, c.resume)
		var fe *FolderError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", c.path, err, c.want)
		}
	}
	if entries, _ := os.ReadDir(busy); len(entries) != 1 {
		t.Errorf("a refusal left something behind: %v", entries)
	}
	held, err := OpenFolder(dir, s, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir, s, true); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("two at once in one folder: %v", err)
	}
	if err := held.close(); err != nil {
		t.Fatal(err)
	}
	harmless := c
	harmless.Threads, harmless.Checkpoint, harmless.Accounting = 1, 5, "packed"
	sh, _ := resolve(t, harmless)
	if _, err := OpenFolder(dir, sh, true); err != nil {
		t.Errorf("a harmless difference was refused: %v", err)
	}
}
