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
	// serve starts goroutines that work until ctx ends, in a group.
	serve(ctx context.Context, n *Node, check func(error))
	// deliver takes a snapshot that is to be evaluated. The agent's goroutine calls it.
	deliver(ctx context.Context, n *Node, sn *snapshot.Snapshot) error
	// conclude evaluates and reports a snapshot while the agent goes on, and returns it to its pool. It
	// returns when no other process can need the snapshot again. If final is false the run ends, and no
	// later checkpoint of the agent may be written.
	conclude(ctx context.Context, n *Node, sn *snapshot.Snapshot) (final bool, err error)
	// settle waits until everything that was delivered is final, or, after the last iteration, reported.
	settle(ctx context.Context) error
	// written tells, at the coordinator, that the row of iteration t is in the metric files.
	written(n *Node, t int) error
	// withdraw waits until nothing reads the coordinator's snapshot of iteration t.
	withdraw(t int)
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

func (Whole) serve(context.Context, *Node, func(error))              {}
func (Whole) settle(context.Context) error                           { return nil }
func (Whole) written(*Node, int) error                               { return nil }
func (Whole) withdraw(int)                                           {}
func (Whole) collected(context.Context, *Node, *snapshot.Pool, bool) {}
func (Whole) read(record []byte, sn *snapshot.Snapshot) (ok bool, _ error) {
	return true, readSnapshot(record, sn)
}

func (Whole) deliver(ctx context.Context, n *Node, sn *snapshot.Snapshot) error {
	if n.Coordinates() || n.Moved() { // The process that was the coordinator's has left.
		return nil
	}
	record, err := snapshotRecord(sn)
	if err == nil {
		err = n.opt.Network.Report(ctx, n.opt.Coordinator, sn.T, record)
	}
	return err
}

func (Whole) conclude(_ context.Context, n *Node, sn *snapshot.Snapshot) (final bool, _ error) {
	if n.Coordinates() {
		n.opt.Run.Collect(sn)
	} else {
		n.opt.Run.Pool(n.opt.Rank).Release(sn)
	}
	return true, nil
}

// Parts are evaluations to which each process contributes metrics of the model of its agent, beside the
// training. The vectors of the last one follow its report in pieces, for the checkpoint of all agents.
type Parts struct {
	PartsOptions
	*chain

	delivered, concluded int
	settled              progress // reaches concluded
}

// PartsOptions are the parts of a run that Parts use.
type PartsOptions struct {
	// Share computes, together with the other processes, the metrics that depend on all models.
	Share func(snapshot.Numbers, *snapshot.Snapshot) error
	// Score evaluates the model of the agent.
	Score func(*snapshot.Snapshot) error
	// Until returns a context that ends when the evaluation of a snapshot can not be completed.
	Until func(context.Context, *snapshot.Snapshot) (context.Context, context.CancelFunc)
}

// NewParts makes evaluations by parts.
func NewParts(o PartsOptions) *Parts { return &Parts{PartsOptions: o, settled: newProgress()} }

func (p *Parts) serve(ctx context.Context, n *Node, check func(error)) {
	final := -1
	if k := n.evaluations(); k > 0 {
		final = n.opt.Schedule.EvalPoint(k - 1)
	}
	p.chain = newChain(n.opt.Network, n.opt.Rank, n.opt.Agents, final)
	for at := range p.sides {
		n.watching.Go(func() { check(p.chain.serve(ctx, at)) })
	}
}

func (p *Parts) settle(ctx context.Context) error {
	if !p.settled.wait(ctx, p.delivered) {
		return context.Cause(ctx)
	}
	return nil
}

func (p *Parts) deliver(context.Context, *Node, *snapshot.Snapshot) error {
	p.delivered++
	return nil
}

func (p *Parts) conclude(ctx context.Context, n *Node, sn *snapshot.Snapshot) (final bool, err error) {
	ctx, cancel := p.Until(ctx, sn)
	defer cancel()
	p.concluded++
	defer p.settled.reach(p.concluded)
	t, reported := sn.T, false
	final, err = p.evaluate(ctx, t, func(a *attempt) error {
		own := *sn // The collector has the other one after the first attempt.
		if err := p.Share(a, &own); err != nil || reported {
			return err
		}
		reported = true
		if sn.Part, sn.Mean = own.Part, own.Mean; n.Coordinates() {
			n.opt.Run.Collect(sn)
			return nil
		}
		err := p.report(ctx, n, sn)
		if n.isLast(t) { // It is final when the run has ended.
			p.settled.reach(p.concluded)
		}
		return err
	})
	if !reported || !n.Coordinates() {
		n.opt.Run.Pool(n.opt.Rank).Release(sn)
	}
	if ctx.Err() != nil {
		return final, nil
	}
	return final, err
}

// report reports the part of the agent, after the last evaluation with its vectors.
func (p *Parts) report(ctx context.Context, n *Node, sn *snapshot.Snapshot) error {
	if err := p.Score(sn); err != nil {
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
	return err
}

// written makes all evaluations but the last one final. After that one agent 0 still needs the vectors
// of all agents.
func (p *Parts) written(n *Node, t int) error {
	if n.isLast(t) {
		return nil
	}
	if err := n.opt.Run.FlushRows(); err != nil {
		return err
	}
	p.finish(n.life, t)
	return nil
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
