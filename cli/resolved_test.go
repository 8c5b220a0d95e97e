//go:build !windows

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fspda/train"
)

// A run with auto, one with the values that auto resolves to, and one that was interrupted and goes
// on by the configuration in its folder have the same bits, whatever the method. The weight decay
// is large, so that a second one shows. FSPDA_LONG=1 runs and interrupts every method, else it runs
// every second and interrupts every sixth: TestTableResumes in package train interrupts them all.
func TestAutoIsWhatItResolvesTo(t *testing.T) {
	for i, name := range train.Algorithms() {
		if i%2 > 0 && os.Getenv("FSPDA_LONG") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, iterations, every := t.TempDir(), 16, "0"
			resumes := i%6 == 0 || os.Getenv("FSPDA_LONG") != ""
			if resumes {
				every = "0.001"
			}
			if resumes && strings.HasPrefix(name, "fspda-async") {
				iterations = 600 // they write their checkpoints less often
			}
			given, resolved := filepath.Join(dir, "auto"), filepath.Join(dir, "resolved")
			run := func(args ...string) {
				t.Helper()
				args = append([]string{"train", "--quiet", "--threads", "1"}, args...)
				if status, _, stderr := call(t, args...); status != 0 {
					t.Fatalf("%q: status %d\n%s", args, status, stderr)
				}
			}
			// Checkpoints depend on the clock: a run on a busy machine may end before its first one.
			for ; ; iterations *= 4 {
				run("--algo", name, "--alpha", "0.02", "--weight-decay", "0.3", "--data-train", "200",
					"--data-test", "50", "--hidden", "4", "--agents", "4", "--batch", "8",
					"--iterations", strconv.Itoa(iterations), "--eval-points", "2",
					"--checkpoint-every", every, "--keep-checkpoints", "100", "--out", given)
				if !resumes || len(checkpoints(t, given)) > 1 {
					break
				}
				if err := os.RemoveAll(given); err != nil || iterations > 1e5 {
					t.Fatalf("%d iterations without a checkpoint before the end, %v", iterations, err)
				}
			}
			run("-c", filepath.Join(given, "config.yaml"), "--out", resolved)
			want := trained(t, given)
			if got := trained(t, resolved); !bytes.Equal(got, want) {
				t.Error("the resolved configuration makes another run")
			}
			if !resumes {
				return
			}
			forget(t, given)
			run("--resume", "--out", given)
			if got := trained(t, given); !bytes.Equal(got, want) {
				t.Error("the resumed run is another one")
			}
		})
	}
}

// trained returns what a run has computed: its rows without times of the clock, and the vectors of
// its last checkpoint.
func trained(t *testing.T, dir string) []byte {
	t.Helper()
	all := checkpoints(t, dir)
	vectors, err := os.ReadFile(filepath.Join(all[len(all)-1], "agents.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(metricRows(t, dir)), vectors...)
}

// checkpoints lists the checkpoints of a run, the oldest first.
func checkpoints(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "checkpoints", "iter-*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("checkpoints of %s: %q, %v", dir, all, err)
	}
	return all
}

// forget takes a run back to its first checkpoint.
func forget(t *testing.T, dir string) {
	t.Helper()
	all := checkpoints(t, dir)
	if len(all) < 2 {
		t.Fatalf("%s has no checkpoint before its end", dir)
	}
	for _, c := range all[1:] {
		if err := os.RemoveAll(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "summary.json")); err != nil {
		t.Fatal(err)
	}
}
