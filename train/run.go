package train

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/train/simnet"
)

// Options are what a run needs besides its Setup.
type Options struct {
	Device    device.Device
	Model     Model
	Others    []Place        // more devices, over which the agents are spread; they are of one kind
	Transport dist.Transport // nil: between goroutines of this process
	Folder    *Folder        // nil: nothing is written; Run lets go of it at the end
	Log       *zap.Logger    // nil: silence
	OnRow     func(Row)      // called after each evaluation, in order, by one goroutine
	OnStep    func(t int)    // called by agent 0 at the head of each iteration
	Member    *Member        // nil: all agents are in this process; else its Network is the Transport
	Watch     *Watch         // of as many agents; nil: nobody looks
	Control   *Control       // nil: nobody steers

	grace time.Duration // that an evaluation has to end after the stop; 0: evaluationGrace, below 0: none
}

// evaluationGrace is how long a run that is told to stop waits for an evaluation. One that takes
// longer is given up: the checkpoint is then that of its iteration, and a resumed run makes it
// again. Who sends SIGTERM often kills after ten seconds.
const evaluationGrace = 3 * time.Second

// hurryAfter tells evaluations to end when they have had their time.
func (r *run) hurryAfter(grace time.Duration) {
	switch {
	case grace < 0:
		close(r.hurry)
	case grace == 0:
		grace = evaluationGrace
		fallthrough
	default:
		time.AfterFunc(grace, func() { close(r.hurry) })
	}
}

// Status is how a run ended.
type Status string

const (
	Finished Status = "finished"
	Stopped  Status = "stopped" // by its context; a checkpoint was left
	Diverged Status = "diverged"
)

// Result is what a run came to.
type Result struct {
	Status    Status
	Iteration int // reached
	Rows      []Row
	WallS     float64 // since the start, earlier parts of a resumed run counted in
	First     int     // iteration at which this part began
	Diverged  *DivergedError
	Mean      []float32   // final mean model; nil unless Finished
	Models    [][]float32 // final model of every agent; nil unless Finished
	// what was forecast of devices with a memory of their own, and what was taken; nil where there
	// are none
	Memory []Room

	// of the mean model's batch norm, with which the last row was measured; nil unless Finished, or
	// without batch norm
	MeanBuffers []float32
	Buffers     [][]float32 // of every agent's
}

// run is a Setup in motion.
type run struct {
	setup *Setup
	dev   device.Device
	model Model
	net   dist.Transport
	pace  *pace // of an asynchronous run: that of its director alone
	log   *zap.Logger
	opt   Options

	agents    []*agent
	actives   sync.Pool // of *active
	places    []*place  // the first is of dev and model
	snapshots chan *snapshot
	writer    *writer
	member    *member       // of a run of many processes; nil else
	hurry     chan struct{} // closed some time after the run was told to stop: evaluations shall end
	rooms     []Room        // what was forecast of devices with a memory of their own

	mu   sync.Mutex
	lost *DivergedError // the earliest

	line   *simnet.Timeline // of an asynchronous run; nil else
	ops    []chan op        // by agent
	events *pace            // of an asynchronous run: by the numbers of its events
	lostAt int              // the event of lost
}

// Run plays a setup from its start, or from the newest checkpoint in its folder. When ctx ends, the
// agents go on to the first iteration that none has reached, leave a checkpoint there, and Run
// returns with status Stopped and no error.
func Run(ctx context.Context, s *Setup, opt Options) (*Result, error) {
	r := &run{setup: s, dev: opt.Device, model: opt.Model, net: opt.Transport, log: opt.Log, opt: opt,
		snapshots: make(chan *snapshot, 2*s.Graph.N), hurry: make(chan struct{})}
	if r.log == nil {
		r.log = zap.NewNop()
	}
	r.writer = newWriter(r)
	if opt.Member != nil {
		r.member = newMember(r, opt.Member)
		r.net = opt.Member.Network
	}
	places := append([]Place{{r.dev, r.model}}, opt.Others...)
	checkPlaces(places)
	r.settleIn(places...)
	r.rooms = r.forecastRooms(places)
	if r.net == nil {
		r.net = dist.NewLocal(s.Graph.N)
	}
	res, err := r.start()
	if err != nil {
		if opt.Folder != nil {
			err = errors.Join(err, opt.Folder.close())
		}
		return nil, err
	}
	return res, r.play(ctx, res)
}

// start makes the agents, at iteration 0 or where the newest checkpoint left them.
func (r *run) start() (*Result, error) {
	s := r.setup
	if s.RealTime() && r.member == nil {
		return nil, wrong("clock", s.Config.Clock,
			"in real time each agent has a process of its own: use fspda up, or clock virtual")
	}
	if r.member != nil {
		return r.member.start()
	}
	res := &Result{}
	var ck *checkpoint
	if f := r.opt.Folder; f != nil {
		var err error
		if ck, err = f.openCheckpoint(s); err != nil {
			return nil, err
		}
		if ck != nil {
			defer ck.file.Close()
			res.First, res.WallS = ck.Iteration, ck.WallS
			r.log.Info("resuming", zap.Int("iteration", ck.Iteration), zap.String("checkpoint", ck.path))
		}
		if err := f.openMetrics(s, res.First); err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, f.rows...)
	}
	r.pace = newPace(s.Graph.N, res.First, s.Config.Iterations)
	r.drawFrom(res.First)
	r.schedule(res.First)
	x0 := r.model.Init(s.Config.Seed)
	r.agents = make([]*agent, s.Graph.N)
	for i := range r.agents {
		batch := res.First
		if s.BatchPerGradient() && ck != nil {
			batch = ck.Grads[i]
		}
		a, err := newAgent(r, i, batch)
		if err != nil {
			return nil, errors.Join(err, r.closeLoaders())
		}
		r.agents[i] = a
		a.dev.Write(a.state.X, x0) // every agent starts from the same model
		if ck != nil {
			if err := ck.restore(a); err != nil {
				return nil, errors.Join(err, r.closeLoaders())
			}
		}
	}
	return res, nil
}

