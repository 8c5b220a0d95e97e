//go:build !windows

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/bench/acceptance"
	"fspda/cli/command"
)

// The whole command runs on the CPU, in processes as on a GPU. With FSPDA_LONG=1 it runs in full,
// with PyTorch if FSPDA_PEERS names a Python that has it.
func TestBenchCard(t *testing.T) {
	t.Setenv("FSPDA_TEST_AS_PROGRAM", "1") // for what it starts
	out := filepath.Join(t.TempDir(), "card")
	args := []string{"bench", "card", "--device", "cpu", "--tiny", "--out", out, "--python", os.Getenv("FSPDA_PEERS"),
		"--only", "selftest/fp32,curve,memory"}
	parts := 3
	if os.Getenv("FSPDA_LONG") != "" {
		args, parts = args[:len(args)-2], 16
	}
	status, stdout, stderr := call(t, args...)
	if status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
	}
	text, err := os.ReadFile(filepath.Join(out, "card.json"))
	var r acceptance.Results
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Outcomes) != parts {
		t.Fatalf("%v, %d parts\n%s", err, len(r.Outcomes), stderr)
	}
	for _, o := range r.Outcomes {
		if o.Status != acceptance.Done || o.Summary == "" {
			t.Errorf("%+v", o)
		}
	}
	for _, line := range []string{"| self-test in fp32 | 0 checks fail | 0 of 3 fail | met |", "0.0e+00 | met |",
		"could not run: the device has no memory of its own"} {
		if !strings.Contains(stdout, line) {
			t.Errorf("no line %q:\n%s", line, stdout)
		}
	}
}

// Without a GPU the command fails at once and leaves nothing behind.
func TestBenchCardWithoutGPU(t *testing.T) {
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil {
		t.Skip("this machine has a GPU")
	}
	out := filepath.Join(t.TempDir(), "card")
	status, _, stderr := call(t, "bench", "card", "--out", out)
	if status != command.ExitBadInput || !strings.Contains(stderr, "--device cpu --tiny") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("it left a folder")
	}
}
