package experimentcmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/web"
)

// drawFigure draws the results of the runs: the paper's panels, accuracy and loss against bits, the
// page, and the tables.
func (s *study) drawFigure(made []*bench.Outcome) error {
	p := pictures{Raw: s.raw, TimeUnit: timeUnit(made)}
	var curves []web.Curve
	for _, setting := range bench.Settings(made) {
		c, err := curveOf(setting)
		if err != nil {
			return err
		}
		c.Style = s.IndexInGroup(setting.Name)
		d, err := drawnCurve(s.folder, setting, c)
		if err != nil {
			return err
		}
		curves, p.Curves = append(curves, c), append(p.Curves, d)
	}
	panels, title, table := s.panels(), s.title(), tableOf(s.accounting, made)
	bits := bitsPanels(bitsColumn(s.accounting), s.Groups(), areText(made))
	p.Caption = append(s.caption(made), seedNote(curves)...)
	p.Pictures = []picture{{"figure", title, usualColumns(len(panels)), panels},
		{"bits", title + ", against bits", 3, bits}}
	page := p.comparison(picture{Title: title, Panels: append(panels, bits...)}, curves, s.layout())
	page.Tables = []web.PageTable{costTable(table)}
	if s.HasPrinted() {
		if err := s.writeComparison(made, s.settings(made)); err != nil {
			return err
		}
	}
	return errors.Join(p.draw(s.folder, curves, s.layout()), p.save(s.folder),
		page.WritePage(filepath.Join(s.folder, "figure.html")), writeTable(s.folder, table),
		writeEvaluations(s.folder, made), writeCaption(s.folder, page))
}

// usualColumns is the number of panels in a row on a screen.
func usualColumns(panels int) int {
	if panels%3 == 0 {
		return 3
	}
	return 2
}

// timeUnit is the unit of the virtual time of runs.
func timeUnit(made []*bench.Outcome) string {
	if slices.ContainsFunc(made, (*bench.Outcome).Timed) {
		return "s"
	}
	return "mean gradients" // Asynchronous runs without simulated links count these.
}

// writeCaption writes the title and the notes of a picture, for the text below it.
func writeCaption(folder string, c *web.Comparison) error {
	return command.WriteFile(filepath.Join(folder, "caption.md"), strings.Join(slices.Concat([]string{"**" +
		c.Title + ".**"},
		c.Caption), "\n")+"\n")
}

// areText reports whether runs train language models.
func areText(made []*bench.Outcome) bool { return slices.ContainsFunc(made, (*bench.Outcome).IsText) }

func tableOf(accounting string, made []*bench.Outcome) *bench.Table {
	return &bench.Table{Accounting: accounting, Outcomes: made}
}

// panels returns the panels with the names of their columns, which check has found.
func (s *study) panels() (panels []web.Panel) {
	for _, p := range s.Panels {
		column, _ := p.Column()
		x := p.X
		if x == "bits" {
			x = bitsColumn(s.accounting)
		}
		panels = append(panels, web.Panel{Title: p.Title, Group: p.Group, Column: column, X: x, Log: p.Y == "log"})
	}
	return panels
}

// bitsPanels returns the main panels of a comparison: accuracy and loss against bits, for each
// group of curves. Those of texts have perplexity and loss.
func bitsPanels(x string, groups []string, text bool) []web.Panel {
	var panels []web.Panel
	for _, g := range groups {
		title := ""
		if g != "" {
			title = "(" + g + ")"
		}
		if text {
			for _, column := range []string{"perplexity", "test_loss_mean", "train_loss_worst"} {
				panels = append(panels, web.Panel{Title: title, Group: g, Column: column, X: x, Log: true})
			}
			continue
		}
		panels = append(panels, web.Panel{Title: title, Group: g, Column: "test_acc_min", X: x},
			web.Panel{Title: title, Group: g, Column: "test_acc_avg", X: x},
			web.Panel{Title: title, Group: g, Column: "train_loss_worst", X: x, Log: true})
	}
	return panels
}

// caption returns the text below the plots.
func (s *study) caption(made []*bench.Outcome) []string {
	var lines []string
	if s.About != "" {
		lines = append(lines, "Expected: "+s.About)
	}
	settings := s.settings(made)
	settings[0] += " Bits are counted once, at the sending side, in " + s.accounting + " accounting."
	return slices.Concat(lines, settings, s.options(s.Experiment).Scale.Caption())
}

// settings describes the data and the network of the runs, and the keys that were changed in all of
// them.
func (s *study) settings(made []*bench.Outcome) []string {
	c := made[0].Job.Config
	seed := fmt.Sprintf("seed %d", s.seed)
	if len(s.Seeds) > 0 {
		seed = "seeds " + strings.ReplaceAll(s.Seeds.String(), ",", ", ")
	}
	network := c.Model
	if network == "mlp" {
		network += " " + c.Hidden.String()
	}
	data := fmt.Sprintf("%s, %s data, %d agents, network %s.", seed, c.Data, c.Agents, network)
	if v := s.options(s.Experiment).Variant; v != "" {
		data = "Flavour " + v + ", " + data
	}
	if c.EvalTest > 0 {
		data += fmt.Sprintf(" Evaluations use %d test examples.", c.EvalTest)
	}
	lines := []string{strings.ToUpper(data[:1]) + data[1:]}
	if len(s.set) > 0 {
		lines = append(lines, "Changed in every run: "+strings.Join(s.set, ", ")+".")
	}
	return lines
}

