package train

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/train/evaluate"
	"fspda/train/membership"
	"fspda/train/memory"
	"fspda/train/process"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// Options are the inputs of a run besides its Setup.
type Options struct {
	Device    device.Device
	Model     Model
	Others    []Replica      // more devices, all of one kind, which share the agents with Device
	Transport dist.Transport // transport of messages; nil: between goroutines of this process
	Folder    *Folder        // run folder, which Run closes; nil: nothing is written
	Log       *zap.Logger    // nil: nothing is logged
	OnRow     func(Row)      // called after each evaluation, in order, by one goroutine
	OnStep    func(t int)    // called by agent 0 at the head of each iteration
	Process   *Process       // nil: all agents are in this process; else its Network is the Transport
	Live      *LiveState     // state of as many agents; nil: not recorded
	Control   *Control       // nil: the run cannot be paused
	Version   string         // version of the program, for summary.json; empty: the main module's
	NoReport  bool           // no plots and no report in Folder at the end

	grace time.Duration // time for an evaluation to end after the stop; 0: evaluationGrace, below 0: none
	lend  bool          // lends vectors as a run of memory.LendFrom agents does
}

func (o Options) replicas() []Replica { return append([]Replica{{o.Device, o.Model}}, o.Others...) }

// Result is the outcome of a run.
type Result struct {
	Status    Status
	Iteration int // iteration that was reached
	Rows      []Row
	WallS     float64 // seconds since the start, earlier parts of a resumed run included
	First     int     // iteration at which this part began
	Summary   Summary // summary as in Folder; empty without one, and of a run that was stopped
	Diverged  *DivergedError
	Mean      []float32   // final mean model; nil unless this call finished the run, and evaluated it
	Models    [][]float32 // final models of the agents in this process, by agent; nil unless the run finished
	// forecast and measured memory of devices with a memory of their own; nil if there are none
	Memory []memory.Forecast

	// batch norm of the mean model, as used by the last row; nil as Mean is, or without batch norm
	MeanBuffers []float32
	Buffers     [][]float32 // buffers of the same agents
}

// run is a Setup being executed.
type run struct {
	setup *Setup
	opt   Options
	log   *zap.Logger
	net   dist.Transport
	live  observer
	group processGroup

	driver   driver
	progress *progress // progress of the run's iterations: checkpoints and the stop are requested here
	steps    *progress // progress of the agents' steps, as the driver counts them

	workers       []*worker // evaluations of one device use the first
	agents        []*agent  // agents of this process
	edges         sync.Pool // pool of *activeEdges
	snapshotPools []*snapshot.Pool
	snapshots     chan *snapshot.Snapshot // snapshots for the collector
	eval          *evaluate.Evaluator
	writer        *runfolder.Writer
	hurry         chan struct{}     // closed some time after the run was told to stop: evaluations must end
	memory        []memory.Forecast // forecast of devices with a memory of their own

	mu   sync.Mutex
	lost *DivergedError // the earliest divergence
}

// newRun prepares a run; start makes its agents.
func newRun(s *Setup, opt Options) *run {
	r := &run{setup: s, net: opt.Transport, log: opt.Log, live: noObserver{},
		snapshots: make(chan *snapshot.Snapshot, 2*s.Graph.N), hurry: make(chan struct{})}
	if r.log == nil {
		r.log = zap.NewNop()
	}
	if opt.Live != nil {
		r.live = opt.Live
	}
	if opt.Control == nil {
		opt.Control = NewControl()
	}
	if r.net == nil {
		r.net = dist.NewLocal(s.Graph.N)
	}
	r.opt = opt
	r.group = &singleProcess{r}
	if opt.Process != nil {
		r.group, r.net = &manyProcesses{r: r, p: opt.Process}, opt.Process.Network
		r.live = teller{r.live, &process.Teller{Net: opt.Process.Network, Last: r.length()}}
	}
	r.makeWorkers(opt.replicas())
	r.writer = runfolder.NewWriter(opt.Folder, s, r.log, r.releaseSnapshots)
	r.memory = r.forecastMemory(opt.replicas())
	return r
}

