package train

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/train/algo"
	"fspda/train/evaluate"
	"fspda/train/process"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// Process makes a Run one process of many: it has one agent, and the others have theirs.
type Process struct {
	Rank    int
	Network process.Network
	// Timeout is the longest time for which an agent that this one needs may be silent, or not
	// advance, after which Run fails; 0: for ever.
	Timeout time.Duration
	// FirstTimeout is the same for agents that this process has never heard; 0: Timeout
	FirstTimeout time.Duration
	// Store keeps the agent's checkpoints; the caller closes it. nil: the agent keeps no
	// checkpoints, and does not survive its process
	Store *runfolder.AgentStore
	// Elastic lets the members change; nil: all agents are members, and awaited.
	Elastic *Elastic
	// Abandon is called when the run has failed and this process's own agent has computed for
	// Timeout without an advance. Run returns when that ends, which may be never. nil: nothing is
	// called.
	Abandon func(error)
}

// manyProcesses is the processGroup of a run in which each agent has a process of its own. This
// process has one agent and a [process.Node], which does the work beside it.
type manyProcesses struct {
	*process.Node // made by open
	r             *run
	p             *Process
	elastic       *elasticMembers // nil: the members do not change.
	joined        bool
	coordinator   int
	// whole says that agents report their vectors, since they do not wait for each other at evaluations.
	whole  bool
	halted context.Context // Ends when the local agent is halted because of a stop.
	halts  context.CancelFunc
}

// Local reports whether the agent belongs to this process.
func (g *manyProcesses) Local(agent int) bool { return agent == g.p.Rank }

func (g *manyProcesses) open() (ck *runfolder.Checkpoint, err error) {
	s := g.r.setup
	if s.Members.Elastic() {
		if err := g.checkElastic(); err != nil {
			return nil, err
		}
		if s.Graph.N == 2 {
			g.r.log.Warn("of two members neither goes on without the other, since a majority is both: use three " +
				"agents or more, so that the others go on without one that dies")
		}
		g.coordinator = g.p.Elastic.Writer
		g.elastic = &elasticMembers{manyProcesses: g, Elastic: g.p.Elastic, Departures: g.departures()}
	}
	o := process.Options{Rank: g.p.Rank, Agents: s.Graph.N, Network: g.p.Network, Store: process.NoStore{}, Run: g,
		Schedule: s, Timeout: g.p.Timeout,
		FirstTimeout: g.p.FirstTimeout, Abandon: g.p.Abandon, Log: g.r.log}
	g.whole = g.elastic != nil || s.RealTime()
	if g.p.Store != nil {
		o.Store = agentStore{g.p.Store, g.r}
		if f := g.r.opt.Folder; f != nil && !g.whole {
			f.WriteTwice(g.p.Store.Path)
		}
		var passed []error
		if ck, o.Streams, passed, err = g.p.Store.Newest(s, g.p.Rank, g.r.opt.Folder); err != nil {
			return nil, err
		}
		if len(passed) > 0 && ck == nil && g.p.Rank == g.coordinator {
			return nil, passed[0] // its rows are of the run that is lost
		}
		if err := g.r.passOver(passed); err != nil {
			return nil, err
		}
	}
	if ck != nil {
		o.First, o.WallS = ck.Iteration, ck.WallS
		for i := range s.Graph.N {
			o.LastRow = append(o.LastRow, ck.Counters(i))
		}
	}
	if o.First, err = g.openElastic(o.First, ck == nil); err != nil {
		return nil, err
	}
	o.Coordinator = g.coordinator
	if o.Absent = g.absent; g.elastic == nil {
		o.Absent, o.DropAfter = nil, seconds(s.Config.DropAfter)
	}
	g.shareEvaluations(&o)
	g.Node = process.New(o)
	if f := g.r.opt.Folder; f != nil && ck == nil && g.results() == nil {
		return nil, f.CheckManyProcesses()
	}
	return ck, nil
}

func (g *manyProcesses) start() error {
	if g.Coordinates() {
		for i, pool := range g.r.snapshotPools {
			if !g.Local(i) {
				pool.Fill(func() *snapshot.Snapshot { return g.newSnapshotOf(i) })
			}
		}
	}
	if !g.whole {
		g.Guard(g.r.snapshotPools[g.p.Rank])
	}
	if !g.joined { // Else the network was started to ask for it.
		if err := g.Start(); err != nil {
			return err
		}
	}
	if g.elastic != nil && !g.Coordinates() {
		g.elastic.Slots.SkipReports(g.coordinator, g.r.setup.EvalsBefore(g.elastic.first))
	}
	return nil
}

