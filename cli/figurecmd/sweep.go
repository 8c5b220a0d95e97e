package figurecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/train"
	"fspda/web"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	file, out     string
	jobs, threads int
	quiet, json   bool
	seeds         bench.Seeds
	raw           bool
}

// mostCurves is how many of the best runs a sweep draws at most.
const mostCurves = 10

func newSweep() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep -c grid.yaml",
		Short: "Search over settings, on a grid or at random, and rank the runs",
		Long: `Search over settings, on a grid or at random, and rank the runs. The file says what to search:

  base: {algo: fspda-sa, iterations: 2000}      # configuration of all runs
  grid: {alpha: [0.1, 0.3], density: [0.1, 1]}  # every combination
  random: {eta: 'log(0.0001, 0.01)'}            # each with so many draws: uniform(a,b), log(a,b), int(a,b), or a list
  samples: 5
  seeds: [1, 2, 3]                              # of each setting, or their number; judged by the mean
  metric: test_acc_avg                          # a column of metrics.csv, bits_to(0.9), time_to(0.9) or
                                                # iterations_to(0.9), for this accuracy of the mean model
  best: max                                     # or min
  bits: 1.0e+9                                  # judged at this many bits; 0 is the end of the run
  accounting: shared-seed                       # of these bits
  halving: {at: [0.25, 0.5], keep: 0.5}         # at these shares of the run the better half goes on

The sweep's folder holds a folder for each run, ranking.md and ranking.csv, evaluations.csv with every evaluation of
every run, and sweep.html with the curves of the best ten. What is done is kept and what is unfinished goes on when the
same command runs again.`,
		Example: `  fspda sweep -c grid.yaml --jobs 2
  fspda sweep -c grid.yaml --seeds 3`,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case f.file == "":
				return command.UsageErrorf("-c is missing: name the file that says what to search; --help shows one")
			case f.jobs < 1:
				return command.UsageErrorf("--jobs is %d, expected at least 1", f.jobs)
			}
			_, jobs, err := f.read()
			return checkJobs(jobs, err)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSweep(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "config", "c", "", "file that says what to search")
	fs.StringVar(&f.out, "out", "", "folder of the sweep; the default is runs/sweep-FILE")
	fs.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.Var(&f.seeds, "seeds", seedsHelp)
	fs.BoolVar(&f.raw, "raw", false, rawHelp)
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.json, "json", false, "print the ranking as JSON")
	return cmd
}

// Help of flags that sweep, figure and compare have.
const (
	seedsHelp = "seeds of each setting: their number, as in 3, or a list, as in 1,5,9; tables and plots show " +
		"means and " +
		"standard deviations"
	rawHelp = "draw the curve of every seed too"
)

// errNoValue ends a sweep that ranked nothing.
var errNoValue = errors.New("sweep: no run has a value of the metric: all diverged, or were evaluated beyond the " +
	"budget only; use other step sizes, more evaluations (eval_points), or another metric or budget")

// errRawSeed refuses --raw where no curve is a mean.
var errRawSeed = command.UsageErrorf("--raw has no effect: it draws the curve of every seed beside their mean, and " +
	"no setting has several seeds; leave it out, or give several seeds")

// read reads the file of a sweep and makes its runs.
func (f *sweepFlags) read() (*bench.Sweep, []bench.Job, error) {
	s, err := bench.ReadSweep(f.file)
	if err != nil {
		return nil, nil, err
	}
	if len(f.seeds) > 0 {
		s.Seeds = f.seeds
	}
	if f.raw && len(s.Seeds) < 2 {
		return nil, nil, errRawSeed
	}
	jobs, err := s.Jobs()
	return s, jobs, err
}

func runSweep(ctx context.Context, f sweepFlags, stdout, stderr io.Writer) error {
	s, jobs, err := f.read()
	if err != nil {
		return err
	}
	if f.out == "" {
		base := filepath.Base(f.file)
		f.out = filepath.Join(command.RunsDir, "sweep-"+strings.TrimSuffix(base, filepath.Ext(base)))
	}
	c := &bench.Campaign{Folder: f.out, Jobs: jobs, Parallel: f.jobs, Threads: f.threads, Open: newOpener().open,
		Once: true, Metric: s.Metric}
	outcomes, err := runCampaign(ctx, c, s.Run, f.quiet, stderr)
	if err != nil {
		return err
	}
	ranked, err := s.Rank(outcomes)
	if err != nil {
		return err
	}
	var md strings.Builder
	if err := s.WriteRanking(&md, ranked, false); err != nil {
		return err
	}
	if err := f.write(s, ranked, outcomes, md.String()); err != nil {
		return err
	}
	switch {
	case f.json:
		err = command.PrintJSON(stdout, s.Lines(ranked))
	case !f.quiet:
		_, err = fmt.Fprintf(stdout, "\n%s (%s)\n\n%s\n%s\n", s.Metric, s.Budget(), md.String(), s.Verdict(ranked))
	}
	if err == nil && !slices.ContainsFunc(ranked, bench.Ranked.HasValue) {
		return errNoValue
	}
	return err
}