// drawTuning draws a ranking of the methods, and the curves of the reported runs until their budget
// is spent: a plot for each group of methods and a page with all.
func (s *study) drawTuning(results []bench.Result, reported []*bench.Outcome) error {
	caption := []string{s.Criterion(web.Title)}
	ranking := &web.Ranking{Title: s.Title, Caption: caption, Layout: s.layout()}
	sheets := map[string]*web.Comparison{}
	page := &web.Comparison{Title: s.Title, Across: len(results), Raw: s.raw, TimeUnit: timeUnit(reported),
		Tables: []web.PageTable{costTable(tableOf(s.accounting, reported))}}
	for _, r := range results {
		at := s.Search.At(r.Budget)
		dots := web.RankingPanel{Title: at, Column: s.Search.Metric, Best: s.Search.Best}
		x := bitsColumn(s.accounting)
		if r.Budget.Seconds > 0 {
			x = "virtual_time"
		}
		style := map[string]int{}
		for _, c := range r.Choices {
			g := c.Run.Group
			sheet := sheets[g]
			if sheet == nil {
				sheet = &web.Comparison{Title: strings.TrimSuffix(s.Title+": "+g, ": "), Across: len(results),
					Raw: s.raw, Layout: s.layout(), TimeUnit: timeUnit(reported)}
				sheets[g] = sheet
			}
			if style[g]++; style[g] == 1 {
				p := web.Panel{Title: at, Group: g + " " + at, Column: s.Search.Column(), X: x}
				sheet.Panels = append(sheet.Panels, p)
				p.Title = strings.TrimPrefix(g+", "+at, ", ")
				page.Panels = append(page.Panels, p)
			}
			dots.Dots = append(dots.Dots, web.Dot{Name: c.Method, Mean: float64(c.Mean), Std: float64(c.Std),
				Marked: strings.HasPrefix(c.Algo, "fspda")})
			if strings.HasPrefix(c.Algo, "fspda") {
				ranking.Marked, ranking.Others = "FSPDA methods", "other methods"
			}
			curve, err := s.tunedCurve(r.Budget, c)
			if err != nil {
				return err
			}
			curve.Group, curve.Style = g+" "+at, style[g]
			page.Curves, sheet.Curves = append(page.Curves, curve), append(sheet.Curves, curve)
		}
		ranking.Panels = append(ranking.Panels, dots)
	}
	page.Caption = append(caption, seedNote(page.Curves)...)
	errs := []error{writeCaption(s.folder, page), page.WritePage(filepath.Join(s.folder, "tuning.html")),
		ranking.WriteImages(filepath.Join(s.folder, "ranking"))}
	for g, sheet := range sheets {
		sheet.Caption = page.Caption
		errs = append(errs, sheet.WriteImages(filepath.Join(s.folder, strings.TrimSuffix("tuning-"+
			strings.ReplaceAll(g, " ", "-"), "-"))))
	}
	return errors.Join(errs...)
}

// tunedCurve is the mean curve of a choice until its budget is spent.
func (s *study) tunedCurve(b bench.Budget, c bench.Choice) (web.Curve, error) {
	var runs []web.Curve
	for _, o := range c.Outcomes {
		run, err := web.ReadCurve(o.Folder, c.Method)
		if err != nil {
			return run, err
		}
		within := s.Search.Within(b, o)
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

// writeComparison writes the printed values beside the measured ones as a table in Markdown: the
// mean accuracy of the agents at the last evaluation, its difference, the share of the iterations
// that was made, and the hours that the whole run takes at this speed. The runs are a share of the
// figure's. The settings of the runs follow, as they may differ from the settings of the source.
func (s *study) writeComparison(made []*bench.Outcome, settings []string) error {
	var b strings.Builder
	b.WriteString("| run | paper | ours | difference | share of the iterations | seconds | hours for all |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, setting := range bench.Settings(made) {
		at := slices.IndexFunc(s.Runs, func(r bench.Run) bool { return r.Name == setting.Name })
		if at >= 0 {
			b.WriteString(comparisonLine(s.Runs[at], s.options(s.Experiment).Scale.Share, setting))
		}
	}
	fmt.Fprintf(&b, "\nOurs: %s\n", strings.Join(settings, " "))
	if s.Source != "" {
		fmt.Fprintf(&b, "\n%s\n", s.Source)
	}
	return command.WriteFile(filepath.Join(s.folder, "paper.md"), b.String())
}

func comparisonLine(r bench.Run, share float64, s bench.Setting) string {
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
