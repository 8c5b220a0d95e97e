package train

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"fspda/train/snapshot"
)

// node is the processGroup of a process with one agent, whose others are in other processes. The
// agent runs as it does in a single process. The rest differs: its checkpoints are its own, made
// when its own clock says so, and its snapshots for evaluation are reported to the coordinator,
// which puts those of all agents together. A process that dies is started again; the agent goes on
// from its checkpoint and receives again what it had received, so that the run is the same as
// without a failure.
//
// Invariant: all that a checkpoint at iteration t depends on is on a disk. At the coordinator that
// is every row before t: its own checkpoint waits for them.
type node struct {
	*Process
	run  *run
	rank int

	queue chan *snapshot.Snapshot // of the local agent, in order
	rows  progress                // of the coordinator: the number of rows that are written
	begin time.Time
	wallS float64 // of earlier starts of this process
	first int

	life      context.Context // of what runs beside the agent
	quit      context.CancelFunc
	gathering sync.WaitGroup // of the coordinator: one goroutine for each other agent
	saving    sync.WaitGroup
	ended     chan struct{} // closed when the run is over
	done      chan struct{} // closed when the local agent has stopped
	stopped   atomic.Bool   // this process is to stop, or has given up waiting for the others
	outcome   atomic.Pointer[note]
	reported  atomic.Int64 // evaluations that the local agent has left

	streams []byte // state of the streams in the checkpoint that this process resumed from
	disk    nodeDisk
}

// nodeDisk guards the checkpoints of a node.
type nodeDisk struct {
	sync.Mutex     // one checkpoint is written at a time,
	written    int // and none before this iteration, which is on the disk
	*reservation
}

// How long a process waits for events that should come at once.
const (
	haltAfter = 2 * time.Second  // for its own agent, which may wait for one that has stopped already
	farewell  = 10 * time.Second // for the other processes to receive that the run is over
)

func newNode(r *run, p *Process) *node {
	return &node{Process: p, run: r, rank: p.Rank, queue: make(chan *snapshot.Snapshot, 2), begin: time.Now(),
		ended: make(chan struct{}), done: make(chan struct{}), rows: newProgress(), disk: nodeDisk{reservation: newReservation()}}
}

// Local reports whether the agent is that of this process.
func (n *node) Local(agent int) bool { return agent == n.rank }

func (n *node) repeatsEvaluations() bool { return false }

func (n *node) coordinates() bool { return n.rank == Coordinator }

func (n *node) open() (*checkpoint, error) {
	if n.Store == nil {
		return nil, nil
	}
	ck, streams, err := n.Store.newest(n.run.setup, n.rank)
	if err != nil || ck == nil {
		return nil, err
	}
	n.first, n.wallS, n.streams = ck.Iteration, ck.WallS, streams
	return ck, nil
}

func (n *node) start() error {
	r, reported := n.run, n.run.setup.EvalsBefore(n.first)
	n.rows.reach(reported)
	n.reported.Store(int64(reported))
	if !n.coordinates() {
		return n.Network.Start(n.streams, 0)
	}
	own := r.agents[0]
	for i, pool := range r.snapshotPools {
		if i != n.rank {
			pool.Fill(own.newSnapshot)
		}
	}
	return n.Network.Start(n.streams, reported)
}

func (n *node) rowsWritten(rows int) { n.rows.reach(rows) }

func (n *node) checkpoints() checkpointing {
	c := checkpointing{kept: n.Store != nil, reservation: n.disk.reservation}
	if c.kept {
		c.wanted = n.Network.CheckpointRequested()
	}
	return c
}

func (n *node) serve(ctx context.Context, fail context.CancelCauseFunc) {
	n.life, n.quit = context.WithCancel(ctx)
	check := func(err error) {
		if err != nil && n.life.Err() == nil {
			fail(err)
		}
	}
	n.saving.Go(func() {
		if err := n.save(n.life); err != nil {
			check(err)
			for range n.queue { // the agent must not wait for a disk that has failed
			}
		}
	})
	if !n.coordinates() {
		n.saving.Go(func() { check(n.listen(n.life)) })
		return
	}
	for i := range n.run.snapshotPools {
		if i != n.rank {
			n.gathering.Go(func() { check(n.gather(n.life, i)) })
		}
	}
}