// write writes the files of a sweep: the ranking, all evaluations, and the curves of the best.
func (f *sweepFlags) write(s *bench.Sweep, ranked []bench.Ranked, outcomes []*bench.Outcome, md string) error {
	var csv, tidy strings.Builder
	if err := errors.Join(s.WriteRanking(&csv, ranked, true), bench.WriteTidy(&tidy, outcomes)); err != nil {
		return err
	}
	if err := errors.Join(command.WriteFile(filepath.Join(f.out, "ranking.md"), md),
		command.WriteFile(filepath.Join(f.out, "ranking.csv"), csv.String()),
		command.WriteFile(filepath.Join(f.out, "evaluations.csv"), tidy.String())); err != nil {
		return err
	}
	var best []*bench.Outcome
	shown := ranked[:min(mostCurves, len(ranked))]
	for _, r := range shown {
		best = append(best, r.Setting.Outcomes...)
	}
	title := fmt.Sprintf("Sweep of %d settings", len(ranked))
	if len(shown) < len(ranked) {
		title += fmt.Sprintf(": the best %d", len(shown))
	}
	return overlay(title, []string{"Judged by the " + s.Budget() + "."}, tableOf(s.Accounting, best), titled, f.raw,
		f.out, "sweep")
}

func newCompare() *cobra.Command {
	var out, accounting string
	var levels []float64
	var asJSON, raw bool
	cmd := &cobra.Command{
		Use:   "compare RUN...",
		Short: "Compare finished or unfinished runs: a table, and their curves in the same plots",
		Long: `Compare finished or unfinished runs: a table of their last numbers and of the bits they needed to reach given
accuracies, and their curves in the same plots, as SVG, PNG and a page. A RUN is the folder of a run. Of several,
as in runs/*, those that hold no run are left out, with a note, and those that cannot be read with their errors.

Runs that differ in nothing but their seeds are one line and one curve: the mean, with the standard deviation.
evaluations.csv has every evaluation of every run.`,
		Example: "  fspda compare runs/fspda-sa-synthetic-1 runs/dsgd-synthetic-1 --accounting reference",
		Args:    command.Arguments(1, math.MaxInt, "the folders of runs to compare"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCompare(args, levels, accounting, out, raw, asJSON, cmd.OutOrStdout(),
				cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Float64SliceVar(&levels, "reach", bench.Milestones,
		"test accuracies whose cost in bits the table states")
	cmd.Flags().StringVar(&accounting, "accounting", "shared-seed",
		"how bits are counted: shared-seed, packed or reference")
	cmd.Flags().StringVar(&out, "out", "",
		"folder for the plots and tables; the default is the next free runs/compare-NUMBER")
	cmd.Flags().BoolVar(&raw, "raw", false, "draw the curve of every seed too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the table as JSON")
	return command.CompleteRuns(cmd)
}

func runCompare(folders []string, levels []float64, accounting, out string, raw, asJSON bool,
	stdout, stderr io.Writer) error {

	probe := train.Default()
	probe.Accounting = accounting
	if err := probe.Check(); err != nil {
		return err
	}
	for _, l := range levels {
		if !(l > 0 && l <= 1) {
			return &train.ConfigError{Key: "--reach", Got: fmt.Sprint(l),
				Want: "expected accuracies above 0 and at most 1, such as 0.9"}
		}
	}
	made, err := readRuns(folders, stderr)
	if err != nil {
		return err
	}
	if raw && !slices.ContainsFunc(bench.Settings(made), func(s bench.Setting) bool { return len(s.Outcomes) > 1 }) {
		return errRawSeed
	}
	if out == "" {
		out = command.NextFreeName("compare")
	}
	if err := command.MakeFolder(out); err != nil {
		return err
	}
	table := &bench.Table{Accounting: accounting, Levels: levels, Outcomes: made}
	if err := overlay(fmt.Sprintf("Comparison of %d runs", len(made)), []string{"Bits are counted once, at the " +
		"sending side, in " + accounting + " accounting."}, table, differing, raw, out, "compare"); err != nil {
		return err
	}
	var tidy strings.Builder
	if err := bench.WriteTidy(&tidy, made); err != nil {
		return err
	}
	if err := errors.Join(writeTable(out, table),
		command.WriteFile(filepath.Join(out, "evaluations.csv"), tidy.String())); err != nil {
		return err
	}
	if asJSON {
		return table.WriteJSON(stdout)
	}
	if err := table.WriteMarkdown(stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\n%s\n", filepath.Join(out, "compare.html"))
	return err
}

// readRuns reads the outcomes of runs. Of several paths, as the shell makes of runs/*, it leaves
// out those that hold no run, with a note, and those that cannot be read, with their errors.
func readRuns(paths []string, stderr io.Writer) (made []*bench.Outcome, err error) {
	runs, unread := paths, []error(nil)
	if len(paths) > 1 {
		runs = slices.DeleteFunc(slices.Clone(paths), bench.HoldsNoRun)
	}
	if len(runs) == 0 {
		runs = paths[:1] // for its error
	}
	for _, folder := range runs {
		o, err := bench.ReadOutcome(folder)
		_, missing := os.Lstat(folder)
		switch {
		case err == nil:
			made = append(made, o)
		case missing != nil: // the name may be mistyped
			return nil, err
		default:
			unread = append(unread, err)
		}
	}
	if len(made) == 0 {
		return nil, errors.Join(unread...)
	}
	for _, err := range unread {
		fmt.Fprintf(stderr, "left out: %v\n", err)
	}
	if len(runs) < len(paths) {
		left := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return slices.Contains(runs, path) })
		fmt.Fprintf(stderr, "left out, because they hold no run (no config.yaml): %s\n", strings.Join(left, ", "))
	}
	return made, nil
}

// curvesOf reads the curves of settings: means, where one has several runs.
func curvesOf(made []*bench.Outcome) ([]web.Curve, error) {
	var curves []web.Curve
	for _, s := range bench.Settings(made) {
		curve, err := curveOf(s)
		if err != nil {
			return nil, err
		}
		curves = append(curves, curve)
	}
	return curves, nil
}

// curveOf reads the curve of a setting.
func curveOf(s bench.Setting) (web.Curve, error) {
	var runs []web.Curve
	for _, o := range s.Outcomes {
		run, err := web.ReadCurve(o.Folder, o.Job.Title)
		if err != nil {
			return run, err
		}
		runs = append(runs, run)
	}
	return web.MeanCurve(s.Label(), s.Outcomes[0].Job.Group, runs), nil
}

// costTable is the table of the bits to accuracies for a page.
func costTable(t *bench.Table) web.PageTable {
	lines, note := t.Costs()
	return web.PageTable{Title: "Cost of an accuracy", Note: note, Lines: lines}
}

// seedNote says what means and bands are, if a curve has some.
func seedNote(curves []web.Curve) []string {
	if slices.ContainsFunc(curves, func(c web.Curve) bool { return c.Spread != nil }) {
		return []string{"Curves of several seeds are means, with a band of one sample standard deviation at each side."}
	}
	return nil
}

// iterationPanels returns the panels of a comparison against iterations.
func iterationPanels() []web.Panel {
	return []web.Panel{{Column: "grad_sq_worst", X: "iteration", Log: true},
		{Column: "train_loss_worst", X: "iteration", Log: true}, {Column: "consensus", X: "iteration", Log: true}}
}

// titled names curves by the titles of their settings.
func titled(settings []bench.Setting) []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.Label()
	}
	return names
}

