package main

import (
	"path/filepath"
	"testing"
)

// A residual network is chosen by its name and trains like any other.
func TestTrainResNet(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, _, stderr := call(t, "train", "--quiet", "--model", "resnet20", "--agents", "2", "--data-train", "20", "--data-test", "10",
		"--batch", "2", "--iterations", "3", "--eval-points", "1", "--partition", "shuffled", "--alpha", "0.01", "--out", dir)
	if status != 0 {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
