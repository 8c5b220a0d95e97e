//go:build !windows

package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/selftest"
)

// The CPU engine, which is the reference of the self-test, passes it. The whole contract takes
// seconds and is part of cpu's own tests.
func TestSelftest(t *testing.T) {
	args := []string{"selftest", "--device", "cpu"}
	if os.Getenv("FSPDA_LONG") == "" {
		args = append(args, "--only", "contract/dot,contract/kernel/relu,kernels,mlp by,algorithms,training,memory")
	}
	status, stdout, stderr := call(t, args...)
	if status != 0 || strings.Contains(stdout, "FAILED") {
		t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
	}
	for _, line := range []string{"contract/dot ", "kernels/casts/loss scale ", "networks/mlp by the CPU ",
		"algorithms/fspda-sa ", "training ", "memory/of vectors "} {
		if !strings.Contains(stdout, "\n"+line) {
			t.Errorf("no line for %q:\n%s", line, stdout)
		}
	}
}

// With other precisions kernels have no error bounds, but vector operations do.
func TestSelftestOfOtherPrecision(t *testing.T) {
	status, stdout, stderr := call(t, "selftest", "--device", "cpu", "--precision", "tf32", "--only",
		"contract/dot,contract/kernel/linear,mlp by", "--json")
	var r selftest.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || status != 0 {
		t.Fatalf("exit status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	for _, c := range r.Results {
		want := "ok"
		if strings.Contains(c.Name, "kernel/") {
			want = "left out"
		}
		if c.Verdict != want {
			t.Errorf("%+v, want %s", c, want)
		}
	}
	for _, flag := range []string{"--only", "--after"} {
		status, _, stderr := call(t, "selftest", "--device", "cpu", flag, "nothing")
		if status != command.ExitBadInput || !strings.Contains(stderr, flag+` "nothing"`) {
			t.Errorf("exit status %d, %s", status, stderr)
		}
	}
}
