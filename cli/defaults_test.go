//go:build !windows

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A run whose defaults bend trains to its end and says so in a line. Its rows equal the rows of a
// resumed run, and of a run that sets the same values.
func TestBentDefaultsTrain(t *testing.T) {
	for name, c := range map[string]struct {
		args, said, same string
	}{
		"rounds":    {"--algo diloco --iterations 50", "eval_points is 5", "--eval-points 5"},
		"one round": {"--algo kgt --iterations 7", "local_steps is 7", "--local-steps 7 --eval-points 1"},
		"warm-up":   {"--schedule cosine --epochs 3", "warmup is 0.3", "--warmup 0.3"},
		"gain":      {"--algo gasloc --edges full --iterations 20", "gamma is 0.25", "--gamma 0.25 --eval-points 2"},
		"few":       {"--data-train 30 --iterations 6", "batch is 7", "--batch 7"},
		"iterations": {"--algo local-sgd --local-steps 1499", "iterations is 2998",
			"--iterations 2998 --eval-points 2"},
	} {
		dir := t.TempDir()
		train := func(folder string, more ...string) (status int, stderr string) {
			args := append([]string{"train", "--agents", "4", "--data-test", "20", "--hidden", "3", "--out",
				filepath.Join(dir, folder)}, strings.Fields(c.args)...)
			if !strings.Contains(c.args, "--data-train") {
				args = append(args, "--data-train", "300")
			}
			status, _, stderr = call(t, append(args, more...)...)
			return status, stderr
		}
		status, stderr := train("bent")
		if status != 0 || strings.Count(stderr, c.said+": its default ") != 1 {
			t.Errorf("%s: status %d, %s", name, status, stderr)
			continue
		}
		status, stderr = train("set", strings.Fields(c.same)...)
		if status != 0 || strings.Contains(stderr, "its default ") {
			t.Errorf("%s, set: status %d, %s", name, status, stderr)
			continue
		}
		if vectors(t, filepath.Join(dir, "bent")) != vectors(t, filepath.Join(dir, "set")) {
			t.Errorf("%s: other models than with %s", name, c.same)
		}
		status, _, stderr = call(t, "train", "--resume", "--out", filepath.Join(dir, "bent"))
		if status != 0 || strings.Contains(stderr, "its default ") {
			t.Errorf("%s, resumed: status %d, %s", name, status, stderr)
		}
	}
}
