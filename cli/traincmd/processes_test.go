//go:build unix

package traincmd

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/cli/command"
)

// Each agent has its own metrics address: the port grows with its rank.
func TestMetricsAddress(t *testing.T) {
	for _, c := range []struct {
		address string
		rank    int
		want    string
	}{{"", 3, ""}, {"127.0.0.1:9100", 0, "127.0.0.1:9100"}, {"127.0.0.1:9100", 3, "127.0.0.1:9103"}, {"[::1]:0", 3,
		"[::1]:0"}} {
		if got, err := metricsAddress(c.address, c.rank); err != nil || got != c.want {
			t.Errorf("%q for agent %d: %q, %v", c.address, c.rank, got, err)
		}
	}
	for _, bad := range []string{"9100", "127.0.0.1:65534", "127.0.0.1:-1", "127.0.0.1:x"} {
		if got, err := metricsAddress(bad, 3); err == nil {
			t.Errorf("%s was taken for %s", bad, got)
		}
	}
}

// The error of an agent's process ends the command with the status of that process.
func TestProcessErrorKeepsStatus(t *testing.T) {
	if got := command.ExitStatus(fmt.Errorf("wrapped: %w", &exitError{agent: 1, status: 7})); got != 7 {
		t.Errorf("exit status %d, want 7", got)
	}
}

// Only the restarts of the last hour count.
func TestDied(t *testing.T) {
	var deaths []time.Time
	now := time.Now()
	for k, want := range []int{1, 2, 3, 3, 3} {
		if deaths = died(deaths, now.Add(time.Duration(k)*25*time.Minute)); len(deaths) != want {
			t.Errorf("%d deaths count after the one at minute %d, want %d", len(deaths), 25*k, want)
		}
	}
}

// A run of many processes ends with the error that says what to change, whatever the others ended
// with.
func TestWorst(t *testing.T) {
	stopped := &exitError{agent: 0, status: command.ExitStopped}
	limit := &startError{5, fmt.Errorf("fork/exec: %w", syscall.EMFILE)}
	other := &startError{4, errors.New("no such program")}
	failed := &exitError{agent: 3, status: 2, said: "the port is taken"}
	for _, c := range []struct {
		errs []error
		want string
	}{
		{[]error{stopped, other, failed, limit}, "ulimit -n"},
		{[]error{stopped, failed, other}, "agent 4 cannot be started"},
		{[]error{nil, failed, stopped}, "status 2: the port is taken"},
		{[]error{stopped, stopped}, "status 130"},
		{[]error{nil, stopped}, ""},
		{[]error{stopped, &exitError{agent: 1, status: command.ExitDiskFull}}, "disk is full"},
		{[]error{stopped, &exitError{agent: 1, status: 1, killed: "signal: killed"}}, "by signal: killed"},
	} {
		err := worst(c.errs)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.errs, err, c.want)
		}
	}
}

// The end of a process is told apart: by a status, by a signal, and for lack of memory.
func TestEnded(t *testing.T) {
	for script, want := range map[string]struct {
		status int
		words  string
	}{"exit 7": {7, ""}, "kill -9 $$": {command.ExitFailed, "killed, which the system sends"},
		"kill -11 $$": {command.ExitFailed, "segmentation"}} {
		cmd := exec.Command("sh", "-c", script)
		_ = cmd.Run()
		status, killed := ended(cmd.ProcessState, false)
		if status != want.status || !strings.Contains(killed, want.words) || (killed == "") != (want.words == "") {
			t.Errorf("%s: status %d, %q", script, status, killed)
		}
		if _, killed := ended(cmd.ProcessState, true); want.words != "" && !strings.Contains(killed, "no memory left") {
			t.Errorf("%s, out of memory: %q", script, killed)
		}
	}
}

// The error of a process is the last one that the program said, or what Go's runtime said.
func TestLastError(t *testing.T) {
	thread := []string{"runtime: failed to create new OS thread (have 4 already; errno=11)",
		"runtime: may need to increase max user processes (ulimit -u)", "fatal error: newosproc"}
	for log, want := range map[string]string{
		"12:00:00 info agent\nfspda: config: batch 0":  "config: batch 0",
		strings.Join(thread, "\n") + "\n\ngoroutine 1": strings.Join(thread, "; "),
		"panic: an index": "panic: an index", "12:00:00 warn stopped": "",
	} {
		said := ""
		for line := range strings.SplitSeq(log, "\n") {
			said = lastError(said, line)
		}
		if said != want {
			t.Errorf("%q: %q, want %q", log, said, want)
		}
	}
}
