//go:build !windows

package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"fspda/bench/measure"
	"fspda/cli/command"
)

// --model selects a residual network, which trains like any other.
func TestTrainResNet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := call(t, "train", "--quiet", "--model", "resnet20", "--agents", "2", "--data-train", "20",
		"--data-test", "10", "--batch", "2", "--iterations", "3", "--eval-points", "1", "--partition", "shuffled",
		"--alpha", "0.01", "--out", dir)
	if status != 0 {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}

// The parts of the report of a network's gradient add up, and its memory is within 5 % of the
// forecast.
func TestBenchNetwork(t *testing.T) {
	args := []string{"bench", "network", "--model", "resnet20", "--size", "32", "--classes", "10", "--batch", "16",
		"--time", "1ms"}
	status, stdout, stderr := call(t, append(args, "--json")...)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	var r measure.GradientReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Dim != 272474 || r.Batch != 16 || r.Runs < 1 || r.Fastest <= 0 || r.Fastest > r.Mean || r.FLOPs < 16*0.2e9 {
		t.Errorf("report %+v", r)
	}
	if got, want := float64(r.Allocated), float64(r.Forecast); got < 0.95*want || got > 1.05*want {
		t.Errorf("%.0f bytes taken, %.0f forecast", got, want)
	}
	share, calls := 0.0, map[string]int{}
	for _, k := range r.Kernels {
		share += k.Share
		calls[string(k.Kernel)] = k.Calls
	}
	if share < 0.5 || share > 1.001 || calls["conv"] != 21 || calls["conv-grad-x"] != 20 || calls["conv-grad-w"] != 21 {
		t.Errorf("kernels take %v of the time, and run %v times", share, calls)
	}
	if status, stdout, _ := call(t, args...); status != 0 || !strings.Contains(stdout, "images") ||
		!strings.Contains(stdout, "conv-grad-w") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
	for _, bad := range [][]string{{"--batch", "0"}, {"--model", "resnet21"}, {"--time", "0s"}, {"--size", "-1"}} {
		if status, _, stderr := call(t, append(args, bad...)...); status != command.ExitBadInput {
			t.Errorf("%v: exit status %d, %s", bad, status, stderr)
		}
	}
}

// The report of a language model also has a step of training, measured in between.
func TestBenchNetworkStep(t *testing.T) {
	for _, optimizer := range []string{"auto", "muon"} {
		status, stdout, stderr := call(t, "bench", "network", "--model", "gpt-nano", "--batch", "1", "--time", "1ms",
			"--threads", "1", "--json", "--optimizer", optimizer)
		if status != 0 {
			t.Fatalf("%s: exit status %d: %s", optimizer, status, stderr)
		}
		var r measure.GradientReport
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		if r.Runs < 1 || r.Fastest <= 0 || r.Step <= 0 {
			t.Errorf("%s: report %+v", optimizer, r)
		}
	}
	if status, _, stderr := call(t, "bench", "network", "--model", "gpt-nano", "--optimizer", "muonn"); status !=
		command.ExitBadInput {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
