package train

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// 400 examples over 5 agents in batches of 16 are 5 iterations an epoch.
func TestEpochs(t *testing.T) {
	c := small()
	c.Iterations, c.EvalPoints = Default().Iterations, Default().EvalPoints
	c.Epochs, c.EvalEpochs, c.Schedule, c.Warmup = 10, 3, "cosine", 2
	s, _ := resolve(t, c)
	if s.Config.Iterations != 50 || s.Config.EvalPoints != 4 {
		t.Errorf("%d iterations and %d evaluations", s.Config.Iterations, s.Config.EvalPoints)
	}
	var at []int
	for it := range 60 {
		if k := s.EvalsBefore(it); k != len(at) {
			t.Errorf("%d evaluations before %d, want %d", k, it, len(at))
		}
		if s.EvalAt(it) {
			at = append(at, it)
		}
	}
	if want := []int{0, 15, 30, 45, 50}; len(at) != len(want) || at[1] != 15 || at[3] != 45 || at[4] != 50 {
		t.Errorf("evaluated at %v, want %v", at, want)
	}
	for _, q := range []struct{ epoch, want float64 }{{1, 0.5}, {2, 1}, {6, 0.5}, {10, 0}} {
		if alpha, _ := s.Schedule.At(int(q.epoch*5) - 1); math.Abs(alpha-q.want*c.Alpha) > 1e-15 {
			t.Errorf("epoch %v: alpha %v, want %v", q.epoch, alpha, q.want*c.Alpha)
		}
	}
	again, _ := resolve(t, s.Config)
	if d := again.Config.Differences(s.Config); len(d) > 0 {
		t.Errorf("resolved again it differs: %v", d)
	}
	r := play(t, c, Options{})
	if len(r.Rows) != 5 || r.Rows[1].Epoch != 3 || r.Rows[4].Epoch != 10 {
		t.Errorf("rows %+v", r.Rows)
	}
}

// As many iterations, said in epochs, are the same run.
func TestEpochsAreIterations(t *testing.T) {
	c := small()
	c.Iterations = 50
	want := play(t, c, Options{})
	c.Iterations, c.Epochs = Default().Iterations, 10
	if trace(t, play(t, c, Options{})) != trace(t, want) {
		t.Error("10 epochs are another run than 50 iterations")
	}
}

func TestEpochsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Config)
		want []string
	}{
		"both": {func(c *Config) { c.Epochs = 10 }, []string{"iterations 60", "epochs 10", "50",
			"leave one of the two out"}},
		"both points": {func(c *Config) { c.EvalPoints, c.EvalEpochs = 7, 1 },
			[]string{"eval_points 7", "eval_epochs 1", "12"}},
		"none": {func(c *Config) { c.Iterations, c.Epochs = 3000, 0.01 },
			[]string{"epochs 0.01", "5 iterations"}},
		"too often":  {func(c *Config) { c.EvalEpochs = 0.1 }, []string{"eval_epochs 0.1", "at least 0.2"}},
		"below zero": {func(c *Config) { c.Epochs = -1 }, []string{"epochs -1"}},
		"inside a round": {func(c *Config) { c.Algo, c.LocalSteps, c.EvalPoints, c.EvalEpochs = "led", 3, 20, 1 },
			[]string{"eval_epochs 1", "rounds of 3", "iteration 5"}},
	} {
		cfg := small()
		c.edit(&cfg)
		_, err := cfg.Resolve(labSet, labModel(t, small()))
		var ce *ConfigError
		if !errors.As(err, &ce) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not mention %q", name, err, w)
			}
		}
	}
}
