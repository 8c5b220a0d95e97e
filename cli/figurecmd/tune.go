package figurecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/web"
)

func newTune() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "tune -c methods.yaml",
		Short: "Compare methods with the same budget of tuning each, on seeds that were not tuned on",
		Long: `Compare methods with the same budget of tuning each, on seeds that were not tuned on. The file says what to compare:

  base: {iterations: 2000, partition: sorted}   # configuration of all runs
  methods:                                      # each with its configuration and its grid
    - {set: {algo: fspda-sa}, grid: {alpha: [0.1, 0.3, 1], eta: [0.001, 0.01, 0.1]}}
    - {set: {algo: dsgd, order: atc}, grid: {alpha: [0.1, 0.3, 1], theta: [0.2, 0.35, 0.5]}}
  seeds: [101, 102]                             # of the search
  report: [1, 2, 3]                             # fresh seeds, for the chosen points
  metric: test_acc_avg                          # or bits_to(0.9), time_to(0.9)
  best: max                                     # or min
  bits: 1.0e+9                                  # judged within this many bits; 0 is no limit
  seconds: 0                                    # and within so much virtual time; 0 is no limit
  budgets: [{bits: 1.0e+9}, {seconds: 60}]      # or a choice and a table for each of several budgets
  accounting: shared-seed                       # of these bits
  network: {gradient_ms: 5}                     # simulated links, in place of a file of the key links

Every point of each grid runs with every seed of the search. The best point of a method, by the mean of the metric, runs
again with the fresh seeds. Grids of different size are refused. The folder holds the runs, tuning.md and tuning.csv
(grid, chosen values, whether one is at an end of its range, mean and standard deviation over the fresh seeds),
ranking.svg and .png, and tuning.html, .svg and .png with the curves of the reported runs until the budget is spent, one
plot for each group of methods. What is done is kept when the same command runs again.`,
		Example: "  fspda tune -c methods.yaml --jobs 2",
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case f.file == "":
				return command.UsageErrorf("-c is missing: name the file that says what to compare; --help shows one")
			case f.jobs < 1:
				return command.UsageErrorf("--jobs is %d, expected at least 1", f.jobs)
			}
			t, err := bench.ReadTuning(f.file)
			if err != nil {
				return err
			}
			return checkJobs(t.Search())
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTune(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "config", "c", "", "file that says what to compare")
	fs.StringVar(&f.out, "out", "", "folder of the runs; the default is runs/tune-FILE")
	fs.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.json, "json", false, "print the table as JSON")
	return cmd
}

func runTune(ctx context.Context, f sweepFlags, stdout, stderr io.Writer) error {
	t, err := bench.ReadTuning(f.file)
	if err != nil {
		return err
	}
	base := filepath.Base(f.file)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	f.out = cmp.Or(f.out, filepath.Join(command.RunsDir, "tune-"+base))
	t.Title = cmp.Or(t.Title, fmt.Sprintf("%d methods, tuned alike", len(t.Methods)))
	return playTuning(ctx, t, f, stdout, stderr)
}

// playTuning makes the runs of a tuning, and writes its tables and plots.
func playTuning(ctx context.Context, t *bench.Tuning, f sweepFlags, stdout, stderr io.Writer) error {
	if err := f.writeNetwork(t); err != nil {
		return err
	}
	open := newOpener().open
	campaign := func(jobs []bench.Job, err error) ([]*bench.Outcome, error) {
		if err != nil || len(jobs) == 0 {
			return nil, err
		}
		return runCampaign(ctx, &bench.Campaign{Folder: f.out, Jobs: jobs, Parallel: f.jobs, Threads: f.threads,
			Open: open, Metric: t.Metric},
			func(ctx context.Context, c *bench.Campaign) ([]*bench.Outcome, error) { return c.Run(ctx) },
			f.quiet, stderr)
	}
	searched, err := campaign(t.Search())
	if err != nil {
		return err
	}
	results := t.Choose(searched)
	reported, err := campaign(t.Fresh(results))
	if err != nil {
		return err
	}
	if err := t.Finish(results, reported); err != nil {
		return err
	}
	var md, csv strings.Builder
	if err := errors.Join(t.WriteMarkdown(&md, results), t.WriteCSV(&csv, results),
		command.WriteFile(filepath.Join(f.out, "tuning.md"), md.String()),
		command.WriteFile(filepath.Join(f.out, "tuning.csv"), csv.String())); err != nil {
		return err
	}
	if len(reported) > 0 {
		if err := drawTuning(t, results, reported, f); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		return command.PrintJSON(stdout, t.Lines(results))
	case f.quiet:
		return nil
	}
	_, err = fmt.Fprintf(stdout, "\n%s", md.String())
	return err
}

