package dist

import "time"

// Position says how far the process of an agent has come. Processes tell it to each other.
type Position struct {
	T      int    // The iteration that the agent has entered.
	Phase  Phase  // The activity of the agent.
	Awaits int    // The agent whose message it waits for, in the phase Waiting.
	Steps  uint64 // Changes with everything that the process does for the run.
}

// Phase is the activity of an agent.
type Phase uint8

// The phases of an agent.
const (
	Idle    Phase = iota // It has not begun or has ended, or its process keeps it from going on.
	Working              // It computes, waits for an evaluation of its own process, or writes to a disk.
	Waiting              // It waits for another agent.
)

// Advance is the position of an agent as another process knows it.
type Advance struct {
	Position
	Since time.Duration // The time since the agent was last seen to advance.
	Pace  time.Duration // The mean time between the advances that were seen.
}