func (r *run) closeLoaders() error {
	for _, a := range r.agents {
		if a != nil && a.loader != nil {
			a.loader.Close()
		}
	}
	return nil
}

// play runs agents and collector to their end.
func (r *run) play(stop context.Context, res *Result) error {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(stop))
	defer cancel(nil)
	var walking, collecting, aside sync.WaitGroup
	for _, a := range r.agents {
		if a.state == nil {
			continue // in another process
		}
		a.ctx, a.halt = context.WithCancelCause(ctx)
		defer a.halt(nil)
		walk := r.walker(a)
		walking.Go(func() {
			if err := walk(ctx, res.First); err != nil {
				cancel(err) // the first error counts, and ends everybody's wait
			}
		})
	}
	if r.line != nil {
		walking.Go(func() { r.direct(ctx, res.First) })
	}
	done := make(chan struct{})
	aside.Go(func() { r.requests(stop, done) })
	c := &collector{run: r, res: res, begin: time.Now(), before: res.WallS, pending: map[int][]*snapshot{},
		agents: r.agents,
		eval:   newEvaluator(r.setup, places(r.places)), best: bestOf(res.Rows), writer: r.writer}
	c.eval.watch = r.opt.Watch
	if r.member == nil && r.line == nil {
		c.eval.stop = r.hurry
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		if err := r.writer.work(); err != nil {
			cancel(err)
			r.writer.drain()
		}
	})
	collecting.Go(func() {
		if err := c.collect(); err != nil {
			cancel(err)
			for range r.snapshots { // nobody must wait for a collector that is gone
			}
		}
	})
	if r.member != nil {
		r.member.play(ctx, stop, cancel, c)
	}
	walking.Wait()
	if r.member != nil {
		r.member.end(ctx, stop)
	}
	close(r.snapshots)
	collecting.Wait() // a stop is still heard: the last evaluation may take long
	res.Memory = r.compareRooms()
	close(done)
	aside.Wait()
	r.writer.close()
	writing.Wait()
	res.WallS = c.wall()
	err := context.Cause(ctx)
	if f := r.opt.Folder; f != nil {
		err = errors.Join(err, f.close())
	}
	if r.member != nil {
		return r.member.finish(res, c.last, err)
	}
	if err != nil {
		return err
	}
	return r.finish(res, c.last, c.interrupted)
}

// giveBack returns snapshots to their agents.
func (r *run) giveBack(set []*snapshot) {
	for i, s := range set {
		r.agents[i].spare <- s
	}
}

// finish says how it ended.
func (r *run) finish(res *Result, last int, interrupted bool) error {
	res.Iteration = last
	switch {
	case r.lost != nil:
		res.Status, res.Diverged, res.Iteration = Diverged, r.lost, r.lost.T
		res.Models, res.Mean, res.Buffers, res.MeanBuffers = nil, nil, nil, nil
	case last == r.setup.Config.Iterations && !interrupted:
		res.Status = Finished
	case last == r.pace.stop || interrupted:
		res.Status = Stopped
		res.Models, res.Mean, res.Buffers, res.MeanBuffers = nil, nil, nil, nil
	default:
		return fmt.Errorf("train: the agents ended at iteration %d of %d for no known reason", last,
			r.setup.Config.Iterations)
	}
	return nil
}

// requests asks for checkpoints by the clock and for the end when the context ends.
func (r *run) requests(stop context.Context, done <-chan struct{}) {
	var tick <-chan time.Time
	if every := r.setup.Config.Checkpoint; every > 0 && r.opt.Folder != nil && r.member == nil {
		t := time.NewTicker(time.Duration(every * float64(time.Second)))
		defer t.Stop()
		tick = t.C
	}
	asked := false // for a checkpoint that has to wait for the one under way
	for {
		if asked && (r.member != nil || r.writer.free()) {
			asked = false
			r.pace.request(false)
		}
		select {
		case <-tick:
			if r.writer.free() { // a disk that is slow gets fewer checkpoints: they must not pile up
				r.pace.request(false)
			}
		case <-r.opt.Control.asked():
			asked = r.opt.Folder != nil
		case <-r.writer.freed: // asked is looked at again
		case <-stop.Done():
			r.opt.Control.release()
			r.hurryAfter(r.opt.grace)
			t := r.pace.request(true)
			r.log.Info("stopping: all agents go on to one iteration and leave a checkpoint there",
				zap.Int("iteration", t))
			return
		case <-done:
			return
		}
	}
}

// diverged records a divergence. The earliest counts, so that the result is the same in every run.
func (r *run) diverged(d *DivergedError) {
	for _, i := range r.pace.diverge(d.T) {
		r.agents[i].halt(errHalted)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost == nil || d.T < r.lost.T || d.T == r.lost.T && d.Agent < r.lost.Agent {
		r.lost = d
	}
}
