//go:build !windows

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"fspda/internal/testing/realdata"
	"fspda/train"
)

// mnistFolder returns the folder of the real MNIST files.
func mnistFolder(t *testing.T) string { return realdata.Path(t, "mnist") }

func summary(t *testing.T, args ...string) train.Summary {
	t.Helper()
	status, stdout, stderr := call(t, append(args, "--json", "--out", filepath.Join(t.TempDir(), "run"))...)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	var s train.Summary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// On real MNIST, sorted so that each agent has almost one class, FSPDA-SA over one edge at a time
// learns what DSGD with the same bits does not: at least 88 %, and three points more than DSGD.
func TestRealMNIST(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: minutes long; set FSPDA_LONG=1")
	}
	args := []string{"train", "--data", "mnist", "--data-dir", mnistFolder(t), "--partition", "sorted", "--graph",
		"complete", "--edges", "one-edge", "--density", "0.1", "--activation", "relu", "--batch", "64", "--iterations",
		"20000", "--alpha", "0.03", "--momentum", "0", "--eval-points", "2"}
	sa := summary(t, append(args, "--eta", "0.0007", "--gamma", "0.5", "--beta", "1")...)
	dsgd := summary(t, append(args, "--algo", "dsgd", "--theta", "0.5")...)
	t.Logf("fspda-sa %.4f, dsgd %.4f", float64(sa.TestAccAvg), float64(dsgd.TestAccAvg))
	if sa.TestAccAvg < 0.88 || dsgd.TestAccAvg > sa.TestAccAvg-0.03 {
		t.Errorf("fspda-sa ends at %v and dsgd at %v", sa.TestAccAvg, dsgd.TestAccAvg)
	}
	if sa.BitsTotal != dsgd.BitsTotal {
		t.Errorf("the comparison is not at equal bits: %d and %d", sa.BitsTotal, dsgd.BitsTotal)
	}
	if sa.DualSum > 1e-3 {
		t.Errorf("the duals sum to %v", sa.DualSum)
	}
}

// The default job, the first command of a newcomer.
func TestMainJob(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: half a minute long; set FSPDA_LONG=1")
	}
	if s := summary(t, "train"); s.TestAccAvg < 0.9 || s.Skew < 0.25 {
		t.Errorf("accuracy %v on a split of skew %v", s.TestAccAvg, s.Skew)
	}
}
