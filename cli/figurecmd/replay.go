package figurecmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/stat"

	"fspda/bench"
	"fspda/bench/theory"
	"fspda/cli/command"
)

const replayLong = `Repeat experiments of other papers and print their values beside ours: the difference, the share of the run that was
made, and the hours that all of it takes at this speed.

base-graph counts rounds of averaging, exactly; it takes a second. The others train networks: --scale 0.01 makes a
hundredth of the iterations, with the schedule of the shorter run, and the table says that it is partial. The folder
holds the runs, paper.md with the comparison, and what fspda figure writes. The same command continues.`

func newReplay() *cobra.Command {
	var f figureFlags
	cmd := &cobra.Command{
		Use:   "replay list | replay NAME",
		Short: "Repeat experiments of other papers, beside the printed values",
		Long:  replayLong,
		Example: `  fspda replay list
  fspda replay base-graph
  fspda replay relaysgd --only dsgd-001,relay-001,sa-001 --scale 0.1 --data-dir DIR`,
		Args: command.Arguments(1, 1, "list, or the name of one experiment"),
	}
	f.addReplay(cmd.Flags())
	f.flags = cmd.Flags()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case f.jobs < 1:
			return command.UsageErrorf("--jobs is %d, expected at least 1", f.jobs)
		case args[0] == "list":
			if err := command.OnlyFlags(f.flags, "replay list"); err != nil {
				return err
			}
			return listReplays(cmd.OutOrStdout())
		case args[0] == "base-graph":
			return f.baseGraph(cmd.OutOrStdout())
		}
		return f.replay(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// addReplay adds the flags of replay: those of figure that change no setting of the experiment but
// its length, and --set, which does.
func (f *figureFlags) addReplay(fs *pflag.FlagSet) {
	fs.Float64Var(&f.scale.Share, "scale", 1, "share of the iterations to make, above 0 and at most 1")
	fs.StringSliceVar(&f.only, "only", nil, "runs to make, by name or part of it; all if empty")
	fs.StringSliceVar(&f.without, "without", nil, "runs to leave out, by name or part of it")
	fs.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.IntVar(&f.points, "eval-points", 0, "evaluations of each run; 0 is the experiment's")
	fs.StringVar(&f.out, "out", "", "folder of the results; the default is runs/replay-NAME and the scale")
	fs.StringVar(&f.data, "data", "", "another data set, or another form of the same, such as folder")
	fs.StringVar(&f.dataDir, "data-dir", "", "folder of the data set's files")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	fs.Var(&f.seeds, "seeds", seedsHelp)
	fs.StringArrayVar(&f.set, "set", nil, "key=value over the configuration of every run; may be repeated")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	f.accounting = "shared-seed"
}

func listReplays(stdout io.Writer) error {
	all, err := bench.Replays()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "base-graph: rounds of averaging of Base-(k+1) graphs (Takezawa and others, 2023)")
	for _, r := range all {
		fmt.Fprintf(stdout, "%s: %s\n   runs: %s\n   %s\n", r.ID, r.Title, strings.Join(r.RunNames(), ", "), r.Source)
	}
	return nil
}

// baseGraph writes the comparison of graphs.
func (f *figureFlags) baseGraph(stdout io.Writer) error {
	if err := command.OnlyFlags(f.flags, "replay base-graph, which trains nothing and is exact", "out", "threads",
		"quiet"); err != nil {
		return err
	}
	var text strings.Builder
	if err := theory.WriteBaseGraphs(&text); err != nil {
		return err
	}
	f.out = cmp.Or(f.out, filepath.Join(command.RunsDir, "replay-base-graph"))
	if err := command.MakeFolder(f.out); err != nil {
		return err
	}
	if err := command.WriteFile(filepath.Join(f.out, "paper.md"), text.String()); err != nil || f.quiet {
		return err
	}
	_, err := io.WriteString(stdout, text.String())
	return err
}

// replay makes the runs of an experiment.
func (f *figureFlags) replay(ctx context.Context, name string, stdout, stderr io.Writer) error {
	fig, err := bench.FindReplay(name)
	if err != nil {
		return err
	}
	if len(f.seeds) > 0 && f.changed("seed") {
		return command.UsageErrorf("--seed and --seeds are both set: leave one of the two out")
	}
	if f.out == "" {
		f.out = filepath.Join(command.RunsDir, "replay-"+name)
		if f.scale.Share != 1 {
			f.out += "-" + strconv.FormatFloat(f.scale.Share, 'g', -1, 64)
		}
	}
	for _, pair := range f.set {
		switch key, _, _ := strings.Cut(pair, "="); strings.TrimSpace(key) {
		case "iterations", "epochs":
			return command.UsageErrorf("--set %s: the share of the paper's run is that of --scale, set it instead",
				pair)
		}
	}
	f.file = name // it is none of the paper's figures
	return runFigure(ctx, fig, *f, stdout, stderr)
}

// writeComparison writes the printed values beside the measured ones as a table in Markdown: the
// mean accuracy of the agents at the last evaluation, its difference, the share of the iterations
// that was made, and the hours that the whole run takes at this speed. The runs are a share of the
// figure's. The settings of the runs follow, as they may differ from those of the source.
func writeComparison(folder string, fig *bench.Figure, share float64, made []*bench.Outcome, settings []string) error {
	var b strings.Builder
	b.WriteString("| run | paper | ours | difference | share of the iterations | seconds | hours for all |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, s := range bench.Settings(made) {
		at := slices.IndexFunc(fig.Runs, func(r bench.FigureRun) bool { return r.Name == s.Name })
		if at >= 0 {
			b.WriteString(comparisonLine(fig.Runs[at], share, s))
		}
	}
	fmt.Fprintf(&b, "\nOurs: %s\n", strings.Join(settings, " "))
	if fig.Source != "" {
		fmt.Fprintf(&b, "\n%s\n", fig.Source)
	}
	return command.WriteFile(filepath.Join(folder, "paper.md"), b.String())
}

// comparisonLine writes the line of a setting.
func comparisonLine(r bench.FigureRun, share float64, s bench.Setting) string {
	var accuracy, seconds []float64
	done, all := 0, 0.0
	for _, o := range s.Outcomes {
		last := o.Last()
		accuracy = append(accuracy, 100*float64(last.TestAccMean))
		seconds = append(seconds, float64(last.WallS))
		done, all = last.Iteration, float64(o.Job.Config.Iterations)/share
	}
	mean, std := stat.MeanStdDev(accuracy, nil)
	ours := fmt.Sprintf("%.2f", mean)
	if len(accuracy) > 1 {
		ours += fmt.Sprintf(" ± %.2f", std)
	}
	paper, difference := "–", "–"
	if r.Printed != nil {
		paper, difference = fmt.Sprintf("%.2f", *r.Printed), fmt.Sprintf("%+.2f", mean-*r.Printed)
	}
	part, hours := float64(done)/all, "–"
	took := stat.Mean(seconds, nil)
	if done > 0 {
		hours = fmt.Sprintf("%.1f", took/part/3600)
	}
	if part < 1 && r.Printed != nil {
		difference += " (partial)"
	}
	title := r.Title
	if r.Group != "" {
		title += ", " + r.Group
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %.4g %% | %.0f | %s |\n", title, paper, ours, difference, 100*part,
		took, hours)
}
