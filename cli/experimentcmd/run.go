package experimentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/web"
)

// study is an experiment that runs in a folder.
type study struct {
	*flags
	*bench.Experiment
	folder     string
	accounting string // accounting of the bits, a value of --accounting
	stdout     io.Writer
}

// run executes a validated experiment.
func (f *flags) run(ctx context.Context, e *bench.Experiment, stdout, stderr io.Writer) error {
	s := &study{flags: f, Experiment: e, folder: f.folder(e), stdout: stdout}
	if e.Steps == nil {
		if err := s.writeNetwork(); err != nil {
			return err
		}
	}
	o := f.options(e)
	jobs, err := e.Jobs(o)
	if err != nil {
		return err
	}
	if e.Steps != nil {
		return s.drawSchedule(jobs)
	}
	s.accounting = jobs[0].Config.Accounting // the file may have set it
	open := newOpener()
	c := bench.Campaign{Folder: s.folder, Jobs: jobs, Parallel: f.jobs, Threads: f.threads, Open: open.open,
		Panels: e.OwnPanels(), Once: e.Kind() == bench.Ranking}
	if !f.quiet {
		c.Before = (&forecast{open: open, yes: f.yes, stdin: f.stdin, stderr: stderr}).before
	}
	if e.Search != nil {
		c.Metric, s.accounting = e.Search.Metric, e.Search.Accounting
	}
	if !f.quiet {
		fmt.Fprintf(stderr, "%s\n%s\n", s.title(), s.folder)
		if e.About != "" {
			fmt.Fprintf(stderr, "expected: %s\n", e.About)
		}
	}
	first := c
	outcomes, err := runCampaign(ctx, &first, e.Run, f.quiet, stderr)
	switch {
	case e.Search == nil:
		return s.finishFigure(outcomes, err)
	case err != nil:
		return err
	case e.Kind() == bench.Ranking:
		return s.finishRanking(outcomes)
	}
	results, err := e.Choose(outcomes)
	if err != nil {
		return err
	}
	if c.Jobs, err = e.Fresh(results, o); err != nil {
		return err
	}
	var reported []*bench.Outcome
	if len(c.Jobs) > 0 {
		if reported, err = runCampaign(ctx, &c, bench.RunAll, f.quiet, stderr); err != nil {
			return err
		}
	}
	e.Finish(results, reported)
	return s.finishTuning(results, reported)
}

func (s *study) title() string {
	if s.Number > 0 {
		return fmt.Sprintf("Figure %d: %s", s.Number, s.Title)
	}
	return s.Title
}

// writeNetwork writes the network of the experiment to the folder, for its runs.
func (s *study) writeNetwork() error {
	if len(s.Network) == 0 {
		return nil
	}
	text, err := s.LinksText()
	path := filepath.Join(s.folder, "network.yaml")
	s.Base = append(s.Base, yaml.MapItem{Key: "links", Value: path})
	if err = errors.Join(err, command.MakeFolder(s.folder)); err != nil {
		return err
	}
	return command.WriteFile(path, text)
}

func (s *study) writeFiles(texts map[string]string) error {
	var errs []error
	for name, text := range texts {
		errs = append(errs, command.WriteFile(filepath.Join(s.folder, name), text))
	}
	return errors.Join(errs...)
}

// finishFigure draws and prints the runs that were made. It returns the error that ended them.
func (s *study) finishFigure(outcomes []*bench.Outcome, runErr error) error {
	made := slices.DeleteFunc(slices.Clone(outcomes), func(o *bench.Outcome) bool { return o == nil })
	if len(made) == 0 {
		return runErr
	}
	if err := errors.Join(runErr, s.drawFigure(made)); err != nil {
		return err
	}
	switch {
	case s.json:
		return tableOf(s.accounting, made).WriteJSON(s.stdout)
	case s.quiet:
		return nil
	}
	name := "table.md"
	if s.HasPrinted() {
		name = "paper.md"
	}
	text, err := os.ReadFile(filepath.Join(s.folder, name))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "%s\n%s\n", text, filepath.Join(s.folder, "figure.html"))
	return err
}

// mostCurves is the number of the best settings that a ranking draws.
const mostCurves = 10

// finishRanking writes and prints the ranking of all points, all evaluations, and the curves of the
// best.
func (s *study) finishRanking(outcomes []*bench.Outcome) error {
	ranked, err := s.Rank(s.Search.Budgets[0], outcomes)
	if err != nil {
		return err
	}
	var md, csv strings.Builder
	if err := errors.Join(s.Search.WriteRanking(&md, ranked, false), s.Search.WriteRanking(&csv, ranked, true),
		s.writeFiles(map[string]string{"ranking.md": md.String(), "ranking.csv": csv.String()}),
		writeEvaluations(s.folder, outcomes)); err != nil {
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
	if err := overlay(web.Comparison{Title: title, Caption: []string{"Judged by the " + s.Criterion(web.Title) + "."},
		Raw:    s.raw,
		Layout: s.layout()}, tableOf(s.accounting, best), titled, s.folder, "sweep"); err != nil {
		return err
	}
	switch {
	case s.json:
		err = command.PrintJSON(s.stdout, s.Search.RankedLines(ranked))
	case !s.quiet:
		_, err = fmt.Fprintf(s.stdout, "\nJudged by the %s.\n\n%s\n%s\n", s.Criterion(web.Title), md.String(),
			s.Search.Conclusion(ranked))
	}
	if err == nil && !slices.ContainsFunc(ranked, func(r bench.Ranked) bool { return r.HasValue() }) {
		return errNoValue
	}
	return err
}

// finishTuning writes and prints the choice for each run, and draws the runs that are reported.
func (s *study) finishTuning(results []bench.Result, reported []*bench.Outcome) error {
	var md, csv strings.Builder
	if err := errors.Join(s.WriteMarkdown(&md, results, web.Title), s.WriteCSV(&csv, results),
		s.writeFiles(map[string]string{"tuning.md": md.String(), "tuning.csv": csv.String()})); err != nil {
		return err
	}
	if len(reported) > 0 {
		if err := errors.Join(s.drawTuning(results, reported), writeEvaluations(s.folder, reported)); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		lines := []bench.Choice{}
		for _, r := range results {
			lines = append(lines, r.Choices...)
		}
		return command.PrintJSON(s.stdout, lines)
	case s.quiet:
		return nil
	}
	_, err := fmt.Fprintf(s.stdout, "\n%s", md.String())
	return err
}
