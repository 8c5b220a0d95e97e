package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"fspda/device"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/memory"
	"fspda/train/runfolder"
)

// Campaign is a list of runs, each in a subfolder of Folder. It can be stopped and run again:
// finished runs are kept, unfinished ones are resumed, and a subfolder with another configuration
// is an error before anything runs.
type Campaign struct {
	Folder   string
	Jobs     []Job
	Parallel int // runs at a time; they share the cores
	Threads  int // cores of all runs together
	Open     func(train.Config) (*train.Setup, train.Model, device.Device, error)
	Report   bool        // plots and a report in the folders of finished runs
	OnEvent  func(Event) // called by one goroutine at a time; may be nil
	Version  string
	Once     bool    // a run that would be the same as an earlier one is left out
	Metric   string  // metric of which every run must have numbers; empty: none
	Panels   []Panel // panels; a run must have numbers for each

	// Before is called with the unfinished runs when all are checked and none has started. An error
	// ends the campaign. It may be nil.
	Before func(ctx context.Context, runs []Unfinished) error

	// Until, if above 0, is the share of their iterations that the runs make: they stop with a
	// checkpoint after the first evaluation there or later, and their outcomes have the rows up to it
	Until float64
}

// Unfinished is a run that a campaign is about to make or to resume.
type Unfinished struct {
	Config train.Config
	From   int // From is the iteration of its latest checkpoint; 0 if it has none.
}

// Event is a progress report of a run.
type Event struct {
	Job       int
	Kind      EventKind
	Iteration int
	Row       train.Row    // last row, set with Evaluated and Ended
	Outcome   *Outcome     // result of the run, set with Ended and Kept
	Same      int          // number of the job that is the same run, set with LeftOut
	Setup     *train.Setup // setup of the run, set with Started, Stepped and Evaluated
	Memory    uint64       // bytes that the run is expected to take, set with Started
}

// EventKind is the kind of an Event.
type EventKind int

const (
	AlreadyDone EventKind = iota // the run was finished before
	Started                      // the run has started, or was resumed if Iteration > 0
	Stepped                      // the run has reached Iteration
	Evaluated                    // there is a new Row
	Ended
	LeftOut // another job is the same run
)

// Outcome is the result of a run.
type Outcome struct {
	Job    Job // job with the resolved configuration
	Folder string
	Status train.Status
	Rows   []train.Row
	WallS  float64

	Failure string  // reason why the run has failed to converge, see train.Summary; empty: it has converged
	Dropped float64 // share of the run at which a sweep gave it up; 0: it did not
}

type planned struct {
	job    Job
	folder string
	done   bool
	limit  int // iteration of the last evaluation to make; 0: all
	unused []config.Unused
	same   int               // the earlier job that is the same run; -1: none
	lacks  map[string]string // columns that the run does not fill, with the settings that would fill them
}

