//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"fspda/train"
)

// timeTo returns when a run first reached an accuracy in the column that of selects, in seconds
// since its first row; 0 if never.
func timeTo(t *testing.T, dir string, accuracy float64, of func(train.Row) train.Num) float64 {
	t.Helper()
	rows, err := train.ReadMetrics(filepath.Join(dir, "metrics.jsonl"), 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if float64(of(r)) >= accuracy {
			return float64(r.WallS) - float64(rows[0].WallS)
		}
	}
	return 0
}

// One agent of ten is six times slower: its gradient takes 0.3 s, that of the others 0.05 s. Both
// times are waits, so other work on the machine does not change them. The synchronous run waits for
// the slow agent, the asynchronous run does not, and its mean model reaches the same accuracy at
// least three times sooner. The log also compares the worst agents.
func TestAsyncIsSooner(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: two minutes long; set FSPDA_LONG=1")
	}
	dir := t.TempDir()
	args := []string{"--data", "mnist", "--data-dir", mnistFolder(t), "-n", "10", "--iterations", "300",
		"--eval-points", "30", "--metrics", "test", "--eval-test", "2000",
		"--slowness", "straggler(6)", "--gradient-time", "0.05", "--checkpoint-every", "0"}
	sync, async := filepath.Join(dir, "sync"), filepath.Join(dir, "async")
	processes(t, append(args[:len(args):len(args)], "--out", sync), func(int, int) {})
	processes(t, append(args[:len(args):len(args)], "--out", async, "--async"), func(int, int) {})
	mean := func(r train.Row) train.Num { return r.TestAccAvg }
	worst := func(r train.Row) train.Num { return r.TestAccMin }
	for _, accuracy := range []float64{0.7, 0.8, 0.85} {
		slow, soon := timeTo(t, sync, accuracy, mean), timeTo(t, async, accuracy, mean)
		t.Logf("accuracy %g of the mean model after %.1f s, asynchronous %.1f s: %.1f times sooner", accuracy, slow,
			soon, slow/soon)
		if accuracy > 0.75 && (soon == 0 || slow < 3*soon) { // earlier a second of a few decides
			t.Errorf("accuracy %g is not reached three times sooner", accuracy)
		}
		slow, soon = timeTo(t, sync, accuracy, worst), timeTo(t, async, accuracy, worst)
		t.Logf("accuracy %g of the worst agent after %.1f s, asynchronous %.1f s (0: never)", accuracy, slow, soon)
	}
}
