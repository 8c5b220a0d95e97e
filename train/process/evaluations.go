package process

import (
	"context"
	"fmt"

	"fspda/dist"
	"fspda/train/snapshot"
)

// Evaluations are the kind of reports from which the coordinator makes a row of metrics: a [Whole]
// snapshot of each agent, or [Parts], which the agents' processes compute.
type Evaluations interface {
	// settle waits until everything that was delivered before has been reported, so that it is part
	// of the streams that are saved next. The agent's goroutine calls it, and deliver.
	settle(ctx context.Context, n *Node) error
	// deliver takes a snapshot that is to be evaluated.
	deliver(ctx context.Context, n *Node, sn *snapshot.Snapshot) error
	// conclude evaluates and reports while the agent goes on.
	conclude(ctx context.Context, n *Node, sn *snapshot.Snapshot) error
	// read reads a report of another agent into its snapshot. ok is false if the report belongs to an
	// evaluation that was abandoned.
	read(record []byte, sn *snapshot.Snapshot) (ok bool, err error)
	// collected is called after a snapshot of another agent was collected. After the last one it waits
	// until that is not needed any more, if its vectors are among the reports behind it.
	collected(ctx context.Context, n *Node, pool *snapshot.Pool, last bool)
}

// Whole are evaluations for which each agent reports its vectors. The coordinator has the vectors of
// all agents in its memory. An agent that dies between two evaluations holds up none.
type Whole struct{}

func (Whole) settle(context.Context, *Node) error                       { return nil }
func (Whole) conclude(context.Context, *Node, *snapshot.Snapshot) error { return nil }
func (Whole) collected(context.Context, *Node, *snapshot.Pool, bool)    {}
func (Whole) read(record []byte, sn *snapshot.Snapshot) (ok bool, _ error) {
	return true, readSnapshot(record, sn)
}

func (Whole) deliver(ctx context.Context, n *Node, sn *snapshot.Snapshot) error {
	if n.Coordinates() {
		return nil
	}
	record, err := snapshotRecord(sn)
	if err == nil {
		err = n.opt.Network.Report(ctx, n.opt.Coordinator, sn.T, record)
	}
	return err
}

// Parts are evaluations to which each process contributes metrics of the model of its agent. An agent waits at each of them for all others. The vectors of the last one follow its report
// in pieces, for the checkpoint of all agents.
type Parts struct {
	share func(ctx context.Context, sn *snapshot.Snapshot) error
	score func(sn *snapshot.Snapshot) error

	delivered, concluded int
	settled              progress // reaches concluded
}

// NewParts makes evaluations by parts. share computes, together with the other processes, the metrics
// that depend on all models, and score evaluates the agent's own one.
func NewParts(share func(context.Context, *snapshot.Snapshot) error, score func(*snapshot.Snapshot) error) *Parts {
	return &Parts{share: share, score: score, settled: newProgress()}
}

func (p *Parts) settle(ctx context.Context, _ *Node) error {
	if !p.settled.wait(ctx, p.delivered) {
		return context.Cause(ctx)
	}
	return nil
}

func (p *Parts) deliver(ctx context.Context, n *Node, sn *snapshot.Snapshot) error {
	err := p.share(ctx, sn)
	if err == nil && !n.Coordinates() {
		p.delivered++
	}
	return err
}

func (p *Parts) conclude(ctx context.Context, n *Node, sn *snapshot.Snapshot) error {
	if err := p.score(sn); err != nil {
		return err
	}
	report := func(kind byte, record []byte) error {
		return n.opt.Network.Report(ctx, n.opt.Coordinator, sn.T, append([]byte{kind}, record...))
	}
	record, err := sn.EncodePart()
	if err == nil {
		err = report(recordPart, record)
	}
	if err == nil && n.isLast(sn.T) {
		err = sn.Pieces(func(piece []byte) error { return report(recordPiece, piece) })
	}
	if err == nil {
		p.concluded++
		p.settled.reach(p.concluded)
	}
	return err
}

func (p *Parts) read(record []byte, sn *snapshot.Snapshot) (ok bool, err error) {
	if len(record) > 0 && record[0] == recordPiece {
		return false, nil
	}
	return true, readPart(record, sn)
}

func (p *Parts) collected(ctx context.Context, n *Node, pool *snapshot.Pool, last bool) {
	if !last {
		return
	}
	var all []*snapshot.Snapshot
	for range snapshot.Circulating {
		sn, err := n.acquire(ctx, pool)
		if err != nil {
			return // The run ends.
		}
		all = append(all, sn)
	}
	for _, sn := range all {
		pool.Release(sn)
	}
}

// Fetch reads vector k of the last snapshot of another agent, whose pieces come behind its Part.
// Vectors are fetched in their order. It is for the coordinator, after that Part was collected.
func (n *Node) Fetch(agent, k int, dst []float32) error {
	for got := 0; got < len(dst); {
		var note *Note
		err := n.opt.Network.TakeReport(n.life, agent, func(_ int, record []byte) (err error) {
			switch {
			case len(record) > 0 && record[0] == recordPiece:
				if got, err = snapshot.ReadPiece(dst, record[1:], k, got); err != nil {
					err = dist.Invalidf("%v", err)
				}
			case len(record) > 0 && record[0] == recordPart: // The agent was started again, and repeats it.
			default:
				var one Note
				one, err = readNote(record)
				note = &one
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("process: the last vectors of agent %d: %w", agent, err)
		}
		if note == nil {
			continue
		}
		if stopped, err := n.pass(n.life, *note, agent); stopped || err != nil {
			return fmt.Errorf("process: agent %d has stopped before it sent its last vectors: %w", agent, err)
		}
	}
	return nil
}

// isLast reports whether the evaluation at iteration t is the last one.
func (n *Node) isLast(t int) bool { return t == n.opt.Schedule.EvalPoint(n.opt.Schedule.EvalCount()) }
