package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/bench/theory"
	"fspda/cli/command"
	"fspda/train"
	"fspda/web"
)

// drawSchedule draws step sizes. It trains nothing.
func (s *study) drawSchedule(jobs []bench.Job) error {
	var curves []web.Curve
	lines := []scheduleLine{}
	for _, j := range jobs {
		c := s.Steps.Columns(j.Config)
		curves = append(curves, web.Curve{Name: j.Title, Columns: c})
		lines = append(lines, scheduleLine{j.Title, c["iteration"], c["epoch"], c["lr"], c["eta"]})
	}
	c := &web.Comparison{Title: s.title(), Caption: []string{s.About}, Panels: s.panels(), Across: 2, Curves: curves,
		Layout: s.layout()}
	if err := errors.Join(command.MakeFolder(s.folder), c.WriteImages(filepath.Join(s.folder, "figure")),
		c.WritePage(filepath.Join(s.folder, "figure.html"))); err != nil {
		return err
	}
	switch {
	case s.json:
		return command.PrintJSON(s.stdout, lines)
	case s.quiet:
		return nil
	}
	_, err := fmt.Fprintln(s.stdout, filepath.Join(s.folder, "figure.html"))
	return err
}

// scheduleLine is a curve of a figure that draws step sizes, in JSON.
type scheduleLine struct {
	Run       string    `json:"run"`
	Iteration []float64 `json:"iteration"`
	Epoch     []float64 `json:"epoch"`
	LR        []float64 `json:"lr"`
	Eta       []float64 `json:"eta"`
}

type figureLine struct {
	Number   int      `json:"number"` // 0: it has a name only
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Runs     []string `json:"runs"`
	Expected string   `json:"expected"`
	Seconds  *float64 `json:"seconds"` // estimated time on this machine; null if not requested or not known
	time     string   // the same as text; empty if not requested
}

func (l figureLine) String() string {
	head, runs := fmt.Sprintf("%d  %s", l.Number, l.ID), "runs"
	if l.Number == 0 {
		head, runs = l.ID, "methods"
	}
	text := fmt.Sprintf("%s: %s\n   %s: %s\n   expected: %s\n", head, l.Title, runs, strings.Join(l.Runs,
		", "), l.Expected)
	if l.time != "" {
		text += "   time" + l.time + "\n"
	}
	return text
}

// listFigures prints the figures with their expected outcome and their time.
func listFigures(f *flags, cmd *cobra.Command) error {
	if err := command.OnlyFlags(f.given, "figure list", "flavour", "scale", "retune", "threads", "eval-points", "data",
		"data-dir", "seed", "set", "no-time", "json"); err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	all, err := bench.Figures()
	if err != nil {
		return err
	}
	lines := []figureLine{}
	for _, e := range all {
		line := figureLine{Number: e.Number, ID: e.ID, Title: e.Title, Runs: e.RunNames(), Expected: e.About}
		if e.Search == nil {
			if err := f.timeOf(cmd.Context(), e, &line); err != nil {
				return err
			}
		}
		if lines = append(lines, line); f.json {
			continue
		}
		if _, err := fmt.Fprint(stdout, line); err != nil { // the next figure is measured for seconds
			return err
		}
	}
	if f.json {
		return command.PrintJSON(stdout, lines)
	}
	_, err = fmt.Fprintf(stdout, "\nflavours: %s; 3 is a sketch\n", strings.Join(bench.VariantNames, ", "))
	return err
}

// timeOf measures how long a figure takes on this machine.
func (f *flags) timeOf(ctx context.Context, e *bench.Experiment, line *figureLine) error {
	switch {
	case e.Steps != nil:
		line.time = ": none, it draws step sizes"
		return nil
	case f.noTime:
		return nil
	}
	jobs, err := e.Jobs(f.options(e))
	if err != nil {
		return err
	}
	cal := &bench.Calibration{Path: filepath.Join(command.RunsDir, "calibration.json"), Open: newOpener().open,
		Threads: f.threads, Version: command.Version()}
	took, err := cal.Forecast(ctx, jobs)
	if bad := (*train.ConfigError)(nil); errors.As(err, &bad) && strings.HasPrefix(bad.Key, "data") {
		line.time = ": not known without its data set; name the folder with --data-dir"
		return nil
	}
	if err != nil {
		return err
	}
	length := ""
	if f.scale.Share != 1 {
		length = fmt.Sprintf(" at scale %g", f.scale.Share)
	}
	line.Seconds, line.time = &took, fmt.Sprintf(" on this machine%s: about %s", length, command.Seconds(took))
	return nil
}

// listReplays prints the experiments of other papers.
func listReplays(f *flags, cmd *cobra.Command) error {
	if err := command.OnlyFlags(f.given, "replay list"); err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
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

func (f *flags) baseGraph(stdout io.Writer) error {
	if err := command.OnlyFlags(f.given, "replay base-graph, which trains nothing and is exact", "out", "threads",
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
