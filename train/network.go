package train

import (
	"context"

	"fspda/dist"
)

// Network is a Transport between the processes of a run, each with one agent. Beside the messages
// of the algorithm it carries reports: numbered records from one agent to another. Messages and
// reports outlive the process that they are for: they are kept until it has said that a checkpoint
// of it holds what they did. fspda/dist/nats has an implementation.
type Network interface {
	dist.Transport
	// Start meets the others, from where Save left the lines, or from their start where lines is
	// nil. Reports before number reported are known already.
	Start(lines []byte, reported int) error
	// Save returns all that a checkpoint must hold of the lines. The agent calls it between two
	// iterations.
	Save() []byte
	// Stable says that a checkpoint with these lines is on the disk, and that reports before number
	// reported need not be kept.
	Stable(lines []byte, reported int) error
	// Report sends a record of iteration t.
	Report(ctx context.Context, to, t int, record []byte) error
	// NextReport waits for the next record of another agent.
	NextReport(ctx context.Context, from int) (t int, record []byte, err error)
	// AwaitReports waits until another agent has received all reports.
	AwaitReports(ctx context.Context, by int) error
	// CheckpointRequested receives a value when other agents keep many messages for this agent. A
	// checkpoint lets them delete these.
	CheckpointRequested() <-chan struct{}
	// WireBytes is how many bytes the agent's messages have taken so far, each counted once.
	WireBytes() uint64
}

// Coordinator is the rank of the agent whose process evaluates the run and writes its folder.
const Coordinator = 0

// Process makes a Run one process of many: it has one agent, and the others have theirs.
type Process struct {
	Rank    int
	Network Network
	Store   *Home // nil: the agent keeps no checkpoints, and does not survive its process; the caller closes it
}
