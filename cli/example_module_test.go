//go:build !windows

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example module builds by itself, its figure compares its method with two others over seeds,
// and its method computes the bits of the built-in one of the same recursion.
func TestExampleModule(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("linking one more program takes long: FSPDA_LONG=1 does")
	}
	source, err := filepath.Abs(filepath.Join("..", "examples", "quasi-global"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "mine")
	for _, args := range [][]string{{"mod", "tidy", "-diff"}, {"vet", "."}, {"build", "-o", program, "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = source
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	work := t.TempDir()
	run := func(args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir = work
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	short := []string{"--set", "iterations=40", "--set", "eval_points=4", "--set", "data_train=400", "--set",
		"data_test=100", "--set", "hidden=8"}
	out, err := run(append([]string{"figure", "-c", filepath.Join(source, "figure.yaml"), "--out", "fig"}, short...)...)
	if err != nil || strings.Count(out, "(3 seeds)") < 6 || !strings.Contains(out, "quasi-global") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"figure.html", "figure.svg", "table.csv", "mine-seed-2/report.html"} {
		if _, err := os.Stat(filepath.Join(work, "fig", name)); err != nil {
			t.Error(err)
		}
	}
	for _, args := range [][]string{{"--algo", "quasi-global", "--param", "mu=0.8"},
		{"--algo", "qg-dsgdm", "--momentum", "0.8"}} {
		args = append([]string{"train", "--data-train", "400", "--data-test", "100", "--iterations", "30", "--batch",
			"8", "--edges", "matching", "--quiet", "--out", args[1]}, args...)
		if out, err := run(args...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if out, err := run("train", "--algo", "quasi-global", "--optimizer", "adamw", "--data-train", "400", "--data-test",
		"100", "--iterations", "30", "--batch", "8", "--quiet", "--out", "adamw"); err != nil {
		t.Errorf("with AdamW: %v\n%s", err, out)
	}
	mine := withoutTimes(t, filepath.Join(work, "quasi-global"))
	theirs := withoutTimes(t, filepath.Join(work, "qg-dsgdm"))
	if mine != theirs {
		t.Errorf("the example computes\n%s\nand the built-in method\n%s", mine, theirs)
	}
	if out, err := run("train", "--algo", "quasi-global", "--param", "mu=1"); err == nil ||
		!strings.Contains(out, "params.mu 1: expected a number in [0, 1): share of the momentum that is kept") {
		t.Errorf("%v\n%s", err, out)
	}
}
