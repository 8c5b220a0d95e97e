package experimentcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/train"
	"fspda/web"
)

type plotFlags struct {
	layoutFlags
	out, accounting string
	json            bool
	given           *pflag.FlagSet // flags of the command, of which some were given
}

func newPlot() *cobra.Command {
	var f plotFlags
	cmd := &cobra.Command{
		Use:   "plot RUN...",
		Short: "Draw the curves of runs, as SVG, PNG or PDF",
		Long: `Draw the curves of runs, as SVG, PNG or PDF. Of one run: training loss, accuracy, consensus error and gradient norm,
each against the iteration and against bits, into its folder plots. Of several: the same in common plots, into
--out. Of several, as in runs/*, those that hold no run are left out, with a note, and those that cannot be read
with their errors. Of the folder of a figure: its pictures again, with their titles, panels and colours.`,
		Example: "  fspda plot runs/fspda-sa-synthetic-1 --format pdf\n  fspda plot runs/* --format pdf --width " +
			"6.9in --no-title --no-notes --out figures\n  fspda plot runs/figure-9 --format pdf --width 6.9in",
		Args: command.Arguments(1, math.MaxInt, "the folders of runs to draw"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given = cmd.Flags()
			return runPlot(args, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	f.layoutFlags.declare(fs)
	fs.StringVar(&f.accounting, "accounting", "shared-seed",
		"how bits of several runs are counted: shared-seed, packed or reference")
	fs.StringVar(&f.out, "out", "",
		"folder of the plots; the default is plots in the run's folder, the folder of the figure, or the next free "+
			"runs/plots-NUMBER")
	fs.BoolVar(&f.json, "json", false, "print the names of the files as JSON")
	return command.CompleteRuns(cmd)
}

func runPlot(runs []string, f plotFlags, stdout, stderr io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	c := train.Default()
	c.Accounting = f.accounting
	if err := c.Check(); err != nil {
		return err
	}
	if len(runs) == 1 && !f.given.Changed("accounting") {
		out := cmp.Or(f.out, runs[0])
		if ok, err := redraw(runs[0], out, f.layout()); err != nil {
			return err
		} else if ok {
			return listImages(out, f, stdout)
		}
	}
	if len(runs) == 1 && f.given.Changed("accounting") {
		return command.UsageErrorf("--accounting has no effect on one run, whose plots count bits as the run did: " +
			"leave it out, or name several runs")
	}
	for _, name := range []string{"columns", "no-notes"} {
		if len(runs) == 1 && f.given.Changed(name) {
			return command.UsageErrorf("--%s has no effect on one run, whose plots are files of one panel "+
				"without notes: "+
				"leave it out, or name several runs", name)
		}
	}
	out := f.out
	var err error
	if len(runs) == 1 {
		out = cmp.Or(out, filepath.Join(runs[0], "plots"))
		if _, err = bench.ReadOutcome(runs[0]); err == nil {
			err = command.MakeFolder(out)
		}
		if err != nil {
			return err
		}
		err = web.WritePlotsTo(runs[0], out, f.layout())
	} else {
		if out == "" {
			out = command.NextFreeName("plots")
		}
		err = plotTogether(runs, f, out, stderr)
	}
	if err != nil {
		return err
	}
	return listImages(out, f, stdout)
}

// plotTogether draws several runs in the same plots.
func plotTogether(runs []string, f plotFlags, out string, stderr io.Writer) error {
	made, err := readRuns(runs, stderr)
	if err != nil {
		return err
	}
	curves, err := curvesOf(made)
	if err != nil {
		return err
	}
	if err := command.MakeFolder(out); err != nil {
		return err
	}
	sheet := func(title, name string, panels []web.Panel) error {
		c := &web.Comparison{Title: title, Panels: panels, Across: 3, Curves: curves, Layout: f.layout(),
			TimeUnit: timeUnit(made)}
		c.DropEmpty()
		return c.WriteImages(filepath.Join(out, name))
	}
	return errors.Join(sheet(fmt.Sprintf("%d runs, against bits", len(made)), "bits",
		bitsPanels(bitsColumn(f.accounting), []string{""}, areText(made))),
		sheet(fmt.Sprintf("%d runs", len(made)), "iterations", iterationPanels()))
}

// listImages prints the files that were drawn.
func listImages(out string, f plotFlags, stdout io.Writer) error {
	names := []string{}
	for _, format := range f.formats {
		found, err := filepath.Glob(filepath.Join(out, "*."+format))
		if err != nil {
			return err
		}
		names = append(names, found...)
	}
	if f.json {
		return command.PrintJSON(stdout, names)
	}
	for _, n := range names {
		if _, err := fmt.Fprintln(stdout, n); err != nil {
			return err
		}
	}
	return nil
}
