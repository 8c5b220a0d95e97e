package train

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A finished run that is continued beyond its end has the bits of a run that had this length from the
// start, in its rows and its models; also if it is stopped on the way, and also by epochs.
func TestLengthen(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"sa":    func(*Config) {},
		"storm": func(c *Config) { c.Algo = "fspda-storm" },
		"momentum": func(c *Config) {
			c.Algo, c.Edges, c.Momentum, c.Density, c.Mask = "dsgd", "matching", 0.9, 1,
				"all"
		},
		"epochs": func(c *Config) { c.Iterations, c.Epochs = Default().Iterations, 6 },
		"eval_epochs": func(c *Config) {
			c.Iterations, c.Epochs, c.EvalEpochs, c.EvalPoints = Default().Iterations, 6, 2, Default().EvalPoints
		},
	} {
		c := small()
		change(&c)
		long := c
		long.Iterations = c.Iterations * 3 / 2
		if c.Epochs > 0 {
			long.Iterations, long.Epochs = c.Iterations, 10
			if c.EvalEpochs == 0 {
				c.EvalPoints, long.EvalPoints = 3, 5
			}
		} else {
			long.EvalPoints = c.EvalPoints * 3 / 2
		}
		want := play(t, long, Options{})
		dir := runFolder(t)
		if _, err := inFolder(t, context.Background(), c, dir, Options{}); err != nil {
			t.Fatal(err)
		}
		more, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		old := more
		if more.Epochs > 0 {
			more.Epochs = long.Epochs
		} else {
			more.Iterations = long.Iterations
		}
		if err := more.Lengthen(old); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx, stop := context.WithCancel(context.Background())
		first, err := inFolder(t, ctx, more, dir, Options{OnStep: func(at int) {
			if at >= want.Iteration-10 {
				stop()
			}
		}})
		stop()
		if err != nil || first.First == 0 {
			t.Fatalf("%s: from %d, %v", name, first.First, err)
		}
		got := first
		if first.Status == Stopped {
			if _, err := os.Stat(filepath.Join(dir, "summary.json")); err == nil {
				t.Errorf("%s: the summary of the shorter run is still there", name)
			}
			if got, err = inFolder(t, context.Background(), more, dir, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if trace(t, got) != trace(t, want) {
			t.Errorf("%s: continued to %d, not as a run of that length", name, got.Iteration)
		}
	}
}

// finished makes a small run with a change, and returns its configuration, that of its folder, and
// the folder.
func finished(t *testing.T, change func(c *Config)) (run, old Config, dir string) {
	run, dir = small(), runFolder(t)
	change(&run)
	if _, err := inFolder(t, context.Background(), run, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	old, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run, old, dir
}

// A run is lengthened also if its last two evaluations were one, or if eval_points was above its
// iterations. At 5 iterations an epoch, the evaluation after 4.5 epochs, 22.5 iterations, is at 23.
func TestLengthenOddEvaluations(t *testing.T) {
	for name, c := range map[string]struct {
		change, longer func(c *Config)
		points         int // eval_points that a run of the longer length needs
	}{
		"rounded up to the end": {
			func(c *Config) { c.Iterations, c.EvalEpochs, c.EvalPoints = 23, 1.5, Default().EvalPoints },
			func(c *Config) { c.Iterations = 46 }, 7},
		"every iteration, the default": {func(c *Config) { c.Iterations, c.EvalPoints = 10, 20 },
			func(c *Config) { c.Iterations = 40 }, 40},
		"every iteration, as many as the longer": {func(c *Config) { c.Iterations, c.EvalPoints = 10, 30 },
			func(c *Config) { c.Iterations = 30 }, 30},
	} {
		run, old, dir := finished(t, c.change)
		more := old
		c.longer(&more)
		if err := more.Lengthen(old); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := inFolder(t, context.Background(), more, dir, Options{})
		if err != nil || got.First != run.Iterations {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		c.longer(&run)
		run.EvalPoints = c.points
		if trace(t, got) != trace(t, play(t, run, Options{})) {
			t.Errorf("%s: continued not as a run of that length", name)
		}
	}
}

// What would not begin as the shorter run did is refused, with the reason.
func TestLengthenRefuses(t *testing.T) {
	cosine := func(c *Config) { c.Schedule, c.Warmup = "cosine", 1 }
	for _, c := range []struct {
		change, longer func(c *Config)
		words          string
	}{
		{func(*Config) {}, func(c *Config) { c.Iterations = 70 }, "use a multiple of 15"},
		{func(*Config) {}, func(c *Config) { c.Iterations = 30 }, "cannot become shorter"},
		{func(*Config) {}, func(c *Config) { c.Epochs = 30 }, "given by iterations 60"},
		{func(*Config) {}, func(c *Config) { c.Iterations, c.EvalPoints = 120, 9 }, "evaluation 1 would be at " +
			"iteration 13"},
		{func(*Config) {}, func(c *Config) { c.Iterations, c.Alpha = 120, 0.9 }, "another configuration"},
		{cosine, func(c *Config) { c.Iterations = 120 }, "other step sizes from the start"},
		{func(c *Config) { c.Algo, c.Edges = "fspda-async", "auto" }, func(c *Config) { c.Iterations = 120 },
			"ended at different times"},
		{func(c *Config) { c.Iterations, c.Epochs = Default().Iterations, 6 }, func(c *Config) { c.Iterations = 120 },
			"given by epochs 6"},
		{func(c *Config) { c.Iterations, c.EvalPoints = 10, 50 }, func(c *Config) { c.Iterations = 30 },
			"checkpoint at iteration 10 is of a run with epochs 0 and eval_points 50"},
		{func(c *Config) {
			c.Iterations, c.Epochs, c.EvalEpochs, c.EvalPoints = Default().Iterations, 4.61, 1.5, Default().EvalPoints
		},
			func(c *Config) { c.Epochs = 9 }, "use a multiple of 4.61 epochs"},
	} {
		_, old, dir := finished(t, c.change)
		more := old
		c.longer(&more)
		err := more.Lengthen(old)
		if err == nil {
			_, err = inFolder(t, context.Background(), more, dir, Options{})
		}
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%v, want %q", err, c.words)
		}
		if _, err := os.Stat(filepath.Join(dir, "summary.json")); err != nil {
			t.Errorf("%s: the run has no summary any more: %v", c.words, err)
		}
	}
	dir := runFolder(t)
	if _, err := inFolder(t, context.Background(), small(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	longer := small()
	longer.Iterations, longer.EvalPoints = 120, 8
	_, err := inFolder(t, context.Background(), longer, dir, Options{})
	if _, gone := os.Stat(filepath.Join(dir, "summary.json")); gone != nil || err == nil ||
		!strings.Contains(err.Error(), "without a checkpoint") {
		t.Errorf("without a checkpoint: %v, %v", err, gone)
	}
	dir = runFolder(t)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := inFolder(t, ctx, small(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	more := small()
	more.Iterations, more.EvalPoints = 120, 8
	if _, err := inFolder(t, context.Background(), more, dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "has not reached its end") {
		t.Errorf("error %v", err)
	}
}
