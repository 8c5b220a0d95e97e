package process

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
	"fspda/train/snapshot"
)

// errAbsent reports that an agent has been silent for so long that its neighbours have dropped it.
var errAbsent = errors.New("process: an agent is absent")

// absentInterval is the time after which the local agent is asked again whether it has come to an
// evaluation of which an absent agent has no part.
const absentInterval = 100 * time.Millisecond

// errEnding ends the gathering of reports with the run.
var errEnding = errors.New("process: the run ends")

// gather takes the reports of another agent, to its last. It is for the coordinator.
func (n *Node) gather(ctx context.Context, from int) error {
	done := n.evaluations() // evaluations of it that were taken, or replaced
	n.last.Lock()
	latest := n.last.counters[from] // counters in its latest report
	n.last.Unlock()
	last := n.opt.Schedule.EvalCount()
	pool := n.opt.Run.Pool(from)
	for {
		var r report
		err := n.takeReport(ctx, from, min(done, last), func(t int, record []byte) (err error) {
			r, err = n.readReport(ctx, t, record, from, done)
			return err
		})
		absent := errors.Is(err, errAbsent)
		switch {
		case errors.Is(err, errEnding):
			return nil
		case err != nil && !absent:
			return err
		case !absent && r.sn == nil: // a note does not wait for a snapshot to become free
			stopped, err := n.pass(ctx, r.note, from)
			if stopped && err == nil {
				n.watching.Go(func() { n.drain(from) })
			}
			if stopped || err != nil {
				return err
			}
			continue
		case absent && done > last: // all that it had to report has come
			return nil
		}
		if absent {
			sn, err := n.acquire(ctx, pool)
			if err != nil {
				return nil
			}
			t := n.opt.Schedule.EvalPoint(done)
			n.opt.Log.Warn("evaluating without an agent that is absent",
				zap.Int("agent", from), zap.Int("iteration", t))
			sn.ReplaceAbsent(from, t, latest)
			n.opt.Run.Collect(sn)
			if done == last {
				return nil
			}
			done++
			continue
		}
		if r.stale || done > last || r.t < n.opt.Schedule.EvalPoint(done) {
			// the agent was started again, and repeats rows that were evaluated, maybe without it
			pool.Release(r.sn)
			continue
		}
		done++
		latest = r.sn.Counters
		r.sn.Agent, r.sn.T, r.sn.Eval, r.sn.Save, r.sn.Missing = from, r.t, true, false, false
		n.opt.Run.Collect(r.sn)
		n.opt.Evaluations.collected(ctx, n, pool, done > last)
	}
}

// Reported returns, at the coordinator, the iteration of the latest report that each other agent
// has made. latest returns the one of the reports that this process has received, or -1. Earlier
// reports are in the rows that it began with.
func (n *Node) Reported(latest func(agent int) int) map[int]int {
	if !n.Coordinates() {
		return nil
	}
	before, all := -1, map[int]int{}
	if rows := n.evaluations(); rows > 0 {
		before = n.opt.Schedule.EvalPoint(rows - 1)
	}
	for i := range n.opt.Agents {
		if i == n.opt.Rank {
			continue
		}
		if t := max(before, latest(i)); t >= 0 {
			all[i] = t
		}
	}
	return all
}

// report is a report of another agent: a snapshot of iteration t, or a note.
type report struct {
	t     int
	sn    *snapshot.Snapshot // nil: a note
	stale bool               // it belongs to an evaluation that was abandoned.
	note  Note
}

