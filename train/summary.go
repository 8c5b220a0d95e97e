package train

import (
	"cmp"
	"errors"
	"os"

	"fspda/train/evaluate"
	"fspda/train/metric"
	"fspda/train/runfolder"
	"fspda/web"
)

// Summarize makes the summary of a run from its result and its last row.
func Summarize(s *Setup, r *Result, dev, version string) Summary {
	c := s.Config
	sum := Summary{
		Outcome: runfolder.Outcome{Algo: c.Algo, Agents: c.Agents, Iterations: r.Iteration, Status: r.Status,
			WallS: r.WallS},
		Settings: runfolder.Settings{Accounting: c.Accounting, Device: dev, Seed: c.Seed, Version: version, Dim: s.Dim,
			Data: c.Data, Model: c.Model, Graph: c.Graph, Edges: string(c.Edges), Mask: string(c.Mask),
			Metrics: string(c.Metrics),
			Density: c.Density, Partition: c.Partition, Skew: s.Skew(), Threads: s.Threads,
			Command: runfolder.CommandLine(os.Args), Machine: runfolder.Machine()},
		Memory: r.Memory,
	}
	if r.WallS > 0 {
		sum.IterationsPerS = float64(r.Iteration) / r.WallS
	}
	if len(r.Rows) == 0 {
		return sum
	}
	l := r.Rows[len(r.Rows)-1]
	if r.Status == Finished {
		sum.Failure = evaluate.Failure(r.Rows, c.Agents, s.Dim)
	}
	sum.TestScores, sum.TrainScores, sum.DualScores = l.TestScores, l.TrainScores, l.DualScores
	sum.Traffic, sum.DecodeScores = l.Traffic, l.DecodeScores
	sum.LossScaling, sum.AgentsPresent, sum.LanguageScores = l.LossScaling, l.AgentsPresent, l.LanguageScores
	sum.BN, sum.VirtualTime = evaluate.BatchNormMode(s, l.Iteration), l.Time
	sum.TimeTo50, sum.TimeTo80 = metric.TimeTo(r.Rows, 0.5), metric.TimeTo(r.Rows, 0.8)
	sum.TimeTo90, sum.TimeTo95 = metric.TimeTo(r.Rows, 0.9), metric.TimeTo(r.Rows, 0.95)
	if s.Links != nil {
		sum.Links = s.Links.String()
	}
	return sum
}

// publish writes the results of a run that ended into its folder. A stopped run gets none: it can
// be resumed.
func (r *run) publish(res *Result) error {
	f := r.opt.Folder
	if f == nil || res.Status == Stopped {
		return nil
	}
	res.Summary = Summarize(r.setup, res, r.opt.Device.Name(), cmp.Or(r.opt.Version, runfolder.ModuleVersion()))
	if err := f.WriteSummary(res.Summary); err != nil {
		return err
	}
	return r.report()
}

// report draws the plots and writes the report of a run whose results are in its folder.
func (r *run) report() error {
	f := r.opt.Folder
	if r.opt.NoReport {
		return nil
	}
	if err := errors.Join(web.WritePlots(f.Path), web.WriteReport(f.Path)); err != nil {
		return &FolderError{Path: f.Path, Got: "plots or report cannot be written", Err: err,
			Hint: "make that possible, then call again with --resume: the training is done and saved"}
	}
	return nil
}
