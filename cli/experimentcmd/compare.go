package experimentcmd

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/train"
	"fspda/web"
)

func newCompare() *cobra.Command {
	var f compareFlags
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
			return runCompare(args, f, cmd)
		},
	}
	f.declareTable(cmd.Flags())
	cmd.Flags().StringVar(&f.out, "out", "",
		"folder for the plots and tables; the default is the next free runs/compare-NUMBER")
	cmd.Flags().BoolVar(&f.raw, "raw", false, rawHelp)
	cmd.Flags().BoolVar(&f.json, "json", false, "print the table as JSON")
	f.declare(cmd.Flags())
	return command.CompleteRuns(cmd)
}

type compareFlags struct {
	layoutFlags
	levels          []float64
	out, accounting string
	raw, json       bool
}

func (f *compareFlags) declareTable(fs *pflag.FlagSet) {
	fs.Float64SliceVar(&f.levels, "reach", nil,
		"test accuracies, or perplexities of texts, whose cost in bits the table "+
			"states (default "+strings.Trim(strings.ReplaceAll(fmt.Sprint(bench.Milestones), " ", ","),
			"[]")+", and round perplexities)")
	fs.StringVar(&f.accounting, "accounting", "shared-seed", "how bits are counted: shared-seed, packed or reference")
}

func (f *compareFlags) table(folders []string, cmd *cobra.Command) (*bench.Table, error) {
	probe := train.Default()
	probe.Accounting = f.accounting
	if err := probe.Check(); err != nil {
		return nil, err
	}
	for _, l := range f.levels {
		if !(l > 0 && l < 1e12) {
			return nil, &train.ConfigError{Key: "--reach", Got: fmt.Sprint(l),
				Want: "expected accuracies above 0 and at most 1, such as 0.9, or perplexities above 1"}
		}
	}
	made, err := readRuns(folders, cmd.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	text := areText(made)
	for _, l := range f.levels {
		if text && l <= 1 {
			return nil, &train.ConfigError{Key: "--reach", Got: fmt.Sprint(l),
				Want: "expected perplexities above 1, such as 20: the runs train on texts"}
		}
		if !text && l > 1 {
			return nil, &train.ConfigError{Key: "--reach", Got: fmt.Sprint(l),
				Want: "expected accuracies above 0 and at most 1, such as 0.9"}
		}
	}
	return &bench.Table{Accounting: f.accounting, Levels: f.levels, Outcomes: made}, nil
}

func runCompare(folders []string, f compareFlags, cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	table, err := f.table(folders, cmd)
	if err != nil {
		return err
	}
	made, stdout := table.Outcomes, cmd.OutOrStdout()
	if f.raw && !slices.ContainsFunc(bench.Settings(made), func(s bench.Setting) bool { return len(s.Outcomes) > 1 }) {
		return errRawSeed
	}
	out := f.out
	if out == "" {
		out = command.NextFreeName("compare")
	}
	if err := command.MakeFolder(out); err != nil {
		return err
	}
	if err := overlay(web.Comparison{Title: fmt.Sprintf("Comparison of %d runs", len(made)), Caption: []string{
		"Bits are counted once, at the sending side, in " + f.accounting + " accounting."}, Raw: f.raw,
		Layout: f.layout()},
		table, differing, out, "compare"); err != nil {
		return err
	}
	if err := errors.Join(writeTable(out, table), writeEvaluations(out, made)); err != nil {
		return err
	}
	if f.json {
		return table.WriteJSON(stdout)
	}
	if err := table.WriteMarkdown(stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\n%s\n", filepath.Join(out, "compare.html"))
	return err
}

func writeEvaluations(folder string, made []*bench.Outcome) error {
	var tidy strings.Builder
	if err := bench.WriteTidy(&tidy, made); err != nil {
		return err
	}
	return command.WriteFile(filepath.Join(folder, "evaluations.csv"), tidy.String())
}

// readRuns reads the outcomes of runs. Of several paths, as the shell makes of runs/*, it leaves
// out folders that hold no run, with a note, and runs that cannot be read, with their errors.
func readRuns(paths []string, stderr io.Writer) (made []*bench.Outcome, err error) {
	runs, unread := paths, []error(nil)
	if len(paths) > 1 {
		runs = slices.DeleteFunc(slices.Clone(paths), bench.HoldsNoRun)
	}
	if len(runs) == 0 {
		runs = paths[:1] // reading the first path gives the error
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

func costTable(t *bench.Table) web.PageTable {
	lines, note := t.Costs()
	return web.PageTable{Title: "Cost of an accuracy", Note: note, Lines: lines}
}

// seedNote explains means and bands, if a curve has some.
func seedNote(curves []web.Curve) []string {
	if slices.ContainsFunc(curves, func(c web.Curve) bool { return c.Spread != nil }) {
		return []string{"Curves of several seeds are means, with a band of one sample standard deviation at each side."}
	}
	return nil
}

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

// differing names curves by the differences between the configurations of their runs.
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
func overlay(c web.Comparison, t *bench.Table, label func([]bench.Setting) []string, folder, name string) error {
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
	c.Caption, c.Across, c.Curves = append(c.Caption, seedNote(curves)...), 3, curves
	c.Tables = []web.PageTable{costs}
	text := areText(t.Outcomes)
	c.Panels = append(bitsPanels(bitsColumn(t.Accounting), []string{""}, text), iterationPanels()...)
	if slices.ContainsFunc(t.Outcomes, (*bench.Outcome).Timed) {
		c.Panels = append(c.Panels, bitsPanels("virtual_time", []string{""}, text)...)
	}
	c.DropEmpty()
	return errors.Join(c.WriteImages(filepath.Join(folder, name)), c.WritePage(filepath.Join(folder, name+".html")),
		writeCaption(folder, &c))
}
