package experimentcmd

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cli/command"
)

// tableFormats are the formats of a table, with the functions that write them.
var tableFormats = []struct {
	name  string
	write func(t *bench.Table, w io.Writer) error
}{{"markdown", (*bench.Table).WriteMarkdown}, {"latex", (*bench.Table).WriteLaTeX}, {"csv", (*bench.Table).WriteCSV},
	{"json", (*bench.Table).WriteJSON}}

func newTable() *cobra.Command {
	var f compareFlags
	var format string
	cmd := &cobra.Command{
		Use:   "table RUN...",
		Short: "Print the table of runs: their last numbers and the bits to accuracies, for a paper too",
		Long: `Print the table of runs: their last numbers, and the bits that they needed to reach given accuracies or, of
texts, perplexities. A RUN is the folder of a run, or a folder of runs, such as that of a figure or a sweep. Runs that
differ in nothing but their seeds are one line, with means and sample standard deviations.

latex prints tabular environments with the rules of the package booktabs. csv and json have all digits.`,
		Example: "  fspda table runs/figure-9 --format latex > table.tex\n  fspda table runs/* --format csv " +
			"--reach 0.8,0.9",
		Args: command.Arguments(1, math.MaxInt, "the folders of runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTable(args, f, format, cmd)
		},
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "markdown, latex, csv or json")
	f.declareTable(cmd.Flags())
	return command.CompleteRuns(cmd)
}

func runTable(folders []string, f compareFlags, format string, cmd *cobra.Command) error {
	var names []string
	for _, k := range tableFormats {
		names = append(names, k.name)
	}
	at := slices.Index(names, format)
	if at < 0 {
		return command.UsageErrorf("--format %q: expected markdown, latex, csv or json%s", format,
			command.DidYouMean(format, names, ""))
	}
	var runs []string
	for _, folder := range folders {
		inside, err := filepath.Glob(filepath.Join(folder, "*", "config.yaml"))
		if err != nil {
			return fmt.Errorf("look for runs in %s: %w", folder, err)
		}
		if !bench.HoldsNoRun(folder) || len(inside) == 0 {
			runs = append(runs, folder)
			continue
		}
		for _, path := range inside {
			runs = append(runs, filepath.Dir(path))
		}
	}
	t, err := f.table(runs, cmd)
	if err != nil {
		return err
	}
	return tableFormats[at].write(t, cmd.OutOrStdout())
}
