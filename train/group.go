package train

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"fspda/train/evaluate"
	"fspda/train/membership"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// processGroup spreads the agents of a run over processes: all in this one, or each in its own. It
// carries their snapshots, and owns the checkpoints.
type processGroup interface {
	// Local reports whether an agent is in this process.
	Local(agent int) bool
	// open opens the newest checkpoint; nil if there is none.
	open() (*runfolder.Checkpoint, error)
	// begins is the iteration at which the agents begin without a checkpoint.
	begins() int
	// joins reports whether the agent joins the members of a run there.
	joins() bool
	// leaving knows of other agents whether they leave.
	leaving() membership.Leaving
	// takeOver takes a local agent over the changes of the members at the head of iteration t.
	takeOver(a *agent, t int) error
	// start connects the processes, after the local agents were made.
	start() error
	// Serve starts the work that runs in parallel with the agents until wait returns. It calls fail
	// when that work fails.
	Serve(ctx context.Context, fail context.CancelCauseFunc)
	// Deliver takes a snapshot of a local agent.
	Deliver(ctx context.Context, sn *snapshot.Snapshot) error
	// evaluate makes the row of the snapshots of all agents.
	evaluate(set []*snapshot.Snapshot) (evaluate.Evaluation, error)
	// gathers reports whether the snapshots of all agents have their vectors.
	gathers() bool
	// RowsWritten tells that the first n rows are in the metric files. The last row was made from
	// set.
	RowsWritten(n int, set []*snapshot.Snapshot) error
	// checkpoints returns the ways to request checkpoints.
	checkpoints() checkpointing
	// stop tells the agents to stop at an iteration. It may wait for them to get there, and halt
	// them.
	stop(ctx context.Context)
	// wait waits for the rest of the run, after the local agents have stopped.
	wait(ctx, stop context.Context)
	// finish completes the result of a run that ended so, or with err, and writes it.
	finish(res *Result, end ending, err error) error
	// results returns the results of a run that has finished already, but whose end other processes
	// may not know; else nil.
	results() *Result
	// endAgain tells the other processes of the end of such a run.
	endAgain(res *Result) error
	// repeatsEvaluations reports whether a resumed run can repeat an evaluation that was abandoned.
	repeatsEvaluations() bool
}

// checkpointing holds the ways in which checkpoints are requested.
type checkpointing struct {
	*snapshot.Reservation
	kept   bool            // there is a folder for them
	wanted <-chan struct{} // another process wants one
}

// singleProcess is the processGroup of a run whose agents are all in this process.
type singleProcess struct{ r *run }

// Local is true.
func (g *singleProcess) Local(int) bool { return true }

func (g *singleProcess) open() (*runfolder.Checkpoint, error) {
	if err := g.r.setup.CheckOutages(); err != nil {
		return nil, err
	}
	if f := g.r.opt.Folder; f != nil {
		ck, passed, err := f.OpenCheckpoint(g.r.setup)
		return ck, errors.Join(err, g.r.passOver(passed))
	}
	return nil, nil
}

// passOver logs why checkpoints are not used, and puts them aside.
func (r *run) passOver(checkpoints []error) error {
	for _, bad := range checkpoints {
		r.log.Warn("continuing from an earlier state", zap.Error(bad))
	}
	return runfolder.SetAside(checkpoints)
}

func (g *singleProcess) begins() int                                    { return 0 }
func (g *singleProcess) joins() bool                                    { return false }
func (g *singleProcess) leaving() membership.Leaving                    { return membership.Staying{} }
func (g *singleProcess) start() error                                   { return nil }
func (g *singleProcess) Serve(context.Context, context.CancelCauseFunc) {}
func (g *singleProcess) RowsWritten(int, []*snapshot.Snapshot) error    { return nil }
func (g *singleProcess) wait(_, _ context.Context)                      {}
func (g *singleProcess) repeatsEvaluations() bool                       { return true }
func (g *singleProcess) evaluate(set []*snapshot.Snapshot) (evaluate.Evaluation, error) {
	return g.r.eval.Evaluate(set)
}
func (g *singleProcess) gathers() bool          { return true }
func (g *singleProcess) results() *Result       { return nil }
func (g *singleProcess) endAgain(*Result) error { return nil }

func (g *singleProcess) stop(context.Context) { g.r.logStop(g.r.progress.request(true)) }

// logStop logs where the agents stop.
func (r *run) logStop(t int) {
	r.log.Info("stopping: all agents go on to one iteration and leave a checkpoint there", zap.Int("iteration", t))
}

func (g *singleProcess) Deliver(ctx context.Context, sn *snapshot.Snapshot) error {
	select {
	case g.r.snapshots <- sn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *singleProcess) checkpoints() checkpointing {
	return checkpointing{kept: g.r.opt.Folder != nil, Reservation: g.r.writer.Reservation}
}

func (g *singleProcess) finish(res *Result, end ending, err error) error {
	if err != nil {
		return err
	}
	if err := g.r.finish(res, end); err != nil {
		return err
	}
	return g.r.publish(res)
}

// requestCheckpoints asks the agents for checkpoints: by the clock, when another process or the
// Control wants one, and at the end of stop, which also ends the run.
func (r *run) requestCheckpoints(ctx, stop context.Context, done <-chan struct{}) {
	c := r.group.checkpoints()
	var tick <-chan time.Time
	if every := r.setup.Config.Checkpoint; every > 0 && c.kept {
		t := time.NewTicker(seconds(every))
		defer t.Stop()
		tick = t.C
	}
	asked := false // a checkpoint waits for one that is being made
	for {
		if asked && c.Reserve() {
			asked = false
			r.progress.request(false)
		}
		select {
		case <-tick: // a slow disk gets fewer checkpoints: they must not pile up
		case <-c.wanted:
		case <-r.opt.Control.Asked():
			asked = c.kept
			continue
		case <-c.Freed():
			continue
		case <-stop.Done():
			r.opt.Control.Release()
			r.abandonEvaluations()
			r.group.stop(ctx)
			return
		case <-done:
			return
		}
		if c.Reserve() {
			r.progress.request(false)
		}
	}
}

// evaluationGrace is the time for which a run that is told to stop waits for an evaluation. A
// longer one is abandoned: the checkpoint then holds the iteration of the evaluation, and a resumed
// run repeats it. A supervisor that sends SIGTERM often kills after ten seconds.
const evaluationGrace = 3 * time.Second

// abandonEvaluations ends evaluations after their grace time.
func (r *run) abandonEvaluations() {
	if r.opt.grace < 0 {
		close(r.hurry)
		return
	}
	time.AfterFunc(cmp.Or(r.opt.grace, evaluationGrace), func() { close(r.hurry) })
}