// Run runs all jobs and returns their outcomes in order. When ctx ends, the active runs write
// checkpoints; the outcomes of unfinished runs, and of runs left out by Once, are nil, and the
// error is the cause of ctx. A run that diverges is an outcome, not an error.
func (c *Campaign) Run(ctx context.Context) ([]*Outcome, error) {
	plans, err := c.plan()
	if err != nil {
		return nil, err
	}
	if c.Before != nil {
		var runs []Unfinished
		for _, p := range plans {
			if !p.done && p.same < 0 {
				runs = append(runs, Unfinished{p.job.Config, runfolder.LatestIteration(p.folder)})
			}
		}
		if err := c.Before(ctx, runs); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(c.Folder, 0o777); err != nil {
		return nil, &train.FolderError{Path: c.Folder, Got: "cannot be made", Err: err,
			Hint: "choose another folder with --out"}
	}
	p := &campaignRun{Campaign: c, outcomes: make([]*Outcome, len(plans)), errs: make([]error, len(plans))}
	ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(1, min(c.Parallel, len(plans))) {
		wg.Go(func() {
			for i := range next {
				if p.errs[i] = p.runJob(ctx, i, plans[i]); p.errs[i] != nil {
					p.cancel(p.errs[i]) // the others stop with checkpoints
				}
			}
		})
	}
	for i := range plans {
		if ctx.Err() != nil {
			break
		}
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	if err := errors.Join(p.errs...); err != nil {
		return p.outcomes, err
	}
	return p.outcomes, ctx.Err()
}

// plan resolves all jobs and inspects their folders, so that every error is reported before the
// first run starts.
func (c *Campaign) plan() ([]planned, error) {
	var errs []error
	var plans []planned
	first := map[string]int{} // indexed by effective configuration
	said := map[string]bool{} // errors that several runs share, such as missing data, are reported once
	for i, job := range c.Jobs {
		if c.Threads > 0 {
			job.Config.Threads = max(1, c.Threads/max(1, min(c.Parallel, len(c.Jobs))))
		}
		s, _, _, err := c.Open(job.Config)
		if err != nil {
			if !said[err.Error()] {
				said[err.Error()] = true
				errs = append(errs, fmt.Errorf("run %s: %w", job.Name, err))
			}
			continue
		}
		p := planned{job: job, folder: filepath.Join(c.Folder, job.Name), unused: s.Unused(job.Config), same: -1,
			lacks: lacking(s)}
		if k, ok := first[s.Effective(job.Config)]; !ok {
			first[s.Effective(job.Config)] = i
		} else if c.Once {
			p.same = k
		}
		p.job.Config = s.Config.Stored()
		p.limit = c.limit(s)
		p.done, err = finished(p.folder, s.Config.Stored())
		errs = append(errs, err)
		plans = append(plans, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return plans, errors.Join(refuseUnused(plans), c.checkColumns(plans))
}

// limit returns the iteration of the first evaluation at the share Until of the run; 0 if that is
// the end.
func (c *Campaign) limit(s *train.Setup) int {
	if c.Until <= 0 || c.Until >= 1 {
		return 0
	}
	for k := range s.EvalCount() {
		if t := s.EvalPoint(k); float64(t) >= c.Until*float64(s.Config.Iterations) && t < s.Config.Iterations {
			return t
		}
	}
	return 0
}

// refuseUnused refuses keys that runs share and that have an effect on none of them.
func refuseUnused(plans []planned) error {
	var errs []error
	seen := map[string]bool{}
	for _, p := range plans {
		for _, u := range p.unused {
			sharing, lacking := 0, 0
			for _, q := range plans {
				if slices.Contains(q.job.Shared, u.Key) {
					sharing++
					if slices.ContainsFunc(q.unused, func(v config.Unused) bool { return v.Key == u.Key }) {
						lacking++
					}
				}
			}
			if sharing > 0 && lacking == sharing && !seen[u.Key] {
				errs = append(errs, u.Error(fmt.Sprintf("any of the %d runs", sharing)))
			}
			seen[u.Key] = true
		}
	}
	return errors.Join(errs...)
}

// finished reports whether a folder holds a finished run of this configuration. A run of another
// configuration is an error.
func finished(folder string, c train.Config) (bool, error) {
	old, err := train.ReadConfig(folder)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &train.FolderError{Path: folder, Got: "cannot be read", Err: err}
	}
	if diff := c.Differences(old); len(diff) > 0 {
		return false, &train.FolderError{Path: folder, Got: fmt.Sprintf("holds a run of another configuration: %s",
			diff[0]), Hint: "choose another folder with --out, or give the same settings"}
	}
	_, err = os.Stat(filepath.Join(folder, "summary.json"))
	return err == nil, nil
}

// campaignRun is the state of Campaign.Run.
type campaignRun struct {
	*Campaign
	cancel   context.CancelCauseFunc
	outcomes []*Outcome
	errs     []error
	mu       sync.Mutex
}

func (p *campaignRun) notify(e Event) {
	if p.OnEvent == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.OnEvent(e)
}

// runJob runs one job, or reads its outcome if it was finished before.
func (p *campaignRun) runJob(ctx context.Context, i int, plan planned) error {
	if plan.same >= 0 {
		p.notify(Event{Job: i, Kind: LeftOut, Same: plan.same})
		return nil
	}
	out, err := plan.made()
	if err != nil {
		return err
	}
	if out != nil {
		p.outcomes[i] = out
		p.notify(Event{Job: i, Kind: AlreadyDone, Iteration: plan.job.Config.Iterations, Outcome: out, Row: out.Last()})
		return nil
	}
	if out, err = p.train(ctx, i, plan); err != nil || out == nil {
		return err
	}
	p.outcomes[i] = out
	p.notify(Event{Job: i, Kind: Ended, Iteration: out.Last().Iteration, Row: out.Last(), Outcome: out})
	return nil
}

// made returns the outcome of a run that has nothing left to do, from its folder; nil if it has.
func (p planned) made() (*Outcome, error) {
	if !p.done && p.limit == 0 {
		return nil, nil
	}
	out, err := ReadOutcome(p.folder)
	if !p.done && (err != nil || out.Last().Iteration < p.limit) {
		return nil, nil // no evaluation yet, or too few
	}
	if err != nil {
		return nil, err
	}
	out.Job = p.job
	return p.cut(out), nil
}

// cut leaves out the evaluations beyond the limit.
func (p planned) cut(o *Outcome) *Outcome {
	if p.limit == 0 {
		return o
	}
	kept := 0
	for kept < len(o.Rows) && o.Rows[kept].Iteration <= p.limit {
		kept++
	}
	if kept < len(o.Rows) || o.Status == "" {
		o.Status = train.Stopped
	}
	o.Rows = o.Rows[:kept]
	return o
}

// train runs a job to its end, or to its limit. It returns nil if the run was stopped by ctx.
func (p *campaignRun) train(ctx context.Context, i int, plan planned) (*Outcome, error) {
	named := func(err error) error { return fmt.Errorf("run %s: %w", plan.job.Name, err) }
	s, m, dev, err := p.Open(plan.job.Config)
	if err != nil {
		return nil, named(err)
	}
	_, old := os.Stat(filepath.Join(plan.folder, "config.yaml"))
	folder, err := train.OpenFolder(plan.folder, s, old == nil)
	if err != nil {
		return nil, named(err)
	}
	began := false
	within, stop := context.WithCancel(ctx)
	defer stop()
	res, err := train.Run(within, s, train.Options{Device: dev, Model: m, Folder: folder, Version: p.Version,
		NoReport: !p.Report,
		OnRow: func(r train.Row) {
			p.notify(Event{Job: i, Kind: Evaluated, Iteration: r.Iteration, Row: r, Setup: s})
			if plan.limit > 0 && r.Iteration >= plan.limit {
				stop()
			}
		},
		OnStep: func(t int) {
			event := Event{Job: i, Kind: Stepped, Iteration: t, Setup: s}
			if !began {
				event.Kind, event.Memory, began = Started, memory.Footprint(s, dev), true
			}
			p.notify(event)
		}})
	if err != nil {
		return nil, named(err)
	}
	out := &Outcome{Job: plan.job, Folder: plan.folder, Status: res.Status, Rows: res.Rows, WallS: res.WallS,
		Failure: res.Summary.Failure}
	if res.Status == train.Stopped && (plan.limit == 0 || out.Last().Iteration < plan.limit) {
		return nil, nil
	}
	return plan.cut(out), nil
}

func (o *Outcome) Last() train.Row {
	if len(o.Rows) == 0 {
		return train.Row{}
	}
	return o.Rows[len(o.Rows)-1]
}