// Run executes a setup from its start, or from the newest checkpoint in its folder. When ctx is
// canceled, the agents go on to the first iteration that none has reached and leave a checkpoint
// there; Run returns with status Stopped and no error. At the end of a run that was not stopped,
// its folder gets summary.json, plots and report; after that the other processes are told of the
// end.
func Run(ctx context.Context, s *Setup, opt Options) (*Result, error) {
	r := newRun(s, opt)
	res, err := r.start()
	if err != nil {
		for _, a := range r.agents {
			a.gradients.loader.Close()
		}
		if opt.Folder != nil {
			err = errors.Join(err, opt.Folder.Close())
		}
		return nil, err
	}
	if res.Status == Finished { // the run had finished before this call
		return res, r.group.endAgain(res)
	}
	return res, r.execute(ctx, res)
}

// start makes the agents, at iteration 0 or where the newest checkpoint left them. If the run has
// finished already, start returns its results and makes no agents.
func (r *run) start() (*Result, error) {
	ck, err := r.group.open()
	if err != nil {
		return nil, err
	}
	res := &Result{First: r.group.begins()}
	if ck != nil {
		defer ck.Close()
		res.First, res.WallS = ck.Iteration, ck.WallS
		r.log.Info("resuming", zap.Int("iteration", ck.Iteration), zap.String("checkpoint", ck.Path))
	}
	if done := r.group.results(); done != nil {
		return done, nil
	}
	if err := r.recall(ck); err != nil {
		return nil, err
	}
	if r.driver, err = r.newDriver(res.First); err != nil {
		return nil, err
	}
	if f := r.opt.Folder; f != nil {
		if ck == nil {
			rows, err := f.RowsWithoutCheckpoint(r.setup)
			if err != nil {
				return nil, err
			}
			if rows > 0 {
				r.log.Warn("the run was stopped before its first checkpoint: it starts at iteration 0 again",
					zap.Int("rows", rows))
			}
		}
		if err := f.OpenMetrics(r.setup, res.First); err != nil {
			return nil, err
		}
		if f.Damage != nil {
			r.log.Warn("later samples are lost", zap.Error(f.Damage))
		}
		res.Rows = append(res.Rows, f.Rows()...)
	}
	if !r.group.joins() { // Else it was made before.
		if err := r.makeAgents(res.First, ck); err != nil {
			return nil, err
		}
	}
	for _, w := range r.workers {
		w.masks.next = res.First
	}
	return res, r.group.start()
}

// recall makes the changes of the members those that a run decided of before its checkpoint.
func (r *run) recall(ck *runfolder.Checkpoint) error {
	if !r.setup.DropsSilent() || r.group.joins() {
		return nil
	}
	var changes []membership.Epoch
	if ck != nil {
		changes = ck.Members
	}
	if err := r.setup.Members.Replace(changes); err != nil {
		return ck.Damaged(err.Error())
	}
	return nil
}

// makeAgents makes the agents of this process, and a pool of snapshots for every agent.
func (r *run) makeAgents(first int, ck *runfolder.Checkpoint) error {
	s := r.setup
	for range s.Graph.N {
		r.snapshotPools = append(r.snapshotPools, snapshot.NewPool(r.driver.snapshotLimit()))
	}
	var x0 []float32 // The model from which every agent starts, unless it gets a member's.
	if !r.group.joins() {
		x0 = r.workers[0].Model.Init(s.Config.Seed)
	}
	for _, i := range r.localAgents() {
		batch := first
		if s.BatchPerGradient() && ck != nil {
			batch = (ck.Grads[i] + s.GradientsPerBatch() - 1) / s.GradientsPerBatch()
		}
		a, err := newAgent(r, i, first, batch)
		if err != nil {
			return err
		}
		r.agents = append(r.agents, a)
		if x0 != nil {
			a.dev.Write(a.state.X, x0)
		}
		a.state.Connect(s.Algo, s.Graph.Neighbours(i))
		if ck != nil {
			if err := a.restore(ck); err != nil {
				return err
			}
		}
		if err := r.driver.attach(a, ck); err != nil {
			return err
		}
	}
	return nil
}

