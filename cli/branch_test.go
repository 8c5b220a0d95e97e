//go:build !windows

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A run goes on from a checkpoint of another one in a folder of its own, which its configuration and
// the flags describe.
func TestFrom(t *testing.T) {
	dir := t.TempDir()
	stem, other := filepath.Join(dir, "stem"), filepath.Join(dir, "other")
	mustCall(t, quick("--schedule", "wsd", "--decay-length", "10", "--quiet", "--out", stem)...)
	_, _, stderr := call(t, "train", "--from", stem, "--at", "30", "--iterations", "50", "--decay-length", "20",
		"--out", other)
	if !strings.Contains(stderr, "resumed at iteration 30 of 50") {
		t.Errorf("it says %s", stderr)
	}
	for words, args := range map[string][]string{
		"name the run with --from": {"--at", "30"},
		"leave one of them out":    {"--from", stem, "--resume"},
		"has no checkpoint at":     {"--from", stem, "--at", "20", "--out", filepath.Join(dir, "no")},
		"alpha (0.3 there, 0.1":    {"--from", stem, "--at", "30", "--alpha", "0.1", "--out", filepath.Join(dir, "no")},
		"already holds this run":   {"--from", stem, "--at", "30", "--out", stem},
		"holds no run that can be": {"--from", filepath.Join(dir, "none")},
	} {
		if status, _, stderr := call(t, append([]string{"train"}, args...)...); status != 2 ||
			!strings.Contains(stderr, words) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}
