//go:build !windows

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Methods prints the table that train --algo help does.
func TestMethodsCommand(t *testing.T) {
	status, stdout, _ := call(t, "methods")
	if _, help, _ := call(t, "train", "--algo", "help"); status != 0 || stdout != help || len(help) < 1000 {
		t.Errorf("status %d, %d bytes, and %d of train --algo help", status, len(stdout), len(help))
	}
}

// A sweep in which no run has a value fails, and prints its table all the same.
func TestSweepWithoutAValue(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "metric: bits_to(0.999)\ngrid: {alpha: [0.01, 0.02]}\nbase: {data_train: 200, data_test: 50, " +
		"hidden: [4], " +
		"agents: 3, batch: 8, iterations: 4, eval_points: 2}\n"
	if err := os.WriteFile("grid.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"--json", "--quiet"} {
		status, stdout, stderr := call(t, "sweep", "-c", "grid.yaml", more)
		if status == 0 || !strings.Contains(stderr, "no run has a value") || more == "--json" &&
			!strings.Contains(stdout, "0.01") {
			t.Errorf("%s: status %d\n%s\n%s", more, status, stdout, stderr)
		}
	}
}

// Compare shows the time of a run that was stopped up to its last row.
func TestCompareStopped(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, _, stderr := call(t, quick("--quiet", "--gradient-time", "0.01", "--out", "run")...); status != 0 {
		t.Fatal(stderr)
	}
	if err := os.Remove(filepath.Join("run", "summary.json")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("run", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var last struct {
		Wall float64 `json:"wall_s"`
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Wall < 0.3 {
		t.Fatalf("the last row was at %v s: %v", last.Wall, err)
	}
	if status, stdout, stderr := call(t, "compare", "run"); status != 0 || strings.Contains(stdout, "| 0.0 s |") {
		t.Errorf("status %d, %s\n%s", status, stdout, stderr)
	}
}
