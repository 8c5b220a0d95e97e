package train

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
)

// member is a run that plays one agent, the others being in other processes. The agent walks as it
// always does. What differs is around it: its checkpoints are its own, made when its own clock says
// so, and its snapshots for evaluation are reported to the collector, which puts those of all
// agents together. A process that dies is started again; the agent goes on from its checkpoint and
// hears again what it had heard, so that the run is the same as if nothing had happened.
//
// What must hold for that: all that a checkpoint at iteration t stands on is on a disk. At the
// collector that is every row before t; its own checkpoint waits for them.
type member struct {
	run  *run
	rank int
	net  Network
	home *Home

	queue chan *snapshot // of the own agent, in order
	rows  progress       // of the collector: how many rows are done
	begin time.Time
	wallS float64 // of earlier lives

	gathering sync.WaitGroup // of the collector: one for each other agent
	saving    sync.WaitGroup
	ended     chan struct{} // the run is over
	quit      func()
	done      chan struct{} // the own agent has walked
	stopping  atomic.Bool
	status    atomic.Pointer[note] // how the run ended
	under     atomic.Bool          // a checkpoint is under way
	disk      sync.Mutex           // one checkpoint is written at a time,
	written   int                  // and none before this iteration, which is on the disk
	first     int
	left      atomic.Int64 // evaluations that the own agent has left, in real time
}

// How long a process waits for others that should come at once.
const (
	haltAfter = 2 * time.Second  // for its own agent, which may wait for one that has stopped already
	farewell  = 10 * time.Second // for the others to hear that the run is over
)

func newMember(r *run, m *Member) *member {
	return &member{run: r, rank: m.Rank, net: m.Network, home: m.Home, queue: make(chan *snapshot, 2),
		begin: time.Now(),
		ended: make(chan struct{}), done: make(chan struct{}), rows: newProgress()}
}

// start makes the one agent, and a place for the others.
func (m *member) start() (*Result, error) {
	r, s := m.run, m.run.setup
	res := &Result{}
	ck, lines, err := m.checkpoint()
	if err != nil {
		return nil, err
	}
	if ck != nil {
		defer ck.file.Close()
		res.First, res.WallS = ck.Iteration, ck.WallS
		r.log.Info("resuming", zap.Int("iteration", ck.Iteration), zap.String("checkpoint", ck.path))
	}
	m.first, m.wallS = res.First, res.WallS
	if f := r.opt.Folder; f != nil {
		if err := f.openMetrics(s, res.First); err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, f.rows...)
	}
	m.rows.reach(s.EvalsBefore(res.First))
	r.pace = newPace(s.Graph.N, res.First, s.Config.Iterations)
	r.drawFrom(res.First)
	r.schedule(res.First)
	r.pace.lone = true
	if r.events != nil {
		r.events.lone = true
	}
	if err := m.people(ck); err != nil {
		return nil, err
	}
	reported := 0
	if m.rank == Collector {
		reported = s.EvalsBefore(res.First)
	}
	if err := m.net.Start(lines, reported); err != nil {
		return nil, errors.Join(err, r.closeLoaders())
	}
	return res, nil
}

func (m *member) checkpoint() (*checkpoint, []byte, error) {
	if m.home == nil {
		return nil, nil, nil
	}
	return m.home.newest(m.run.setup, m.rank)
}

// people makes the agents: the one, and those who are elsewhere, who are no more than the memory of
// their snapshots.
func (m *member) people(ck *checkpoint) error {
	r, s := m.run, m.run.setup
	r.agents = make([]*agent, s.Graph.N)
	board, ok := m.net.(dist.SessionOpener)
	if s.RealTime() && !ok {
		return fmt.Errorf("train: the network of this run cannot carry talks, which clock %s needs", s.Config.Clock)
	}
	batch := m.first
	if s.BatchPerGradient() && ck != nil {
		batch = ck.Grads[m.rank]
	}
	a, err := newAgent(r, m.rank, batch)
	if err != nil {
		return err
	}
	r.dev.Write(a.state.X, r.model.Init(s.Config.Seed))
	if ck != nil {
		if err := ck.restore(a); err != nil {
			a.loader.Close()
			return err
		}
	}
	if s.RealTime() {
		if a.player, err = m.revive(a, board, ck); err != nil {
			a.loader.Close()
			return err
		}
	}
	for i := range r.agents {
		if i == m.rank {
			r.agents[i] = a
			continue
		}
		r.agents[i] = &agent{id: i, run: r, halt: func(error) {}, spare: make(chan *snapshot, 3)}
		if m.rank == Collector {
			for range 2 {
				r.agents[i].spare <- newSnapshot(r.dev, a.state, s.BufferLen())
			}
		}
	}
	return nil
}

