package process

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
	"fspda/internal/wholefile"
	"fspda/train/snapshot"
)

// Coordinator is the rank of the agent whose process evaluates the run and writes its folder, unless
// the members have changed.
const Coordinator = 0

// Run is the part of a run in this process that a [Node] uses.
type Run interface {
	// Pool holds the free snapshots of an agent.
	Pool(agent int) *snapshot.Pool
	// Collect passes a snapshot on to be evaluated. The collector returns it to its pool.
	Collect(sn *snapshot.Snapshot)
	// Diverged records that the agent of another process has diverged.
	Diverged(Note)
	// Halt ends the waits of the local agent, which then stops.
	Halt()
	// FlushRows flushes the metric files to the disk.
	FlushRows() error
}

// Schedule says at which iterations a run is evaluated.
type Schedule interface {
	// EvalCount is the number of evaluations after the first one.
	EvalCount() int
	// EvalPoint is the iteration of evaluation k.
	EvalPoint(k int) int
	// EvalsBefore is the number of evaluations before iteration t.
	EvalsBefore(t int) int
}

// Store keeps the checkpoints of the local agent.
type Store interface {
	// Keeps reports whether checkpoints are kept at all.
	Keeps() bool
	// Write makes a checkpoint; wall is the number of seconds of the run so far.
	Write(sn *snapshot.Snapshot, wall float64) error
}

// NoStore is the Store of an agent without checkpoints, which does not survive its process.
type NoStore struct{}

// Keeps is false.
func (NoStore) Keeps() bool { return false }

// Write does nothing.
func (NoStore) Write(*snapshot.Snapshot, float64) error { return nil }

// Options say which process a [Node] is, and name the parts that it uses.
type Options struct {
	Rank, Agents int
	Coordinator  int // The agent whose process evaluates the run and writes its folder.
	Network      Network
	Store        Store
	Run          Run
	Schedule     Schedule
	DropAfter    time.Duration // an agent that is silent for longer is not awaited; 0: never
	// Evaluations are the kind of reports from which the coordinator makes rows; nil: Whole.
	Evaluations Evaluations
	// Absent reports whether an agent is no member in iteration t. nil: all are, all the time.
	Absent func(agent, t int) bool
	// Timeout is the longest silence of an agent that this process needs; after it the run ends
	// here with a SilentError. It is also the longest time for which an agent may not advance; after
	// it the run ends with a HangError. 0: there is no limit.
	Timeout time.Duration
	// FirstTimeout takes the place of Timeout for an agent that this process has never heard. 0: it
	// is Timeout.
	FirstTimeout time.Duration
	// Abandon is called when the run has failed here and the local agent has computed for Timeout
	// without an advance: nothing in this process can end that, so that the process should end. nil:
	// nothing is called.
	Abandon func(error)
	Log     *zap.Logger

	// state in the checkpoint from which the process resumes
	First   int
	WallS   float64
	Streams []byte
	Rows    int                 // number of rows of metrics that are kept, if they are more than those before First
	LastRow []snapshot.Counters // counters of all agents in the last row before First; nil: there is none
}

// written is the iteration of the newest checkpoint when the process begins; -1: there is none. An
// agent that joins begins at First without one.
func (o *Options) written() int {
	if o.Streams == nil {
		return -1
	}
	return o.First
}

// Node is one process of a run.
//
// Invariant: all that a checkpoint at iteration t depends on is on a disk. At the coordinator that
// is every row before t: its own checkpoint waits for them.
type Node struct {
	opt   Options
	drops bool // Agents may be absent.
	begin time.Time

	queue chan *snapshot.Snapshot // snapshots of the local agent, in order
	rows  progress                // number of rows that are written, at the coordinator
	last  lastRow
	disk  disk

	life      context.Context // context of the goroutines beside the agent
	quit      context.CancelFunc
	gathering sync.WaitGroup // one goroutine for each other agent, at the coordinator
	saving    sync.WaitGroup
	watching  sync.WaitGroup
	done      chan struct{} // closed when the local agent has stopped
	ended     chan struct{} // closed when the run has ended
	moving
	end      atomic.Pointer[Note]
	stop     *stopState
	backlog  atomic.Int64 // agents whose reports wait for the collector
	stopped  atomic.Bool  // this process is to stop, or has given up waiting for the others
	reported atomic.Int64 // evaluations that the local agent has delivered
}

