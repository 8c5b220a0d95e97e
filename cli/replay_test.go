//go:build !windows

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cli/command"
)

// The experiments of other papers: a list, one that is exact, and a short part of one that trains,
// which says that it is partial and what all of it takes.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	status, stdout, _ := call(t, "replay", "list")
	if status != 0 || !strings.Contains(stdout, "base-graph:") || !strings.Contains(stdout, "relaysgd:") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	status, stdout, _ = call(t, "replay", "base-graph", "--out", filepath.Join(dir, "base"))
	if status != 0 || !strings.Contains(stdout, "| 25 | 1 | 9 | 9 | +0 |") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "base", "paper.md")); err != nil || string(text) != stdout {
		t.Errorf("paper.md: %v\n%s", err, text)
	}
	qg := []string{"replay", "qg", "--scale", "0.0005", "--only", "dsgd-1,choco-1,sa-1", "--eval-points", "2", "--out",
		filepath.Join(dir, "qg"), "--data", "synthetic", "--set", "data_train=400", "--set", "data_test=50", "--set",
		"model=mlp", "--set", "hidden=4", "--set", "batch=8", "--set", "partition=dirichlet(1)"}
	status, stdout, stderr := call(t, qg...)
	if status != 0 || !strings.Contains(stdout, "| DSGD, Dirichlet 1 | 88.88 |") ||
		!strings.Contains(stdout, "(partial)") || !strings.Contains(stdout, "model=mlp") ||
		!strings.Contains(stdout, "Quasi-Global Momentum, ICML 2021") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	if status, _, stderr := call(t, qg...); status != 0 || strings.Count(stderr, "already done") != 3 {
		t.Errorf("again: status %d\n%s", status, stderr)
	}
	for _, c := range [][]string{{"replay", "base-graph", "--seed", "2"}, {"replay", "nothing"},
		{"replay", "qg", "--jobs", "0"}, {"theory", "nothing"}, {"theory", "iterations", "--seeds", "1"}} {
		if status, _, stderr := call(t, c...); status != command.ExitBadInput || stderr == "" {
			t.Errorf("%q: status %d\n%s", c, status, stderr)
		}
	}
}

// The studies of the theory are listed. One of them fits its slopes, and continues with what it
// has.
func TestTheory(t *testing.T) {
	status, stdout, _ := call(t, "theory", "list")
	if status != 0 || strings.Count(stdout, "\n   ") < 6 {
		t.Errorf("status %d\n%s", status, stdout)
	}
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("the study takes 10 s: FSPDA_LONG=1")
	}
	dir := t.TempDir()
	status, stdout, stderr := call(t, "theory", "iterations", "--seeds", "2", "--out", dir)
	if status != 0 || !strings.Contains(stdout, "| iterations | FSPDA-SA, 8 agents | -0.4") &&
		!strings.Contains(stdout, "| iterations | FSPDA-SA, 8 agents | -0.5") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	if status, _, stderr := call(t, "theory", "iterations", "--seeds", "2", "--out", dir); status != 0 || stderr != "" {
		t.Errorf("again: status %d\n%s", status, stderr)
	}
	for _, name := range []string{"iterations.svg", "iterations.png", "theory.md", "theory.csv"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
