package train

import (
	"time"

	"go.uber.org/zap"

	"fspda/device"
)

// collector gathers the agents' snapshots and, when those of one iteration are complete, evaluates or saves them. Snapshots of an
// agent arrive in the order of iterations, so complete sets do too.
type collector struct {
	run     *run
	res     *Result
	eval    *evaluator
	agents  []*agent
	begin   time.Time
	before  float64 // seconds of earlier parts of the run
	pending map[int][]*snapshot
	last    int // the latest iteration whose snapshots were complete
}

// collect works until the channel of snapshots is closed.
func (c *collector) collect() error {
	for sn := range c.run.snapshots {
		set := c.pending[sn.t]
		if set == nil {
			set = make([]*snapshot, len(c.agents))
			c.pending[sn.t] = set
		}
		set[sn.agent] = sn
		if !complete(set) {
			continue
		}
		delete(c.pending, sn.t)
		if err := c.process(set); err != nil {
			return err
		}
		for i, s := range set {
			c.agents[i].spare <- s
		}
	}
	return nil
}

func complete(set []*snapshot) bool {
	for _, s := range set {
		if s == nil {
			return false
		}
	}
	return true
}

// process makes a row, then a checkpoint, of the snapshots at one iteration, as they ask.
func (c *collector) process(set []*snapshot) error {
	t := set[0].t
	c.last = t
	f := c.run.opt.Folder
	if set[0].eval {
		ev, err := c.eval.row(set)
		if err != nil {
			return err
		}
		row := ev.Row
		row.WallS = Num(c.wall())
		c.res.Rows = append(c.res.Rows, row)
		if f != nil {
			if err := f.append(row); err != nil {
				return err
			}
		}
		if c.run.opt.OnRow != nil {
			c.run.opt.OnRow(row)
		}
		if t == c.run.setup.Config.Iterations {
			c.keep(set, ev)
		}
	}
	if set[0].save && f != nil {
		if err := f.sync(); err != nil {
			return err
		}
		if err := f.writeCheckpoint(c.run.setup, c.run.dev, set, c.wall()); err != nil {
			return err
		}
		c.run.log.Info("checkpoint", zap.Int("iteration", t), zap.String("folder", f.Path))
	}
	return nil
}

// keep copies the final models into the result.
func (c *collector) keep(set []*snapshot, ev evaluation) {
	c.res.Models = c.eval.read(set, func(s *snapshot) device.Vector { return s.x })
	if set[0].buffers != nil {
		c.res.Buffers = c.eval.read(set, func(s *snapshot) device.Vector { return s.buffers })
	}
	c.res.Mean, c.res.MeanBuffers = ev.mean, ev.buffers
}

func (c *collector) wall() float64 { return c.before + time.Since(c.begin).Seconds() }
