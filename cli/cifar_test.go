//go:build !windows

package cli

import (
	"os"
	"testing"

	"fspda/internal/testing/realdata"
)

// Real CIFAR-10 in a few minutes, the short form of a run of twelve epochs: ResNet-20, four agents
// with data of different classes, one edge at a time that carries a tenth of the coordinates. The
// long run has 51 % at this many iterations, before its steps have become small.
func TestRealCIFAR10Long(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: minutes long; set FSPDA_LONG=1")
	}
	s := summary(t, "train", "--data", "cifar10", "--data-dir", realdata.Path(t, "cifar10-imagefolder.tar"), "--model",
		"resnet20", "--agents", "4", "--partition", "dirichlet(0.3)", "--batch", "64", "--schedule", "cosine",
		"--warmup", "0.2", "--alpha", "0.05", "--momentum", "0.9", "--algo", "fspda-sa", "--edges", "one-edge",
		"--density", "0.1", "--iterations", "400", "--eval-points", "1", "--eval-test", "500", "--eval-agents", "1")
	t.Logf("accuracy %.4f of the mean model after %d bits, consensus error %.3g", float64(s.TestAccAvg), s.BitsTotal,
		float64(s.Consensus))
	if s.TestAccAvg < 0.42 {
		t.Errorf("accuracy %v", s.TestAccAvg)
	}
	if want := uint64(400 * 2 * 32 * 27247); s.BitsTotal != want { // a tenth of 272,474, both ways
		t.Errorf("%d bits, want %d", s.BitsTotal, want)
	}
}
