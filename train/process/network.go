package process

import (
	"context"
	"time"

	"fspda/dist"
)

// Network is a Transport between the processes of a run, each with one agent. In addition to the
// messages of the algorithm it carries reports: numbered records from one agent to another. It
// keeps messages and reports until their receiver says that a checkpoint of it depends on them no
// longer, so that they survive the receiver's process. Package dist/link has an implementation.
type Network interface {
	dist.Transport
	// Start connects to the other processes and resumes the streams from the state that Save
	// returned, or from their beginning if streams is nil. Reports before number reported are known
	// already.
	Start(streams []byte, reported int) error
	// Save returns the state of the streams for a checkpoint. The agent calls it between two
	// iterations.
	Save() []byte
	// Stable tells that a checkpoint with this state of the streams is on the disk, and that
	// reports before number reported need not be kept.
	Stable(streams []byte, reported int) error
	// Report sends a record of iteration t.
	Report(ctx context.Context, to, t int, record []byte) error
	// TakeReport waits for the next record of another agent and passes it to take. A record about
	// which take returns a [dist.InvalidError] is refused: its sender is named, and it is awaited
	// again.
	TakeReport(ctx context.Context, from int, take func(t int, record []byte) error) error
	// OpenEvaluations waits until another agent is running, and opens a session with it for the sums
	// of evaluations. There is at most one session with each agent.
	OpenEvaluations(ctx context.Context, with int) (dist.CheckedSession, error)
	// Await tells the other processes that the local agent waits for another one, until over is called.
	Await(agent int) (over func())
	// AwaitReports waits until another agent has received all reports.
	AwaitReports(ctx context.Context, by int) error
	// CheckpointRequested receives a value when other agents keep many messages for this agent. A
	// checkpoint lets them delete these.
	CheckpointRequested() <-chan struct{}
	// SilentFor is the time since another agent's process was last heard; a running process sends
	// heartbeats. It counts from the start if nothing was heard.
	SilentFor(agent int) time.Duration
	// Advance tells the other processes that the local agent has done something in iteration t, and
	// its phase. While it waits for a message of another agent, the Network tells that.
	Advance(t int, phase dist.Phase)
	// Position is how far an agent has come, the local one included.
	Position(agent int) dist.Advance
	// Offence returns since when and why the messages of another agent are refused; nil if they are
	// not.
	Offence(agent int) (lasting time.Duration, reason error)
	// WireBytes is the number of bytes of the agent's messages so far, each message counted once,
	// without reports and evaluations.
	WireBytes() uint64
}