// readReport reads a report of an agent of which done evaluations were taken. One that no agent of
// the run sends is an [dist.InvalidError].
func (n *Node) readReport(ctx context.Context, t int, record []byte, from, done int) (r report, err error) {
	s := n.opt.Schedule
	if isNote(record) {
		r.note, err = readNote(record)
		earliest := 0
		if done > 0 {
			earliest = s.EvalPoint(done - 1)
		}
		switch at := r.note.T; {
		case err != nil:
		case !r.note.Kind.fromAgents() || r.note.Kind == NoteStopping && r.note.Agent != from ||
			r.note.Agent < 0 || r.note.Agent >= n.opt.Agents:
			err = dist.Invalidf("a note %q about agent %d", r.note.Kind, r.note.Agent)
		case r.note.Kind == NoteDiverged && (at < earliest || at > s.EvalPoint(s.EvalCount())):
			err = dist.Invalidf("a note of a divergence in iteration %d, by an agent that was at %d", at, earliest)
		}
		return r, err
	}
	if done <= s.EvalCount() && n.opt.DropAfter == 0 && t > s.EvalPoint(done) {
		return r, dist.Invalidf("an evaluation at iteration %d, expected one at %d", t, s.EvalPoint(done))
	}
	pool := n.opt.Run.Pool(from)
	sn, err := n.acquire(ctx, pool)
	if err != nil {
		return r, errEnding
	}
	ok, err := n.opt.Evaluations.read(record, sn)
	if err != nil {
		pool.Release(sn)
		return r, err
	}
	return report{t: t, sn: sn, stale: !ok}, nil
}

// acquire waits for a snapshot that is free.
func (n *Node) acquire(ctx context.Context, pool *snapshot.Pool) (*snapshot.Snapshot, error) {
	n.backlog.Add(1)
	defer n.backlog.Add(-1)
	return pool.Acquire(ctx)
}

// drain takes the reports of an agent after its last note, if it is started again.
func (n *Node) drain(from int) {
	for {
		if n.opt.Network.TakeReport(n.life, from, func(int, []byte) error { return nil }) != nil {
			return
		}
	}
}

// pass acts on a note of another agent. stopped is true if the agent sends no further reports.
func (n *Node) pass(ctx context.Context, note Note, from int) (stopped bool, err error) {
	switch note.Kind {
	case NoteStopped:
		return true, nil
	case NoteStopping:
		n.stop.hear(note)
	case NoteDiverged:
		n.opt.Run.Diverged(note)
		return false, n.broadcast(ctx, note, from)
	}
	return false, nil
}

// takeReport waits for the next report of an agent and passes it to take. In real time it returns
// errAbsent for an agent that has been silent for long, once the local agent has reported more than
// done evaluations.
func (n *Node) takeReport(ctx context.Context, from, done int, take func(t int, record []byte) error) error {
	if !n.drops {
		return n.opt.Network.TakeReport(ctx, from, take)
	}
	limit := cmp.Or(n.opt.DropAfter, 1<<62)
	for {
		for n.opt.Absent(from, n.opt.Schedule.EvalPoint(done)) {
			if int(n.reported.Load()) > done {
				return errAbsent
			}
			select {
			case <-n.done: // The local agent has stopped before that evaluation, or has just reported it.
				if int(n.reported.Load()) > done {
					return errAbsent
				}
				return errEnding
			case <-time.After(absentInterval):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		wait, cancel := context.WithTimeout(ctx, min(limit, time.Second))
		err := n.opt.Network.TakeReport(wait, from, take)
		timeout := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if !timeout {
			return err
		}
		if int(n.reported.Load()) > done && n.opt.Network.SilentFor(from) > limit {
			return errAbsent
		}
	}
}

// broadcast reports a note to all other agents except one.
func (n *Node) broadcast(ctx context.Context, note Note, except int) error {
	record := note.record()
	for i := range n.opt.Agents {
		if i == n.opt.Rank || i == except {
			continue
		}
		if err := n.opt.Network.Report(ctx, i, max(0, note.T), record); err != nil {
			return err
		}
	}
	return nil
}

// listen takes the notes of the coordinator, to the last.
func (n *Node) listen(ctx context.Context) error {
	for {
		var note Note
		err := n.opt.Network.TakeReport(ctx, n.opt.Coordinator, func(_ int, record []byte) (err error) {
			note, err = readNote(record)
			return err
		})
		if err != nil {
			return err
		}
		switch note.Kind {
		case NoteDiverged:
			n.opt.Run.Diverged(note)
		case NoteHold, NoteStop:
			n.stop.hear(note)
		case NoteEnd:
			n.end.Store(&note)
			close(n.ended)
			n.opt.Run.Halt() // A process that was started again after it may wait at an evaluation.
			return nil
		}
	}
}
