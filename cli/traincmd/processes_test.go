package traincmd

import (
	"fmt"
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