// moving says whether another process is to be the coordinator.
type moving struct {
	once  sync.Once
	moved chan struct{} // Closed then.
}

// lastRow guards the counters of all agents in the last row.
type lastRow struct {
	sync.Mutex
	counters []snapshot.Counters
}

// disk guards the checkpoints of a node.
type disk struct {
	sync.Mutex     // one checkpoint is written at a time,
	written    int // and none up to this iteration, which is on the disk; -1: there is none
	*snapshot.Reservation
}

// Limits of the time that a process waits for events that should come at once.
const (
	haltAfter       = 2 * time.Second  // time given to its own agent, which may wait for a stopped one
	togetherTimeout = time.Minute      // time to get to the iteration at which all stop
	ShutdownTimeout = 10 * time.Second // time in which the other processes must receive that the run has ended
)

// New makes the node of this process.
func New(opt Options) *Node {
	drops := opt.DropAfter > 0 || opt.Absent != nil
	if opt.Absent == nil {
		opt.Absent = func(int, int) bool { return false }
	}
	if opt.Evaluations == nil {
		opt.Evaluations = Whole{}
	}
	if opt.Abandon == nil {
		opt.Abandon = func(error) {}
	}
	n := &Node{opt: opt, drops: drops, queue: make(chan *snapshot.Snapshot, 2), begin: time.Now(),
		ended:  make(chan struct{}),
		moving: moving{moved: make(chan struct{})},
		done:   make(chan struct{}), rows: newProgress(), stop: newStopState(),
		disk: disk{written: opt.written(), Reservation: snapshot.NewReservation()}}
	n.last.counters = make([]snapshot.Counters, opt.Agents)
	copy(n.last.counters, opt.LastRow)
	n.rows.reach(n.evaluations())
	n.reported.Store(int64(n.evaluations()))
	return n
}

// evaluations is the number of evaluations before this process resumed, or of which it has the rows.
func (n *Node) evaluations() int {
	return max(n.opt.Schedule.EvalsBefore(n.opt.First), n.opt.Rows)
}

// Coordinates reports whether this process is the coordinator's.
func (n *Node) Coordinates() bool { return n.opt.Rank == n.opt.Coordinator }

// others counts the other agents that are members.
func (n *Node) others() (count int) {
	for i := range n.opt.Agents {
		if i != n.opt.Rank && !n.opt.Absent(i, n.opt.Network.Position(n.opt.Rank).T) {
			count++
		}
	}
	return count
}

// Start connects to the other processes.
func (n *Node) Start() error {
	if !n.Coordinates() {
		return n.opt.Network.Start(n.opt.Streams, 0) // the coordinator's reports are requested again
	}
	return n.opt.Network.Start(n.opt.Streams, n.evaluations())
}

// Reservation reserves the local agent's checkpoints.
func (n *Node) Reservation() *snapshot.Reservation { return n.disk.Reservation }

// RowsWritten tells that the first rows rows are in the metric files. The last row was made from
// set.
func (n *Node) RowsWritten(rows int, set []*snapshot.Snapshot) error {
	n.last.Lock()
	for i, sn := range set {
		n.last.counters[i] = sn.Counters
	}
	n.last.Unlock()
	n.rows.reach(rows)
	return n.opt.Evaluations.written(n, set[n.opt.Rank].T)
}

// Guard keeps a snapshot of the local agent from its pool while other processes may need it. An agent
// that waits for one waits for evaluations, and they for others.
func (n *Node) Guard(pool *snapshot.Pool) {
	neighbour := n.opt.Rank - 1
	if neighbour < 0 {
		neighbour = 1
	}
	pool.Waits = func() (over func()) { return n.opt.Network.Await(neighbour) }
	pool.Returns = func(sn *snapshot.Snapshot) { n.opt.Evaluations.withdraw(sn.T) }
}

