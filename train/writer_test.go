package train

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"fspda/train/metric"
	"fspda/train/runfolder"
	"fspda/train/safetensors"
)

// gated is a disk on which vectors are not written before open is closed.
type gated struct {
	runfolder.Disk
	begun atomic.Bool
	open  chan struct{}
}

func (d *gated) WriteFile(path string, write func(io.Writer) error) (int64, error) {
	if filepath.Base(path) == "agents.safetensors" {
		d.begun.Store(true)
		<-d.open
	}
	return d.Disk.WriteFile(path, write)
}

// While a checkpoint is being written the agents go on, and evaluations too. What was written in
// the meantime is the state at its iteration.
func TestCheckpointInTheBackground(t *testing.T) {
	c, dir := small(), runFolder(t)
	c.Iterations, c.EvalPoints, c.Checkpoint, c.Keep = 1500, 50, 0.005, 100
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	d := &gated{Disk: runfolder.OSDisk{}, open: make(chan struct{})}
	f.Disk = d
	from, opened := 0, false
	onStep := func(it int) {
		if from == 0 && d.begun.Load() {
			from = it
		}
		if !opened && (from > 0 && it > from+400 || it == c.Iterations-1) {
			opened = true
			close(d.open)
		}
	}
	got, err := Run(context.Background(), s,
		Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true, OnStep: onStep})
	if err != nil {
		t.Fatal(err)
	}
	if from == 0 || from > c.Iterations-400 {
		t.Fatalf("no checkpoint was begun in time (%d)", from)
	}
	c.Checkpoint = 0
	if trace(t, got) != trace(t, play(t, c, Options{})) {
		t.Error("the run changed")
	}
	names, err := checkpointsOf(dir)
	if err != nil || len(names) < 2 {
		t.Fatalf("checkpoints %v, %v", names, err)
	}
	// go on from one of the middle
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints", names[len(names)-1])); err != nil {
		t.Fatal(err)
	}
	again, err := inFolder(t, context.Background(), c, dir, Options{})
	if err != nil || again.First == 0 {
		t.Fatalf("resumed at %d: %v", again.First, err)
	}
	if trace(t, again) != trace(t, got) {
		t.Error("the run from the checkpoint is another")
	}
}

// The best model is that of the best row, and says so; a better one takes its place, and a resumed
// run knows of it.
func TestBestModel(t *testing.T) {
	c, dir := withNorm(), runFolder(t)
	c.Iterations, c.EvalPoints = 40, 10
	m := newNormed(c.WeightDecay)
	s, err := c.Resolve(labSet, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadBest(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a run: %v", err)
	}
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), s, Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true})
	if err != nil {
		t.Fatal(err)
	}
	want := r.Rows[1]
	for _, row := range r.Rows[1:] {
		if row.TestAccAvg > want.TestAccAvg {
			want = row
		}
	}
	b, err := ReadBest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if b.Row.Iteration != want.Iteration || b.Row.TestAccAvg != want.TestAccAvg ||
		metric.BestAccuracy(r.Rows) != want.TestAccAvg {
		t.Errorf("the best row is %+v, want %+v", b.Row, want)
	}
	if acc, _ := scoreWith(t, m, b.Mean, b.Buffers); Num(acc) != want.TestAccAvg {
		t.Errorf("the best model has accuracy %v, its row says %v", acc, want.TestAccAvg)
	}
	path := filepath.Join(dir, "checkpoints", "best", "mean.safetensors")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"bit":   func(b []byte) []byte { b[len(b)-9] ^= 1; return b },
		"short": func(b []byte) []byte { return b[:len(b)/2] },
	} {
		if err := os.WriteFile(path, damage(slices.Clone(text)), 0o644); err != nil {
			t.Fatal(err)
		}
		var ce *CheckpointError
		if _, err := ReadBest(dir); !errors.As(err, &ce) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A disk without room for the best model ends the run as one without room for a checkpoint does.
func TestBestModelWithoutRoom(t *testing.T) {
	c, dir := small(), runFolder(t)
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	f.Disk = fullDisk{runfolder.OSDisk{}, 10000}
	_, err = Run(context.Background(), s, Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true})
	var ce *CheckpointError
	if !errors.As(err, &ce) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "best") {
		t.Errorf("error %v", err)
	}
}

// A checkpoint holds the buffers of every agent and, at the end, those of the mean model. One of a
// network without is refused.
func TestCheckpointOfBuffers(t *testing.T) {
	c, dir := withNorm(), runFolder(t)
	m := newNormed(c.WeightDecay)
	s, err := c.Resolve(labSet, m)
	if err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), s, Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true})
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(filepath.Join(newestCheckpoint(t, dir), "agents.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, want := range map[string][]float32{"agent0/buffers": r.Buffers[0], "agent4/buffers": r.Buffers[4],
		"mean/buffers": r.MeanBuffers} {
		if got, err := safetensors.Load[float32](file, name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, or other values", name, err)
		}
	}
	s.Buffers = []int{3, 3}
	if _, _, err := (&Folder{Path: dir}).OpenCheckpoint(s); err == nil ||
		!strings.Contains(err.Error(), "98 buffers") || !strings.Contains(err.Error(), "has 6") {
		t.Errorf("error %v", err)
	}
}