func (g *manyProcesses) newSnapshotOf(i int) *snapshot.Snapshot {
	if g.whole {
		return g.agent().newSnapshotOf(i)
	}
	s := g.r.setup
	edges := func(dev device.Device) []*algo.EdgeMemory {
		return algo.NewEdges(s.Algo, dev, s.Dim, s.Graph.Neighbours(i))
	}
	return snapshot.NewRemote(g.agent().state, s.BufferLen(), edges,
		func(k int, dst []float32) error { return g.Fetch(i, k, dst) })
}

// shareEvaluations lets each process evaluate its own agent, unless agents report their vectors.
func (g *manyProcesses) shareEvaluations(o *process.Options) {
	g.halted, g.halts = context.WithCancel(context.Background())
	if g.whole {
		return
	}
	o.Evaluations = process.NewParts(process.PartsOptions{Until: g.until,
		Share: func(net snapshot.Numbers, sn *snapshot.Snapshot) error {
			return g.r.eval.Share(net, sn, g.Coordinates())
		},
		Score: func(sn *snapshot.Snapshot) error { return g.r.eval.Score(sn) }})
	if f := g.r.opt.Folder; f != nil {
		o.Rows = f.CountRows(g.r.setup)
	}
}

// until returns a context that ends when the local agent is halted, or when another agent has diverged
// before a snapshot and will have none.
func (g *manyProcesses) until(ctx context.Context, sn *snapshot.Snapshot) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.halted, cancel)
	step := sn.Step // The agent may have the snapshot again when the evaluation is over.
	go func() {
		if g.r.steps.awaitLoss(ctx, step) {
			cancel()
		}
	}()
	return ctx, func() {
		stop()
		cancel()
	}
}

func (g *manyProcesses) evaluate(set []*snapshot.Snapshot) (evaluate.Evaluation, error) {
	if g.whole {
		return g.r.eval.Evaluate(set)
	}
	return g.r.eval.EvaluateParts(set, g.p.Rank)
}

func (g *manyProcesses) gathers() bool { return g.whole }

// Serve implements processGroup.
func (g *manyProcesses) Serve(ctx context.Context, fail context.CancelCauseFunc) {
	g.Node.Serve(ctx, fail)
	if e := g.elastic; e != nil {
		e.ctx, e.ended = ctx, fail
		if err := e.Agreement.Start(ctx, e); err != nil {
			fail(err)
		}
	}
}

// agent is the agent of this process.
func (g *manyProcesses) agent() *agent { return g.r.agents[0] }

func (g *manyProcesses) repeatsEvaluations() bool { return false }

func (g *manyProcesses) checkpoints() checkpointing {
	c := checkpointing{Reservation: g.Reservation(), kept: g.p.Store != nil}
	if c.kept {
		c.wanted = g.p.Network.CheckpointRequested()
	}
	return c
}

func (g *manyProcesses) wait(ctx, stop context.Context) {
	if lost := g.r.divergence(); lost != nil && (g.Local(lost.Agent) || lost.elsewhere) {
		g.Wait(ctx, stop, noteOf(lost))
		return
	}
	g.Wait(ctx, stop)
}

func (g *manyProcesses) finish(res *Result, end ending, err error) error {
	err = g.conclude(res, end, err)
	if a := g.agent(); err == nil && res.Status == Finished && !g.whole {
		res.Models, res.Buffers = make([][]float32, g.r.setup.Graph.N), nil
		res.Models[a.id] = a.exchange.read(nil, a.state.X)
		if a.gradients.buffers != nil {
			res.Buffers = make([][]float32, len(res.Models))
			res.Buffers[a.id] = a.exchange.read(nil, a.gradients.buffers)
		}
	}
	return err
}