// lends reports whether agents lend their vectors to evaluations and checkpoints.
func (r *run) lends() bool {
	return r.opt.Process == nil && (memory.Lends(r.setup) || r.opt.lend && !r.setup.RealTime())
}

func (r *run) localAgents() (all []int) {
	for i := range r.setup.Graph.N {
		if r.group.Local(i) {
			all = append(all, i)
		}
	}
	return all
}

// execute runs agents, collector and writer to their end.
func (r *run) execute(stop context.Context, res *Result) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(stop))
	defer cancel(nil)
	c := newCollector(r, res)
	var writing, collecting, requesting sync.WaitGroup
	writing.Go(func() {
		if err := r.writer.Work(); err != nil {
			cancel(err)
			r.writer.Drain()
		}
	})
	collecting.Go(func() {
		if err := c.collect(); err != nil {
			cancel(err)
			for range r.snapshots { // the agents must not wait for a collector that has failed
			}
		}
	})
	r.group.Serve(ctx, cancel)
	done := make(chan struct{})
	requesting.Go(func() { r.requestCheckpoints(ctx, stop, done) })
	r.runAgents(ctx, cancel, res.First)
	r.group.wait(ctx, stop)
	r.driver.close()
	close(r.snapshots)
	collecting.Wait() // a stop has still an effect: the last evaluation may take long
	res.Memory = r.compareMemory(c.end.iteration - res.First)
	close(done)
	requesting.Wait()
	r.writer.Close()
	writing.Wait()
	res.WallS = c.wall()
	err := context.Cause(ctx)
	if f := r.opt.Folder; f != nil {
		err = errors.Join(err, f.Close())
	}
	return r.group.finish(res, c.end, err)
}

// runAgents runs the driver until all agents of this process have stopped. The first error cancels
// ctx, and with it the waits of all.
func (r *run) runAgents(ctx context.Context, cancel context.CancelCauseFunc, first int) {
	var running sync.WaitGroup
	for _, a := range r.agents {
		a.ctx, a.halt = context.WithCancelCause(ctx)
		defer a.halt(nil)
	}
	for _, a := range r.agents {
		running.Go(func() {
			defer func() { a.gradients.loader.Close() }()
			if err := r.driver.run(ctx, a, first); err != nil {
				cancel(err)
			}
		})
	}
	running.Go(func() { r.driver.direct(ctx, first) })
	running.Wait()
}

// releaseSnapshots returns the snapshots of one iteration to the agents' pools.
func (r *run) releaseSnapshots(set []*snapshot.Snapshot) {
	for i, sn := range set {
		r.snapshotPools[i].Release(sn)
	}
}

// diverged records a divergence. The earliest counts, so that the result is the same in every run.
func (r *run) diverged(d *DivergedError) {
	beyond := r.steps.diverge(d.step())
	for _, a := range r.agents {
		if _, found := slices.BinarySearch(beyond, a.id); found {
			a.halt(errHalted)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil || d.before(r.lost) {
		r.lost = d
	}
}

// absorb records the divergence that ended an agent, in the given event if time is virtual. It
// returns err, or nil if the agent diverged or was halted because another one did.
func (r *run) absorb(err error, event int) error {
	if lost, ok := errors.AsType[*DivergedError](err); ok {
		lost.Event = event
		r.diverged(lost)
		return nil
	}
	if errors.Is(err, errHalted) {
		return nil
	}
	return err
}

// divergence returns the earliest divergence, or nil.
func (r *run) divergence() *DivergedError {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}
