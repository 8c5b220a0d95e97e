package figurecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cli/command"
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
  accounting: shared-seed                       # of these bits

Every point of each grid runs with every seed of the search. The best point of a method, by the mean of the metric, runs
again with the fresh seeds. Grids of different size are refused. The folder holds the runs, tuning.md and tuning.csv
(grid, chosen values, whether one is at an end of its range, mean and standard deviation over the fresh seeds) and
tuning.html with the curves of the reported runs. What is done is kept when the same command runs again.`,
		Example: "  fspda tune -c methods.yaml --jobs 2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.file == "":
				return command.UsageErrorf("-c is missing: name the file that says what to compare; --help shows one")
			case f.jobs < 1:
				return command.UsageErrorf("--jobs is %d, expected at least 1", f.jobs)
			}
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
	if f.out == "" {
		base := filepath.Base(f.file)
		f.out = filepath.Join(command.RunsDir, "tune-"+strings.TrimSuffix(base, filepath.Ext(base)))
	}
	open := newOpener().open
	campaign := func(jobs []bench.Job, err error) ([]*bench.Outcome, error) {
		if err != nil || len(jobs) == 0 {
			return nil, err
		}
		return runCampaign(ctx, &bench.Campaign{Folder: f.out, Jobs: jobs, Parallel: f.jobs, Threads: f.threads,
			Open: open}, func(ctx context.Context, c *bench.Campaign) ([]*bench.Outcome, error) { return c.Run(ctx) },
			f.quiet, stderr)
	}
	searched, err := campaign(t.Search())
	if err != nil {
		return err
	}
	choices := t.Choose(searched)
	reported, err := campaign(t.Fresh(choices))
	if err != nil {
		return err
	}
	t.Finish(choices, reported)
	var md, csv strings.Builder
	if err := errors.Join(t.WriteMarkdown(&md, choices), t.WriteCSV(&csv, choices),
		command.WriteFile(filepath.Join(f.out, "tuning.md"), md.String()),
		command.WriteFile(filepath.Join(f.out, "tuning.csv"), csv.String())); err != nil {
		return err
	}
	if len(reported) > 0 {
		title := fmt.Sprintf("%d methods, tuned alike", len(choices))
		if err := overlay(title, []string{t.Criterion()}, tableOf(t.Accounting, reported), f.raw, f.out,
			"tuning"); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		return command.PrintJSON(stdout, t.Lines(choices))
	case f.quiet:
		return nil
	}
	_, err = fmt.Fprintf(stdout, "\n%s", md.String())
	return err
}