// Serve starts the goroutines that run beside the agent until Wait returns. It calls fail with an
// error that ends the run in this process.
func (n *Node) Serve(ctx context.Context, fail context.CancelCauseFunc) {
	n.life, n.quit = context.WithCancel(ctx)
	check := func(err error) {
		if err != nil && n.life.Err() == nil {
			fail(err)
		}
	}
	n.watching.Go(func() { check(n.watch(n.life)) })
	go n.abandon(ctx)
	n.opt.Evaluations.serve(n.life, n, check)
	n.saving.Go(func() {
		if err := n.save(n.life); err != nil {
			check(err)
			for range n.queue { // the agent must not wait for a disk that has failed
			}
		}
	})
	if !n.Coordinates() {
		n.saving.Go(func() { check(n.listen(n.life)) })
		return
	}
	for i := range n.opt.Agents {
		if i != n.opt.Rank {
			n.gathering.Go(func() { check(n.gather(n.life, i)) })
		}
	}
}

// Deliver takes a snapshot of the local agent: for the coordinator, for a checkpoint, or both. The
// agent's goroutine calls it, so that the streams are saved where the agent stands. The report of
// an evaluation at the same iteration is not part of the saved streams: a resumed process sends it
// again.
func (n *Node) Deliver(ctx context.Context, sn *snapshot.Snapshot) error {
	if sn.Eval {
		n.reported.Add(1)
	}
	sn.Ledger.WireBytes = n.opt.Network.WireBytes()
	if sn.Save && n.opt.Store.Keeps() {
		sn.Streams = n.opt.Network.Save()
	}
	if sn.RealTime != nil && sn.Eval { // a reported end must be on the disk first: this process may die
		sn.Save = false
		if err := n.writeLast(ctx, sn); err != nil {
			return err
		}
	}
	if sn.Eval {
		if err := n.opt.Evaluations.deliver(ctx, n, sn); err != nil {
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

// writeLast writes the last checkpoint of an agent in real time. While the disk is full it tries
// again.
func (n *Node) writeLast(ctx context.Context, sn *snapshot.Snapshot) error {
	for {
		err := n.write(ctx, sn)
		if !wholefile.DiskFull(err) {
			return err
		}
		n.opt.Log.Warn("the disk is full; the agent cannot end", zap.Error(err))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// save writes checkpoints, and passes snapshots on to the collector or back to the agent.
func (n *Node) save(ctx context.Context) error {
	final := true
	for sn := range n.queue {
		if sn.Save && !final {
			n.disk.Release()
		} else if sn.Save {
			switch err := n.write(ctx, sn); {
			case wholefile.DiskFull(err):
				// the earlier checkpoint is complete, and the others keep all messages since
				n.opt.Log.Warn("no checkpoint, because the disk is full; the next one is tried in its time",
					zap.Int("iteration", sn.T), zap.Error(err))
			case err != nil:
				return err
			}
		}
		if !sn.Eval {
			n.opt.Run.Pool(n.opt.Rank).Release(sn)
			continue
		}
		// at the end of the run the collector leaves a checkpoint of all agents
		sn.Save = n.isLast(sn.T)
		ok, err := n.opt.Evaluations.conclude(ctx, n, sn)
		if err != nil {
			return err
		}
		final = final && ok
	}
	return nil
}

// write makes a checkpoint, once all that it depends on is on a disk, and tells the other
// processes.
func (n *Node) write(ctx context.Context, sn *snapshot.Snapshot) error {
	defer n.disk.Release()
	if !n.opt.Store.Keeps() {
		return nil
	}
	rows := 0 // the coordinator's reports are requested again
	if n.Coordinates() {
		rows = n.opt.Schedule.EvalsBefore(sn.T)
		if !n.rows.wait(ctx, rows) {
			return nil // the run ends: an earlier checkpoint is kept
		}
		if err := n.opt.Run.FlushRows(); err != nil {
			return err
		}
		n.last.Lock()
		sn.LastRow = slices.Clone(n.last.counters)
		n.last.Unlock()
	}
	n.disk.Lock() // the last checkpoint in real time may overtake another one
	defer n.disk.Unlock()
	if sn.T <= n.disk.written {
		return nil
	}
	if err := n.opt.Store.Write(sn, n.opt.WallS+time.Since(n.begin).Seconds()); err != nil {
		return err
	}
	n.disk.written = sn.T
	return n.opt.Network.Stable(sn.Streams, rows)
}

// Decide tells that this process is to stop, and whether all stop at one iteration.
func (n *Node) Decide(together bool) {
	n.stop.together.Store(together)
	n.stopped.Store(!together)
	close(n.stop.decided)
}

// stopLimit returns the longest time that a decided stop may take.
func (n *Node) stopLimit() time.Duration {
	if n.stop.together.Load() {
		return togetherTimeout
	}
	return haltAfter
}

// Stopping gives the agent time to get to the iteration at which it stops, where it leaves a
// checkpoint, and then ends its waits: the agents that it waits for may have stopped, too. In that
// case the earlier checkpoint is kept.
func (n *Node) Stopping() {
	select {
	case <-n.done:
	case <-n.life.Done():
	case <-time.After(n.stopLimit()):
		n.stopped.Store(true)
		n.opt.Run.Halt()
	}
}

// Wait waits for the rest of the run, after the local agent has stopped. own is not empty if that
// agent has diverged. If stop ends, Wait returns soon: the other processes may have stopped, too.
func (n *Node) Wait(ctx, stop context.Context, own ...Note) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	defer context.AfterFunc(stop, func() {
		select {
		case <-n.stop.decided:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(n.stopLimit()):
			n.stopped.Store(true)
			giveUp()
			n.quit()
		case <-ctx.Done():
		}
	})()
	n.opt.Network.Advance(n.opt.Network.Position(n.opt.Rank).T, dist.Idle)
	close(n.done)
	close(n.queue)
	defer n.saving.Wait()
	defer n.watching.Wait()
	defer n.quit()
	var err error
	for _, note := range own {
		err = errors.Join(err, n.announce(ctx, note))
	}
	switch {
	case n.stopped.Load() || ctx.Err() != nil || err != nil || n.Moved():
	case n.Coordinates():
		n.gathering.Wait()
		n.saving.Wait()
		return
	default:
		err := n.opt.Evaluations.settle(ctx)
		if err == nil {
			err = n.opt.Network.Report(ctx, n.opt.Coordinator, 0, Note{Kind: NoteStopped}.record())
		}
		if err != nil {
			return
		}
		select {
		case <-n.ended:
		case <-n.moved:
		case <-ctx.Done():
		}
	}
	n.quit()
	n.gathering.Wait()
}

// announce sends a note to all other processes, through the coordinator.
func (n *Node) announce(ctx context.Context, note Note) error {
	if n.Coordinates() {
		return n.broadcast(ctx, note, n.opt.Coordinator)
	}
	return n.opt.Network.Report(ctx, n.opt.Coordinator, note.T, note.record())
}

// Move says that another process is to be the coordinator: this one ends when its agent has stopped.
func (n *Node) Move() { n.once.Do(func() { close(n.moved) }) }

// Moved reports whether Move was called.
func (n *Node) Moved() bool {
	select {
	case <-n.moved:
		return true
	default:
		return false
	}
}

// End returns the coordinator's note of how the run ended. ok is false if none has come.
func (n *Node) End() (end Note, ok bool) {
	if note := n.end.Load(); note != nil {
		return *note, true
	}
	return end, false
}

// StoppedTogether reports whether all processes have stopped at one iteration.
func (n *Node) StoppedTogether() bool { return n.stop.together.Load() && !n.stopped.Load() }

// Stopped reports whether this process was told to stop, or has given up waiting for the others.
func (n *Node) Stopped() bool { return n.stopped.Load() }

// Dismiss tells the other processes how the run ended, and waits a while for them to receive it. It
// is for the coordinator.
func (n *Node) Dismiss(end Note) {
	ctx, cancel := context.WithTimeout(context.Background(), ShutdownTimeout)
	defer cancel()
	if err := n.broadcast(ctx, end, n.opt.Rank); err != nil {
		return
	}
	for i := range n.opt.Agents {
		if i != n.opt.Rank && n.opt.Network.AwaitReports(ctx, i) != nil {
			n.opt.Log.Warn("an agent did not receive that the run has ended", zap.Int("agent", i))
		}
	}
}
