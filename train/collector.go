package train

import (
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/train/evaluate"
	"fspda/train/metric"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// collector gathers the agents' snapshots and, when all of one iteration are there, evaluates them
// or hands them on to be saved. Snapshots of an agent arrive in the order of iterations, so
// complete sets do too.
type collector struct {
	run     *run
	res     *Result
	begin   time.Time
	before  float64 // seconds of earlier parts of the run
	pending map[int][]*snapshot.Snapshot
	end     ending
	best    Num // largest accuracy of the mean model of a row after the start

	compared bool // memory was compared with its forecast
}

func newCollector(r *run, res *Result) *collector {
	r.eval = evaluate.New(r.setup, evaluatorsOf(r.opt.replicas()))
	r.eval.Advanced = r.live.evaluating
	if r.driver.repeatsEvaluations() && r.group.repeatsEvaluations() {
		r.eval.Stop = r.hurry
	}
	return &collector{run: r, res: res, begin: time.Now(), before: res.WallS, pending: map[int][]*snapshot.Snapshot{},
		best: metric.BestAccuracy(res.Rows)}
}

// collect works until the channel of snapshots is closed.
func (c *collector) collect() error {
	for sn := range c.run.snapshots {
		set := c.pending[sn.T]
		if set == nil {
			set = make([]*snapshot.Snapshot, c.run.setup.Graph.N)
			c.pending[sn.T] = set
		}
		set[sn.Agent] = sn
		if slices.Contains(set, nil) { // another agent's snapshot is still missing
			continue
		}
		delete(c.pending, sn.T)
		if err := c.process(set); err != nil {
			return err
		}
	}
	return nil
}

// process makes a row, then a checkpoint, of the snapshots at one iteration, if they ask for it,
// and returns them to their pools.
func (c *collector) process(set []*snapshot.Snapshot) error {
	if c.end.interrupted {
		c.run.releaseSnapshots(set)
		return nil
	}
	t := set[0].T
	c.end.iteration = t
	snapshot.FillMissing(set)
	if t > c.res.First && !c.compared { // all memory is allocated
		c.compared = true
		c.run.compareMemory(0)
	}
	var ev evaluate.Evaluation
	if set[0].Eval {
		var err error
		if ev, err = c.row(set); errors.Is(err, evaluate.ErrInterrupted) {
			c.end.interrupted = true
			c.run.log.Info("evaluation abandoned: a resumed run repeats it", zap.Int("iteration", t))
		} else if err != nil {
			return err
		}
	}
	f := c.run.opt.Folder
	save := slices.ContainsFunc(set, func(sn *snapshot.Snapshot) bool { return sn.Save })
	if !save && !c.end.interrupted || f == nil {
		c.run.releaseSnapshots(set)
		return nil
	}
	if err := f.Sync(); err != nil {
		return err
	}
	sv := runfolder.CheckpointData{Snapshots: set, WallS: c.wall()}
	if t == c.run.length() {
		sv.MeanBuffers = ev.Buffers
	}
	c.run.writer.Save(sv)
	return nil
}

// row evaluates the snapshots, writes the row, and reports it to Options.OnRow and the process
// group.
func (c *collector) row(set []*snapshot.Snapshot) (evaluate.Evaluation, error) {
	ev, err := c.run.group.evaluate(set)
	if err != nil {
		return ev, err
	}
	c.run.live.evaluated(ev.Agents)
	ev.WallS = Num(c.wall())
	c.res.Rows = append(c.res.Rows, ev.Row)
	if f := c.run.opt.Folder; f != nil {
		if ev.Iteration > 0 && ev.TestAccAvg > c.best { // a NaN is never larger
			c.best = ev.TestAccAvg
			c.run.writer.KeepBest(ev)
			if !c.run.group.gathers() { // Nobody can repeat the evaluation once its row is written.
				c.run.writer.Flush()
			}
		}
		if ev.Sample != "" {
			if err := f.AppendSample(runfolder.Sample{Iteration: ev.Iteration, Text: ev.Sample}); err != nil {
				return ev, err
			}
		}
		if err := f.Append(ev.Row); err != nil {
			return ev, err
		}
	}
	if c.run.opt.OnRow != nil {
		c.run.opt.OnRow(ev.Row)
	}
	if err := c.run.group.RowsWritten(1+c.run.setup.EvalsBefore(ev.Iteration), set); err != nil {
		return ev, err
	}
	if ev.Iteration == c.run.length() {
		c.keep(set, ev)
	}
	return ev, nil
}

// keep copies the final models into the result, unless they are in other processes.
func (c *collector) keep(set []*snapshot.Snapshot, ev evaluate.Evaluation) {
	c.res.Mean, c.res.MeanBuffers = ev.Mean, ev.Buffers
	if !c.run.group.gathers() {
		return
	}
	read := evaluate.Read
	if c.run.lends() { // the agents have ended
		read = evaluate.View
	}
	c.res.Models = read(set, func(s *snapshot.Snapshot) device.Vector { return s.X })
	if set[0].Buffers != nil {
		c.res.Buffers = evaluate.Read(set, func(s *snapshot.Snapshot) device.Vector { return s.Buffers })
	}
}

func (c *collector) wall() float64 { return c.before + time.Since(c.begin).Seconds() }
