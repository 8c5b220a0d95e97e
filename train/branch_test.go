package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// decaying is a small run with a decay over its last 20 iterations of 60.
func decaying() Config {
	c := small()
	c.Schedule, c.DecayLength, c.Keep = "wsd", 20, 1
	return c
}

// A finished run with a decay keeps the checkpoint at the start of the decay, and is lengthened from
// there, with the bits of a run that had this length from the start.
func TestLengthenDecay(t *testing.T) {
	c, dir := decaying(), runFolder(t)
	if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if kept := keptIn(t, dir); kept != "iter-000000040 iter-000000060" {
		t.Fatalf("kept %s", kept)
	}
	old, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	more := old
	more.Iterations = 120
	if err := more.Lengthen(old); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	first, err := inFolder(t, ctx, more, dir, Options{OnStep: func(at int) {
		if at == 70 {
			stop()
		}
	}})
	stop()
	if err != nil || first.First != 40 {
		t.Fatalf("continued from iteration %d; %v", first.First, err)
	}
	got, err := inFolder(t, context.Background(), more, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Iterations, c.EvalPoints = 120, 8
	if trace(t, got) != trace(t, play(t, c, Options{})) {
		t.Error("continued not as a run of that length")
	}
	if kept := keptIn(t, dir); kept != "decayed-iter-000000060 iter-000000100 iter-000000120" {
		t.Errorf("kept %s", kept)
	}
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints", "iter-000000100")); err != nil {
		t.Fatal(err)
	}
	old = more
	more.Iterations = 240
	if err := more.Lengthen(old); err != nil {
		t.Fatal(err)
	}
	if _, err := inFolder(t, context.Background(), more, dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "was not that of this run of 240 since iteration 101") {
		t.Errorf("without the checkpoint at the start of the decay: %v", err)
	}
}

// keptIn lists the checkpoints in a run folder.
func keptIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.Contains(e.Name(), "iter-") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

// branch makes a folder with a run that goes on from another one.
func branch(t *testing.T, from string, c Config, at int) (dir string, err error) {
	t.Helper()
	s, err := c.Resolve(labSet, labModel(t, c))
	if err != nil {
		t.Fatal(err)
	}
	b, err := OpenBranch(from, s, at)
	if err != nil {
		return "", err
	}
	defer b.Close()
	dir = runFolder(t)
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.CopyTo(f, s); err != nil {
		t.Fatal(err)
	}
	return dir, f.Close()
}

// A run that goes on from a checkpoint of another one, in a folder of its own, has the bits of a run
// that was trained from the start, whatever the first run's length and schedule were.
func TestBranch(t *testing.T) {
	stem := runFolder(t)
	if _, err := inFolder(t, context.Background(), decaying(), stem, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(c *Config){
		"shorter, linear": func(c *Config) {
			c.Iterations, c.EvalPoints, c.DecayLength, c.DecayShape = 45, 3, 5, "linear"
		},
		"longer":   func(c *Config) { c.Iterations, c.EvalPoints, c.DecayLength = 90, 6, 30 },
		"constant": func(c *Config) { *c = small() },
		"step":     func(c *Config) { *c = small(); c.Schedule, c.Milestones = "step", "40,50" },
	} {
		t.Run(name, func(t *testing.T) {
			c := decaying()
			edit(&c)
			dir, err := branch(t, stem, c, 40)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			first, err := inFolder(t, ctx, c, dir, Options{OnStep: func(at int) {
				if at == 42 {
					stop()
				}
			}})
			stop()
			if err != nil || first.First != 40 {
				t.Fatalf("from iteration %d, %v, %v", first.First, first.Status, err)
			}
			got, err := inFolder(t, context.Background(), c, dir, Options{})
			if err != nil || trace(t, got) != trace(t, play(t, c, Options{})) {
				t.Errorf("the bits of another run; %v", err)
			}
		})
	}
	for words, edit := range map[string]func(c *Config) (at int){
		"has no checkpoint at iteration 30":     func(*Config) int { return 30 },
		"of this run of 60 since iteration 4":   func(c *Config) int { *c = small(); return 60 },
		"than this run: seed (1 there, 2 here)": func(c *Config) int { c.Seed = 2; return 40 },
		"does not hold the 4 rows before":       func(c *Config) int { c.Iterations, c.EvalPoints = 60, 5; return 40 },
	} {
		c := decaying()
		at := edit(&c)
		if _, err := branch(t, stem, c, at); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}