// writeNetwork writes the network of a tuning to the folder, for its runs.
func (f *sweepFlags) writeNetwork(t *bench.Tuning) error {
	if len(t.Network) == 0 {
		return nil
	}
	text, err := t.LinksText()
	path := filepath.Join(f.out, "network.yaml")
	t.Base = append(t.Base, yaml.MapItem{Key: "links", Value: path})
	if err = errors.Join(err, command.MakeFolder(f.out)); err != nil {
		return err
	}
	return command.WriteFile(path, text)
}

// drawTuning draws a ranking of the methods, and the curves of the reported runs until their budget
// is spent: a plot for each group of methods and a page with all.
func drawTuning(t *bench.Tuning, results []bench.TuneResult, reported []*bench.Outcome, f sweepFlags) error {
	caption := []string{t.Criterion()}
	ranking := &web.Ranking{Title: t.Title, Caption: caption}
	sheets := map[string]*web.Comparison{}
	page := &web.Comparison{Title: t.Title, Across: len(results), Raw: f.raw,
		Tables: []web.PageTable{costTable(tableOf(t.Accounting, reported))}}
	for _, g := range t.Groups() {
		sheets[g] = &web.Comparison{Title: strings.TrimPrefix(t.Title+": "+g, ": "), Across: len(results), Raw: f.raw}
		if g == "" {
			sheets[g].Title = t.Title
		}
	}
	for _, r := range results {
		at := t.At(r.Budget)
		dots := web.RankingPanel{Title: at, Column: t.Metric, Best: t.Best}
		for i, c := range r.Choices {
			g := t.Methods[i].Group
			dots.Dots = append(dots.Dots, web.Dot{Name: c.Method, Mean: c.Mean, Std: c.Std,
				Marked: strings.HasPrefix(t.Algo(i), "fspda")})
			curve, err := tunedCurve(t, r.Budget, c)
			if err != nil {
				return err
			}
			curve.Group, curve.Style = g+" "+at, 1+t.IndexInGroup(i)
			page.Curves, sheets[g].Curves = append(page.Curves, curve), append(sheets[g].Curves, curve)
		}
		ranking.Panels = append(ranking.Panels, dots)
		for _, g := range t.Groups() {
			x := map[bool]string{true: "virtual_time", false: bitsColumn(t.Accounting)}[r.Budget.Seconds > 0]
			p := web.Panel{Title: at, Group: g + " " + at, Column: t.Column(), X: x}
			sheets[g].Panels = append(sheets[g].Panels, p)
			p.Title = strings.TrimPrefix(g+", "+at, ", ")
			page.Panels = append(page.Panels, p)
		}
	}
	page.Caption = append(caption, seedNote(page.Curves)...)
	errs := []error{page.WritePage(filepath.Join(f.out, "tuning.html")),
		ranking.WriteImages(filepath.Join(f.out, "ranking"))}
	for g, sheet := range sheets {
		sheet.Caption = page.Caption
		errs = append(errs, sheet.WriteImages(filepath.Join(f.out, strings.TrimSuffix("tuning-"+
			strings.ReplaceAll(g, " ", "-"), "-"))))
	}
	return errors.Join(errs...)
}

// tunedCurve is the mean curve of a choice until its budget is spent.
func tunedCurve(t *bench.Tuning, b bench.Budget, c bench.Choice) (web.Curve, error) {
	var runs []web.Curve
	for _, o := range c.Outcomes {
		run, err := web.ReadCurve(o.Folder, c.Method)
		if err != nil {
			return run, err
		}
		within := t.Within(b, o)
		for name, column := range run.Columns {
			run.Columns[name] = column[:min(within, len(column))]
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return web.Curve{Name: c.Method}, nil
	}
	return web.MeanCurve(c.Method, "", runs), nil
}
