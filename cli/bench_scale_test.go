//go:build !windows

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"fspda/bench/measure"
	"fspda/cli/command"
)

// bench scale measures each number of agents, and refuses numbers that do not ascend.
func TestBenchScale(t *testing.T) {
	args := []string{"bench", "scale", "--data-train", "200", "--data-test", "20", "--hidden", "4", "--batch", "8"}
	status, stdout, stderr := call(t, append(args, "--counts", "2,5", "--steps", "400", "--json")...)
	var r measure.AgentsReport
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil {
		t.Fatalf("exit status %d, %v: %s", status, err, stderr)
	}
	if len(r.Rows) != 2 || r.Rows[1].Agents != 5 || r.Rows[1].Iterations != 80 || r.Rows[1].Peak < 1<<20 ||
		r.Rows[1].Forecast < 1<<20 || r.Dim == 0 || !strings.Contains(r.String(), "MB/agent") {
		t.Errorf("%+v", r)
	}
	if status, _, stderr := call(t, append(args, "--counts", "5,2")...); status != command.ExitBadInput ||
		!strings.Contains(stderr, "ascending") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}
