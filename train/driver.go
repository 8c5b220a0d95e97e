package train

import (
	"context"

	"fspda/train/runfolder"
)

// driver steps the agents of this process through their iterations. There is one implementation for
// each way to run: synchronous, in virtual time, in real time.
type driver interface {
	// attach prepares an agent that was made, and restored from ck unless ck is nil.
	attach(a *agent, ck *runfolder.Checkpoint) error
	// run steps an agent from iteration first to the iteration at which [progress] stops it. When
	// ctx is canceled it returns its cause. Each agent has a goroutine of its own.
	run(ctx context.Context, a *agent, first int) error
	// direct does the work that belongs to no single agent, in parallel with the agents, from
	// iteration first.
	direct(ctx context.Context, first int)
	// close ends the work that goes on after the agents have stopped.
	close()
	// overlapsGradients reports whether an agent may go on while losses are pending.
	overlapsGradients() bool
	// repeatsEvaluations reports whether a resumed run can repeat an evaluation that was abandoned.
	repeatsEvaluations() bool
	// snapshotLimit returns the largest number of snapshots of an agent.
	snapshotLimit() int
}

// newDriver makes the driver of a run that starts at iteration first, and sets the run's progress.
func (r *run) newDriver(first int) (driver, error) {
	switch s := r.setup; {
	case s.RealTime():
		return newRealTime(r, first)
	case s.Asynchronous():
		return newVirtualTime(r, first), nil
	}
	return newSynchronous(r, first), nil
}
