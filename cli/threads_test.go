//go:build !windows

package cli

import (
	"path/filepath"
	"testing"
)

// The metrics do not depend on how many threads an agent has: here one, one and three, with layers
// large enough to be divided.
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