// deliver takes a snapshot of the local agent: for the coordinator, for a checkpoint, or both. The
// agent's goroutine calls it, so that the streams are saved where the agent stands; the report of an
// evaluation at the same iteration belongs to what follows.
func (n *node) deliver(ctx context.Context, sn *snapshot.Snapshot) error {
	if sn.Eval {
		n.reported.Add(1)
	}
	sn.Ledger.WireBytes = n.Network.WireBytes()
	if sn.Save && n.Store != nil {
		sn.Streams = n.Network.Save()
	}
	if sn.RealTime != nil && sn.Eval { // a reported end must be on the disk first: this process may die
		if err := n.saveLast(ctx, sn); err != nil {
			return err
		}
	}
	if sn.Eval && !n.coordinates() {
		record, err := snapshotRecord(sn)
		if err == nil {
			err = n.Network.Report(ctx, Coordinator, sn.T, record)
		}
		if err != nil {
			return err
		}
	}
	select {
	case n.queue <- sn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// saveLast writes the last checkpoint of an agent in real time. While the disk is full it tries
// again.
func (n *node) saveLast(ctx context.Context, sn *snapshot.Snapshot) error {
	if n.Store == nil {
		return nil
	}
	sn.Save = false
	for {
		err := n.write(ctx, sn)
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		n.run.log.Warn("the disk is full; the agent cannot end", zap.Error(err))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// save writes checkpoints, and passes snapshots on to the collector or back to the agent.
func (n *node) save(ctx context.Context) error {
	for sn := range n.queue {
		if sn.Save && n.Store != nil {
			switch err := n.write(ctx, sn); {
			case errors.Is(err, syscall.ENOSPC): // the earlier checkpoint is complete, and the others keep all messages since
				n.run.log.Warn("no checkpoint, because the disk is full; the next one is tried in its time",
					zap.Int("iteration", sn.T), zap.Error(err))
			case err != nil:
				return err
			}
		}
		if !sn.Eval || !n.coordinates() {
			n.run.snapshotPools[n.rank].Release(sn)
			continue
		}
		sn.Save = sn.T == n.run.setup.Config.Iterations // then the collector leaves a checkpoint of all agents
		n.run.snapshots <- sn
	}
	return nil
}

// write makes a checkpoint, once all that it depends on is on a disk, and tells the other processes.
func (n *node) write(ctx context.Context, sn *snapshot.Snapshot) error {
	defer n.disk.release()
	s := n.run.setup
	rows := s.EvalsBefore(sn.T)
	if n.coordinates() {
		if !n.rows.wait(ctx, rows) {
			return nil // the run ends: an earlier checkpoint is kept
		}
		if f := n.run.opt.Folder; f != nil {
			if err := f.sync(); err != nil {
				return err
			}
		}
	}
	n.disk.Lock() // in real time the last checkpoint may overtake another one
	defer n.disk.Unlock()
	if sn.T < n.disk.written {
		return nil
	}
	if err := n.Store.write(s, sn, n.wallS+time.Since(n.begin).Seconds()); err != nil {
		return err
	}
	n.disk.written = sn.T
	n.run.log.Info("checkpoint", zap.Int("iteration", sn.T), zap.String("folder", n.Store.Path))
	if !n.coordinates() {
		rows = 0 // the coordinator's reports are requested again
	}
	return n.Network.Stable(sn.Streams, rows)
}

// stopping gives the agent time to get to the head of an iteration, where it leaves a checkpoint, and
// then ends its waits: the agents that it waits for may have stopped, too. In that case the earlier
// checkpoint is kept.
func (n *node) stopping() {
	n.stopped.Store(true)
	select {
	case <-n.done:
	case <-n.life.Done():
	case <-time.After(haltAfter):
		n.run.agents[0].halt(errHalted)
	}
}

// gather takes the reports of another agent, to its last.
func (n *node) gather(ctx context.Context, from int) error {
	r := n.run
	done := r.setup.EvalsBefore(n.first) // evaluations of it that were taken, or replaced
	var latest snapshot.Counters         // of its latest report
	pool := r.snapshotPools[from]
	for {
		sn, err := pool.Acquire(ctx)
		if err != nil {
			return nil
		}
		t, record, err := n.nextReport(ctx, from, done)
		if errors.Is(err, errAbsent) {
			t = r.setup.EvalPoint(done)
			done++
			r.log.Warn("evaluating without an agent that is absent", zap.Int("agent", from), zap.Int("iteration", t))
			sn.ReplaceAbsent(from, t, latest)
			r.snapshots <- sn
			if t == r.setup.Config.Iterations {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		news, err := readRecord(record, sn)
		switch {
		case err != nil:
			return err
		case news == nil && t < r.setup.EvalPoint(min(done, r.setup.EvalCount())):
			// the agent has come back; this iteration was evaluated without it
		case news == nil:
			done++
			sn.Missing = false
			latest = sn.Counters
			sn.Agent, sn.T, sn.Eval, sn.Save = from, t, true, false
			r.snapshots <- sn
			continue
		case news.Kind == noteStopped:
			return nil
		case news.Kind == noteDiverged:
			r.diverged(news.divergence())
			if err := n.broadcast(ctx, *news, from); err != nil {
				return err
			}
		}
		pool.Release(sn)
	}
}

// broadcast reports a note to all other agents except one.
func (n *node) broadcast(ctx context.Context, news note, except int) error {
	record := news.record()
	for i := range n.run.setup.Graph.N {
		if i == n.rank || i == except {
			continue
		}
		if err := n.Network.Report(ctx, i, news.T, record); err != nil {
			return err
		}
	}
	return nil
}

// listen takes the notes of the coordinator.
func (n *node) listen(ctx context.Context) error {
	for {
		_, record, err := n.Network.NextReport(ctx, Coordinator)
		if err != nil {
			return err
		}
		news, err := readRecord(record, nil)
		if err != nil {
			return err
		}
		switch news.Kind {
		case noteDiverged:
			n.run.diverged(news.divergence())
		case noteEnd:
			n.outcome.Store(news)
			close(n.ended)
			return nil
		}
	}
}

// wait waits for the rest of the run, after the local agent has stopped. If this process is to stop
// meanwhile it does not wait long: the others may have stopped, too.
func (n *node) wait(ctx, stop context.Context) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	defer context.AfterFunc(stop, func() {
		select {
		case <-time.After(haltAfter):
			n.stopped.Store(true)
			giveUp()
			n.quit()
		case <-ctx.Done():
		}
	})()
	close(n.done)
	close(n.queue)
	defer n.saving.Wait()
	defer n.quit()
	var err error
	if lost := n.run.divergence(); lost != nil && lost.Agent == n.rank {
		err = n.announce(ctx, noteOf(lost))
	}
	switch {
	case n.stopped.Load() || ctx.Err() != nil || err != nil:
	case n.coordinates():
		n.gathering.Wait()
		n.saving.Wait()
		return
	default:
		if err := n.Network.Report(ctx, Coordinator, 0, note{Kind: noteStopped}.record()); err != nil {
			return
		}
		select {
		case <-n.ended:
		case <-ctx.Done():
		}
	}
	n.quit()
	n.gathering.Wait()
}

// announce tells the other processes of the local agent's divergence, through the coordinator.
func (n *node) announce(ctx context.Context, news note) error {
	if n.coordinates() {
		return n.broadcast(ctx, news, Coordinator)
	}
	return n.Network.Report(ctx, Coordinator, news.T, news.record())
}

// finish completes the result, and tells the other processes that the run is over.
func (n *node) finish(res *Result, c *collector, err error) error {
	r := n.run
	lost, outcome := r.divergence(), n.outcome.Load()
	switch {
	case err != nil:
		return err
	case n.coordinates() && !n.stopped.Load():
		if err := r.finish(res, c.last, false); err != nil {
			return err
		}
		n.dismiss(note{Kind: noteEnd, T: res.Iteration, Status: res.Status})
	case lost != nil:
		res.Status, res.Diverged, res.Iteration = Diverged, lost, lost.T
	case outcome != nil:
		res.Status, res.Iteration = outcome.Status, outcome.T
	default:
		res.Status, res.Iteration = Stopped, r.pace.stop
		res.dropModels()
	}
	return nil
}

// dismiss tells the other processes that the run is over, and waits a while for them to receive it.
func (n *node) dismiss(news note) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := n.broadcast(ctx, news, n.rank); err != nil {
		return
	}
	for i := range n.run.setup.Graph.N {
		if i != n.rank && n.Network.AwaitReports(ctx, i) != nil {
			n.run.log.Warn("an agent did not receive that the run is over", zap.Int("agent", i))
		}
	}
}

// progress is a number that grows, and that goroutines can wait for.
type progress struct {
	mu *sync.Mutex
	on *sync.Cond
	at *int
}

func newProgress() progress {
	mu := new(sync.Mutex)
	return progress{mu: mu, on: sync.NewCond(mu), at: new(int)}
}

// reach sets it to at least n.
func (p progress) reach(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.at = max(*p.at, n)
	p.on.Broadcast()
}

// wait waits until it is at least n. It returns false if ctx is canceled before.
func (p progress) wait(ctx context.Context, n int) bool {
	defer context.AfterFunc(ctx, func() { p.reach(0) })() // wakes the waiting
	p.mu.Lock()
	defer p.mu.Unlock()
	for *p.at < n && ctx.Err() == nil {
		p.on.Wait()
	}
	return *p.at >= n
}
