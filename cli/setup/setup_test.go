package setup

import (
	"fspda/train"
	"testing"
)

// Agents share the cores; each has at least one.
func TestAgentThreads(t *testing.T) {
	for _, c := range []struct{ threads, agents, want int }{{1, 10, 1}, {8, 10, 1}, {8, 8, 1}, {8, 4, 2}, {8, 3, 2},
		{8, 1, 8}} {
		if got := AgentThreads(of(c.threads, c.agents)); got != c.want {
			t.Errorf("%d threads for %d agents: %d each, want %d", c.threads, c.agents, got, c.want)
		}
	}
	if got := AgentThreads(of(0, 1)); got < 1 {
		t.Errorf("%d of all cores", got)
	}
}

// of is a configuration with so many threads and agents.
func of(threads, agents int) (c train.Config) {
	c.Threads, c.Agents = threads, agents
	return c
}
