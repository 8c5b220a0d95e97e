package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fspda/bench/theory"
	"fspda/cli/command"
	"fspda/internal/cgroup"
	"fspda/web"
)

type theoryFlags struct {
	out            string
	seeds, threads int
	quiet          bool
}

const theoryLong = `Measure the rates that the paper proves, on a sum of quadratics whose minimum, gradient noise and heterogeneity are
known. Each study varies one quantity, draws the errors on logarithmic axes, fits a slope with a 95 % confidence
interval over the seeds, and states the paper's prediction beside it, also where they disagree.

list names the studies, all runs each. The folder holds NAME.svg and .png, theory.md with the slopes, theory.csv with
every number, and measurements.jsonl, from which the same command continues.`

func newTheory() *cobra.Command {
	var f theoryFlags
	cmd := &cobra.Command{
		Use:   "theory list | theory NAME... | theory all",
		Short: "Measure the paper's rates: fitted slopes beside the predicted ones",
		Long:  theoryLong,
		Example: `  fspda theory list
  fspda theory iterations speed-up
  fspda theory all --seeds 8`,
		Args: command.Arguments(1, 100, "list, all, or names of studies"),
		PreRunE: func(_ *cobra.Command, args []string) error {
			if f.seeds < 2 || f.seeds > 1000 {
				return command.UsageErrorf("--seeds is %d, expected 2 to 1000: the interval is over them", f.seeds)
			}
			if f.threads < 0 {
				return command.UsageErrorf("--threads is %d, expected at least 1, or 0 for all", f.threads)
			}
			if !isList(args) {
				_, err := theStudies(args)
				return err
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if isList(args) {
				if err := command.OnlyFlags(cmd.Flags(), "theory list"); err != nil {
					return err
				}
				return listStudies(cmd.OutOrStdout())
			}
			return runTheory(cmd.Context(), args, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.out, "out", filepath.Join(command.RunsDir, "theory"), "folder of the results")
	fs.IntVar(&f.seeds, "seeds", 5, "seeds of each point, at least 2")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	return cmd
}

// isList reports whether the arguments ask for the list of studies.
func isList(args []string) bool { return len(args) == 1 && args[0] == "list" }

func runTheory(ctx context.Context, names []string, f theoryFlags, stdout, stderr io.Writer) error {
	studies, err := theStudies(names)
	if err != nil {
		return err
	}
	if err := command.MakeFolder(f.out); err != nil {
		return err
	}
	f.threads = cmp.Or(f.threads, cgroup.Processors())
	page := theoryPage{table: theory.Header, csv: "study,curve,x,seed,y\n"}
	for _, s := range studies {
		all, err := s.Measure(ctx, filepath.Join(f.out, "measurements.jsonl"), f.seeds, f.threads,
			func(m theory.Measurement) {
				if !f.quiet {
					fmt.Fprintf(stderr, "%s, %s: x %.4g, seed %d in %s\n", m.Study, m.Series, m.X, m.Seed,
						command.Seconds(m.Seconds))
				}
			})
		if errors.Is(err, context.Canceled) {
			fmt.Fprintf(stderr, "stopped; the same command continues in %s\n", f.out)
			return command.ErrStopped
		}
		if err == nil {
			err = page.add(s, all, f.out)
		}
		if err == nil {
			err = page.write(f) // partial, until the last study
		}
		if err != nil {
			return err
		}
	}
	if f.quiet {
		return nil
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s\n", page.table, filepath.Join(f.out, "theory.md"))
	return err
}

func listStudies(w io.Writer) (err error) {
	for _, s := range theory.Studies() {
		if _, err = fmt.Fprintf(w, "%s: %s\n   %s\n", s.Name, s.Title, s.About); err != nil {
			return err
		}
	}
	return nil
}

func theStudies(names []string) (studies []theory.Study, err error) {
	if len(names) == 1 && names[0] == "all" {
		return theory.Studies(), nil
	}
	if len(names) > 1 && (slices.Contains(names, "all") || slices.Contains(names, "list")) {
		return nil, command.UsageErrorf("all and list stand alone, found theory %s: name studies, or one of these two",
			strings.Join(names, " "))
	}
	var known []string
	for _, s := range theory.Studies() {
		known = append(known, s.Name)
	}
	for _, name := range names {
		s, ok := theory.Find(name)
		if !ok {
			return nil, command.UsageErrorf("there is no study %q; there are %s, and all%s", name,
				strings.Join(known, ", "), command.DidYouMean(name, known, ""))
		}
		studies = append(studies, s)
	}
	return studies, nil
}

// theoryPage is the output of theory besides plots.
type theoryPage struct {
	table, csv, about string
	seconds           float64
}

func (p *theoryPage) add(s theory.Study, all []theory.Fitted, folder string) error {
	c := web.Comparison{Title: s.Title, Caption: []string{s.About}, Across: 1,
		Panels: []web.Panel{{Column: s.Y, X: s.X, Log: true, LogX: true}}}
	for _, f := range all {
		x, y := f.Means()
		c.Curves = append(c.Curves, web.Curve{Name: f.Legend(), Columns: map[string][]float64{s.X: x, s.Y: y}})
		x, y = f.Prediction()
		c.Curves = append(c.Curves, web.Curve{Name: fmt.Sprintf("predicted: %.3g", f.Predicted),
			Columns: map[string][]float64{s.X: x, s.Y: y}})
	}
	if err := c.WriteImages(filepath.Join(folder, s.Name)); err != nil {
		return fmt.Errorf("draw study %s: %w", s.Name, err)
	}
	var csv strings.Builder
	if err := theory.WriteCSV(&csv, s, all); err != nil {
		return err
	}
	p.csv += csv.String()
	p.about += fmt.Sprintf("\n## %s\n\n%s\n\n![%s](%s.png)\n", s.Title, s.About, s.Title, s.Name)
	for _, f := range all {
		p.table += f.Line(s)
		p.seconds += f.Seconds
	}
	return nil
}

func (p *theoryPage) write(f theoryFlags) error {
	text := fmt.Sprintf("# Fitted slopes\n\nVersion %s, seeds 1 to %d, %s of one core.\n\n%s%s", command.Version(),
		f.seeds, command.Seconds(p.seconds), p.table, p.about)
	return errors.Join(command.WriteFile(filepath.Join(f.out, "theory.md"), text),
		command.WriteFile(filepath.Join(f.out, "theory.csv"), p.csv))
}
