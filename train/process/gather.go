package process

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"fspda/train/snapshot"
)

// errAbsent reports that an agent has been silent for so long that its neighbours have dropped it.
var errAbsent = errors.New("process: an agent is absent")

// gather takes the reports of another agent, to its last. It is for the coordinator.
func (n *Node) gather(ctx context.Context, from int) error {
	done := n.opt.Schedule.EvalsBefore(n.opt.First) // evaluations of it that were taken, or replaced
	n.last.Lock()
	latest := n.last.counters[from] // counters in its latest report
	n.last.Unlock()
	last := n.opt.Schedule.EvalCount()
	pool := n.opt.Run.Pool(from)
	for {
		t, record, err := n.nextReport(ctx, from, min(done, last))
		absent := errors.Is(err, errAbsent)
		switch {
		case err != nil && !absent:
			return err
		case !absent && !isSnapshot(record): // a note does not wait for a snapshot to become free
			stopped, err := n.pass(ctx, record, from)
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
		sn, err := n.acquire(ctx, pool)
		if err != nil {
			return nil
		}
		if absent {
			t = n.opt.Schedule.EvalPoint(done)
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
		if err := readSnapshot(record, sn); err != nil {
			return err
		}
		if done > last || t < n.opt.Schedule.EvalPoint(done) {
			// the agent has been started again, and repeats rows that were evaluated, with it or
			// without it
			pool.Release(sn)
			continue
		}
		done++
		latest = sn.Counters
		sn.Agent, sn.T, sn.Eval, sn.Save, sn.Missing = from, t, true, false, false
		n.opt.Run.Collect(sn)
	}
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
		if _, _, err := n.opt.Network.NextReport(n.life, from); err != nil {
			return
		}
	}
}

// pass acts on a note of another agent. stopped is true if the agent sends no further reports.
func (n *Node) pass(ctx context.Context, record []byte, from int) (stopped bool, err error) {
	note, err := readNote(record)
	if err != nil {
		return false, err
	}
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

// nextReport waits for the next report of an agent. In real time it returns errAbsent for an agent
// that has been silent for long, once the local agent has reported more than done evaluations.
func (n *Node) nextReport(ctx context.Context, from, done int) (int, []byte, error) {
	limit := n.opt.DropAfter
	if limit == 0 {
		return n.opt.Network.NextReport(ctx, from)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, min(limit, time.Second))
		t, record, err := n.opt.Network.NextReport(wait, from)
		timeout := err != nil && wait.Err() != nil && ctx.Err() == nil
		cancel()
		if !timeout {
			return t, record, err
		}
		if int(n.reported.Load()) > done && n.opt.Network.SilentFor(from) > limit {
			return 0, nil, errAbsent
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
		_, record, err := n.opt.Network.NextReport(ctx, Coordinator)
		if err != nil {
			return err
		}
		note, err := readNote(record)
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
			return nil
		}
	}
}