// differing names curves by what differs between the configurations of their runs.
func differing(settings []bench.Setting) []string {
	folders := make([]string, len(settings))
	for i, s := range settings {
		folders[i] = s.Outcomes[0].Folder
	}
	names := web.Labels(folders)
	for i, s := range settings {
		s.Title = names[i]
		names[i] = s.Label()
	}
	return names
}

// overlay draws runs in the same plots: against bits and against iterations. label names the
// curves.
func overlay(title string, caption []string, t *bench.Table, label func([]bench.Setting) []string, raw bool,
	folder, name string) error {

	curves, err := curvesOf(t.Outcomes)
	if err != nil {
		return err
	}
	costs := costTable(t)
	for i, name := range label(bench.Settings(t.Outcomes)) {
		if name != curves[i].Name {
			curves[i].Name, curves[i].Run, costs.Lines[i+1][0] = name, curves[i].Name, name
		}
	}
	c := &web.Comparison{Title: title, Caption: append(caption, seedNote(curves)...), Across: 3, Curves: curves,
		Raw: raw, Tables: []web.PageTable{costs}}
	c.Panels = append(bitsPanels(bitsColumn(t.Accounting), []string{""}), iterationPanels()...)
	if slices.ContainsFunc(t.Outcomes, (*bench.Outcome).Timed) {
		c.Panels = append(c.Panels, bitsPanels("virtual_time", []string{""})...)
	}
	c.DropEmpty()
	return errors.Join(c.WriteImages(filepath.Join(folder, name)), c.WritePage(filepath.Join(folder, name+".html")))
}