// conclude finds out how the run ended. The coordinator writes its results, and tells the others.
func (g *manyProcesses) conclude(res *Result, end ending, err error) error {
	lost := g.r.divergence()
	note, ended := g.End()
	switch {
	case err != nil:
		return err
	case g.Moved() && !ended && lost == nil:
		return ErrMoved
	case g.Coordinates() && g.StoppedTogether() && g.r.progress.stop < g.r.length():
		res.stop(g.r.progress.stop)
		g.Dismiss(process.Note{Kind: process.NoteEnd, T: res.Iteration, Status: string(Stopped)})
	case g.Coordinates() && !g.Stopped():
		if err := g.r.finish(res, ending{iteration: end.iteration}); err != nil {
			return err
		}
		if err := g.r.publish(res); err != nil {
			return err // the others are needed again, to repeat the end of the run
		}
		g.Dismiss(process.Note{Kind: process.NoteEnd, T: res.Iteration, Status: string(res.Status)})
	case lost != nil:
		res.lose(lost)
	case ended:
		res.Status, res.Iteration = Status(note.Status), note.T
	default:
		res.stop(g.r.progress.stop)
	}
	return nil
}

// results returns the results in the folder of the coordinator: its process has ended after they
// were written, so that some of the others may have ended, too. The results of a run that is being
// lengthened describe its former end.
func (g *manyProcesses) results() *Result {
	f := g.r.opt.Folder
	if f == nil || !g.Coordinates() {
		return nil
	}
	sum, rows, err := f.Results()
	if err != nil || sum.Status != Finished || sum.Iterations != g.r.length() {
		return nil
	}
	return &Result{Status: sum.Status, Iteration: sum.Iterations, First: sum.Iterations, Rows: rows, WallS: sum.WallS,
		Summary: sum, Memory: sum.Memory}
}

func (g *manyProcesses) endAgain(res *Result) error {
	g.r.log.Info("the run has finished already; telling the other agents", zap.Int("iteration", res.Iteration))
	if err := errors.Join(g.r.report(), g.Start()); err != nil {
		return errors.Join(err, g.r.opt.Folder.Close())
	}
	g.Dismiss(process.Note{Kind: process.NoteEnd, T: res.Iteration, Status: string(res.Status)})
	return g.r.opt.Folder.Close()
}

// stop is a stop at the same iteration in all processes, if they are told to stop alike. In real
// time there are no common iterations.
func (g *manyProcesses) stop(ctx context.Context) {
	var t int
	if g.r.setup.RealTime() {
		g.Decide(false)
		t = g.r.progress.request(true)
	} else {
		var together bool
		t, together = g.AgreeOnStop(ctx, g.r.progress.hold)
		g.Decide(together)
		g.r.progress.stopAt(t)
	}
	g.r.logStop(t)
	g.Stopping()
}

func (g *manyProcesses) Pool(agent int) *snapshot.Pool { return g.r.snapshotPools[agent] }

func (g *manyProcesses) Collect(sn *snapshot.Snapshot) { g.r.snapshots <- sn }

func (g *manyProcesses) Halt() {
	g.halts()
	g.agent().halt(errHalted)
}

func (g *manyProcesses) FlushRows() error {
	if f := g.r.opt.Folder; f != nil {
		return f.Sync()
	}
	return nil
}

func (g *manyProcesses) Diverged(n process.Note) {
	d := &DivergedError{Agent: n.Agent, T: n.T, Event: n.Event, Loss: float64(n.Loss)}
	if n.Cause != "" {
		d.Cause = errors.New(n.Cause)
	}
	g.r.diverged(d)
}

// teller is an observer that tells the other processes how far the agent of this one is.
type teller struct {
	observer
	*process.Teller
}

func (o teller) enter(agent, t int) {
	o.observer.enter(agent, t)
	o.Enter(t)
}

func (o teller) evaluating() { o.Advance() }

// noteOf tells other processes of a divergence.
func noteOf(d *DivergedError) process.Note {
	n := process.Note{Kind: process.NoteDiverged, Agent: d.Agent, T: d.T, Event: d.Event, Loss: Num(d.Loss)}
	if d.Cause != nil {
		n.Cause = d.Cause.Error()
	}
	return n
}

// agentStore is the checkpoints of the agent as a [process.Store].
type agentStore struct {
	home *runfolder.AgentStore
	r    *run
}

// Keeps is true.
func (s agentStore) Keeps() bool { return true }

func (s agentStore) Write(sn *snapshot.Snapshot, wall float64) error {
	if err := s.home.Write(s.r.setup, sn, wall); err != nil {
		return err
	}
	s.r.log.Info("checkpoint", zap.Int("iteration", sn.T), zap.String("folder", s.home.Path))
	return nil
}
