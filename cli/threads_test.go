package cli

import (
	"path/filepath"
	"testing"

	"fspda/train"
)

// However many cores an agent computes on, the metrics are the same: here one, one and three, with
// layers large enough to be divided.
func TestThreadsChangeNoMetric(t *testing.T) {
	dir, want := t.TempDir(), ""
	for _, threads := range []string{"1", "2", "6"} {
		out := filepath.Join(dir, threads)
		args := quick("--out", out, "--quiet", "--agents", "2", "--threads", threads, "--batch", "200", "--hidden",
			"64", "--data-train", "800")
		if status, _, stderr := call(t, args...); status != 0 || stderr != "" {
			t.Fatalf("exit status %d, %s", status, stderr)
		}
		got := metricRows(t, out)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s threads:\n%s\nwant\n%s", threads, got, want)
		}
	}
}

// Cores are shared out among agents; nobody gets less than one.
func TestAgentThreads(t *testing.T) {
	for _, c := range []struct{ threads, agents, want int }{{1, 10, 1}, {8, 10, 1}, {8, 8, 1}, {8, 4, 2}, {8, 3, 2},
		{8, 1, 8}} {
		if got := agentThreads(train.Config{Threads: c.threads, Agents: c.agents}); got != c.want {
			t.Errorf("%d threads for %d agents: %d each, want %d", c.threads, c.agents, got, c.want)
		}
	}
	if got := agentThreads(train.Config{Agents: 1}); got < 1 {
		t.Errorf("%d of all cores", got)
	}
}