// play starts what a member does beside its agent. c collects, in the process of the collector.
func (m *member) play(ctx, stop context.Context, cancel context.CancelCauseFunc, c *collector) {
	life, quit := context.WithCancel(ctx)
	m.quit = quit
	fail := func(err error) {
		if err != nil && life.Err() == nil {
			cancel(err)
		}
	}
	m.saving.Go(func() {
		if err := m.save(life); err != nil {
			fail(err)
			for range m.queue { // the agent must not wait for a disk that is gone
			}
		}
	})
	m.gathering.Go(func() { m.obey(life, stop) })
	if m.rank != Collector {
		m.saving.Go(func() { fail(m.listen(life)) })
		return
	}
	c.told = m.rows.reach
	for i := range m.run.agents {
		if i != m.rank {
			m.gathering.Go(func() { fail(m.gather(life, i)) })
		}
	}
}

// deliver takes a snapshot of the own agent: for the collector, for a checkpoint, or both. The
// agent calls it, so that the lines are saved where it stands; the report of an evaluation at the
// same place belongs to what follows.
func (m *member) deliver(ctx context.Context, sn *snapshot) error {
	sn.ledger.WireBytes = m.net.WireBytes()
	if sn.save && m.home != nil {
		sn.lines = m.net.Save()
	}
	if sn.live != nil && sn.eval { // what is reported as the end must be the end, whatever happens to this process
		if err := m.settle(ctx, sn); err != nil {
			return err
		}
	}
	if sn.eval && m.rank != Collector {
		record, err := sn.record(m.run.dev)
		if err == nil {
			err = m.net.Report(ctx, Collector, sn.t, record)
		}
		if err != nil {
			return err
		}
	}
	select {
	case m.queue <- sn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle writes the last checkpoint of an agent in real time, however long the disk is full.
func (m *member) settle(ctx context.Context, sn *snapshot) error {
	if m.home == nil {
		return nil
	}
	sn.save = false
	for {
		err := m.write(ctx, sn)
		if !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		m.run.log.Warn("the disk is full; the agent cannot end", zap.Error(err))
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// save writes checkpoints, and hands snapshots on to the collector or back to the agent.
func (m *member) save(ctx context.Context) error {
	for sn := range m.queue {
		if sn.save && m.home != nil {
			switch err := m.write(ctx, sn); {
			case errors.Is(err, syscall.ENOSPC): // the others keep what this agent has heard since the earlier one, which is whole
				m.run.log.Warn("no checkpoint: the disk is full; the next one is tried in its time",
					zap.Int("iteration", sn.t), zap.Error(err))
			case err != nil:
				return err
			}
		}
		if !sn.eval || m.rank != Collector {
			m.run.agents[m.rank].spare <- sn
			continue
		}
		sn.save = sn.t == m.run.setup.Config.Iterations // then the collector leaves a checkpoint of all
		m.run.snapshots <- sn
	}
	return nil
}

// write makes a checkpoint, when all that it stands on is on a disk, and tells the others.
func (m *member) write(ctx context.Context, sn *snapshot) error {
	defer m.under.Store(false)
	s := m.run.setup
	rows := s.EvalsBefore(sn.t)
	if m.rank == Collector {
		if !m.rows.wait(ctx, rows) {
			return nil // the run ends: an earlier checkpoint stands
		}
		if f := m.run.opt.Folder; f != nil {
			if err := f.sync(); err != nil {
				return err
			}
		}
	}
	m.disk.Lock() // in real time the last one may overtake one that is under way
	defer m.disk.Unlock()
	if sn.t < m.written {
		return nil
	}
	if err := m.home.write(s, m.run, sn, m.wall()); err != nil {
		return err
	}
	m.written = sn.t
	m.run.log.Info("checkpoint", zap.Int("iteration", sn.t), zap.String("folder", m.home.Path))
	if m.rank != Collector {
		rows = 0 // what the collector says is asked for again
	}
	return m.net.Stable(sn.lines, rows)
}

func (m *member) wall() float64 { return m.wallS + time.Since(m.begin).Seconds() }

// obey asks the agent for checkpoints, by the clock and when others want one, and to stop.
func (m *member) obey(ctx, stop context.Context) {
	var tick <-chan time.Time
	if every := m.run.setup.Config.Checkpoint; every > 0 && m.home != nil {
		t := time.NewTicker(time.Duration(every * float64(time.Second)))
		defer t.Stop()
		tick = t.C
	}
	wanted := m.net.CheckpointRequested()
	if m.home == nil {
		wanted = nil
	}
	for {
		select {
		case <-tick:
		case <-wanted:
		case <-stop.Done():
			m.halt(ctx)
			return
		case <-m.done:
			return
		case <-ctx.Done():
			return
		}
		if m.under.CompareAndSwap(false, true) {
			m.run.pace.request(false)
		}
	}
}

// halt gives the agent time to get to the head of an iteration, where it leaves a checkpoint, and
// then ends its waiting: whom it waits for may have stopped, too. The checkpoint before stands
// then.
func (m *member) halt(ctx context.Context) {
	m.stopping.Store(true)
	select {
	case <-m.done:
	case <-ctx.Done():
	case <-time.After(haltAfter):
		m.run.agents[m.rank].halt(errHalted)
	}
}

// gather takes the reports of another agent, to its last.
func (m *member) gather(ctx context.Context, from int) error {
	r := m.run
	var done int  // evaluations of it that are taken, or stood in for
	var past head // of its latest report
	if m.rank == Collector {
		done = r.setup.EvalsBefore(m.first)
	}
	for {
		var sn *snapshot
		select {
		case sn = <-r.agents[from].spare:
		case <-ctx.Done():
			return nil
		}
		t, record, err := m.nextReport(ctx, from, done)
		if errors.Is(err, errAbsent) {
			t = r.setup.EvalPoint(done)
			done++
			r.log.Warn("evaluating without an agent that is gone", zap.Int("agent", from), zap.Int("iteration", t))
			sn.standIn(from, t, past)
			r.snapshots <- sn
			if t == r.setup.Config.Iterations {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		n, err := readRecord(record, r.dev, sn)
		switch {
		case err != nil:
			return err
		case n == nil && t < r.setup.EvalPoint(min(done, r.setup.EvalCount())):
			// it has come back, and this was evaluated without it
		case n == nil:
			done++
			sn.missing = false
			past = head{Ledger: sn.ledger, Grads: sn.grads}
			sn.agent, sn.t, sn.eval, sn.save = from, t, true, false
			r.snapshots <- sn
			continue
		case n.Kind == noteWalked:
			return nil
		case n.Kind == noteDiverged:
			r.hearDiverged(*n)
			if err := m.tell(ctx, *n, from); err != nil {
				return err
			}
		}
		r.agents[from].spare <- sn
	}
}

// tell reports a note to all others but one.
func (m *member) tell(ctx context.Context, n note, but int) error {
	record := n.record()
	for i := range m.run.agents {
		if i == m.rank || i == but {
			continue
		}
		if err := m.net.Report(ctx, i, n.T, record); err != nil {
			return err
		}
	}
	return nil
}

// listen hears what the collector says.
func (m *member) listen(ctx context.Context) error {
	for {
		_, record, err := m.net.NextReport(ctx, Collector)
		if err != nil {
			return err
		}
		n, err := readRecord(record, m.run.dev, nil)
		if err != nil {
			return err
		}
		switch n.Kind {
		case noteDiverged:
			m.run.hearDiverged(*n)
		case noteEnd:
			m.status.Store(n)
			close(m.ended)
			return nil
		}
	}
}

// hearDiverged is what another process knows of a divergence.
func (r *run) hearDiverged(n note) {
	if r.line != nil {
		r.divergedAt(n.Event, n.divergence())
		return
	}
	r.diverged(n.divergence())
}

// end waits for the rest of the run, after the own agent has walked. Where the process is to stop
// meanwhile it does not wait long: those that it waits for may have stopped, too.
func (m *member) end(ctx, stop context.Context) {
	r := m.run
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	defer context.AfterFunc(stop, func() {
		select {
		case <-time.After(haltAfter):
			m.stopping.Store(true)
			giveUp()
			m.quit()
		case <-ctx.Done():
		}
	})()
	if p := r.agents[m.rank].player; p != nil {
		defer p.engine.Close() // until then it answers others, who may have to come to their end
	}
	close(m.done)
	close(m.queue)
	defer m.saving.Wait()
	defer m.quit()
	r.mu.Lock()
	lost, event := r.lost, r.lostAt
	r.mu.Unlock()
	var err error
	if lost != nil && lost.Agent == m.rank {
		err = m.announce(ctx, noteOf(lost, event))
	}
	switch {
	case m.stopping.Load() || ctx.Err() != nil || err != nil:
	case m.rank == Collector:
		m.gathering.Wait()
		m.saving.Wait()
		return
	default:
		if err := m.net.Report(ctx, Collector, 0, note{Kind: noteWalked}.record()); err != nil {
			return
		}
		select {
		case <-m.ended:
		case <-ctx.Done():
		}
	}
	m.quit()
	m.gathering.Wait()
}

// announce tells the others of the own divergence, through the collector.
func (m *member) announce(ctx context.Context, n note) error {
	if m.rank == Collector {
		return m.tell(ctx, n, Collector)
	}
	return m.net.Report(ctx, Collector, n.T, n.record())
}

// finish says how it ended, and tells the others.
func (m *member) finish(res *Result, last int, err error) error {
	r := m.run
	switch {
	case err != nil:
		return err
	case m.rank == Collector && !m.stopping.Load():
		if err := r.finish(res, last, false); err != nil {
			return err
		}
		m.dismiss(note{Kind: noteEnd, T: res.Iteration, Status: res.Status})
		return nil
	case r.lost != nil:
		res.Status, res.Diverged, res.Iteration = Diverged, r.lost, r.lost.T
	case m.status.Load() != nil:
		end := m.status.Load()
		res.Status, res.Iteration = end.Status, end.T
	default:
		res.Status, res.Iteration = Stopped, r.pace.stop
		res.Models, res.Mean, res.Buffers, res.MeanBuffers = nil, nil, nil, nil
	}
	return nil
}

// dismiss tells the others that the run is over, and waits a while for them to hear it.
func (m *member) dismiss(n note) {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := m.tell(ctx, n, m.rank); err != nil {
		return
	}
	for i := range m.run.agents {
		if i != m.rank && m.net.AwaitReports(ctx, i) != nil {
			m.run.log.Warn("an agent did not hear that the run is over", zap.Int("agent", i))
		}
	}
}

// progress is a number that grows, for those who wait for it.
type progress struct {
	mu *sync.Mutex
	on *sync.Cond
	at *int
}

func newProgress() progress {
	mu := new(sync.Mutex)
	return progress{mu: mu, on: sync.NewCond(mu), at: new(int)}
}

// reach says that it is at least n.
func (p progress) reach(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.at = max(*p.at, n)
	p.on.Broadcast()
}

// wait waits until it is at least n. It returns false if the context ends before.
func (p progress) wait(ctx context.Context, n int) bool {
	defer context.AfterFunc(ctx, func() { p.reach(0) })() // wakes those who wait
	p.mu.Lock()
	defer p.mu.Unlock()
	for *p.at < n && ctx.Err() == nil {
		p.on.Wait()
	}
	return *p.at >= n
}
