package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fspda/train"
)

// Criterion names the metric by which runs are judged, and the effort with which they were tuned.
// title returns the name of a column for people.
func (e *Experiment) Criterion(title func(column string) string) string {
	s := e.Search
	if e.Kind() == Ranking {
		return s.criterion(title)
	}
	var at []string
	for _, b := range s.Budgets {
		at = append(at, s.At(b))
	}
	points := len(e.Runs[0].points)
	return fmt.Sprintf("Judged by the %s %s. Each method was tuned by %d runs: %d points of its grid, with "+
		"seeds %s. The chosen point ran again with seeds %s, which are reported.", s.bestMetric(title),
		strings.Join(at, ", and "), points*max(1, len(s.Seeds)), points, s.Seeds, e.Seeds)
}

func (s *Search) criterion(title func(column string) string) string {
	at := " at the end of the run"
	if s.metric.reach != "" {
		at = ", interpolated between evaluations"
	}
	if b := s.Budgets[0]; b != (Budget{}) {
		at = " " + strings.NewReplacer(" (", ", ", ")", " accounting").Replace(s.At(b))
	}
	if len(s.Seeds) > 1 {
		at += fmt.Sprintf(", mean of %d seeds", len(s.Seeds))
	}
	return s.bestMetric(title) + at
}

// bestMetric names the best value of the metric, as in "highest test accuracy, mean model
// (test_acc_avg)" or "lowest bits_to(0.9)".
func (s *Search) bestMetric(title func(column string) string) string {
	best := map[string]string{"max": "highest", "min": "lowest"}[s.Best]
	if name := title(s.Metric); name != s.Metric {
		return fmt.Sprintf("%s %s (%s)", best, name, s.Metric)
	}
	return best + " " + s.Metric
}

// Conclusion names the run to go on with, or says that there is none.
func (s *Search) Conclusion(ranked []Ranked) string {
	switch {
	case ranked[0].HasValue():
		return "best: fspda train -c " + filepath.Join(ranked[0].Folder, "config.yaml")
	case s.metric.reach != "":
		return "no setting reached it"
	}
	return "no setting has a value of " + s.Metric
}

// At says at which evaluation a run is judged.
func (s *Search) At(b Budget) string {
	switch {
	case b.Bits > 0 && b.Seconds > 0:
		return fmt.Sprintf("at the last evaluation within %s (%s) and %g s of virtual time", inBits(b.Bits),
			s.Accounting, b.Seconds)
	case b.Bits > 0:
		return fmt.Sprintf("at the last evaluation within %s (%s)", inBits(b.Bits), s.Accounting)
	case b.Seconds > 0:
		return fmt.Sprintf("at the last evaluation within %g s of virtual time", b.Seconds)
	}
	return "at the end of the run"
}

// edge says which chosen values are at an end of their range: a wider grid may do better there.
func (c *Choice) edge() string {
	if len(c.Edge) == 0 {
		return "no"
	}
	return strings.Join(c.Edge, ", ")
}

// WriteMarkdown writes the tables of a tuning. title returns the name of a column for people.
func (e *Experiment) WriteMarkdown(w io.Writer, results []Result, title func(column string) string) error {
	s := e.Search
	if _, err := fmt.Fprintf(w, "%s\n", e.Criterion(title)); err != nil {
		return err
	}
	for _, r := range results {
		head := ""
		if len(results) > 1 {
			at := s.At(r.Budget)
			head = "\n**" + strings.ToUpper(at[:1]) + at[1:] + "**\n"
		}
		if _, err := fmt.Fprintf(w, "%s\n", head); err != nil {
			return err
		}
		lines := [][]string{{"method", "grid", "chosen", "on the grid's edge", "failed points", "search", s.Metric,
			"bits", "virtual seconds"}}
		for _, c := range r.Choices {
			cells := []string{c.Method, "`" + c.Grid + "`", c.Chosen, c.edge(), strconv.Itoa(c.Failed),
				short(float64(c.Search)),
				fmt.Sprintf("%s ± %s", short(float64(c.Mean)), short(float64(c.Std))), inBits(float64(c.Bits)),
				short(float64(c.Seconds))}
			if c.Chosen == "" {
				cells[2], cells[3], cells[6], cells[7], cells[8] = s.noChoice(), "", "", "", ""
			}
			lines = append(lines, cells)
		}
		if err := writeMarkdownTable(w, lines); err != nil {
			return err
		}
	}
	return nil
}

// noChoice says why no point of a method was chosen.
func (s *Search) noChoice() string {
	if s.metric.reach != "" {
		return "none: no point reached it with every seed"
	}
	return "none: every point failed"
}

// WriteCSV writes the tables of a tuning, with the value of each reported seed.
func (e *Experiment) WriteCSV(w io.Writer, results []Result) error {
	s := e.Search
	head := []string{"budget_bits", "budget_seconds", "method", "grid", "chosen", "edge", "search_runs",
		"failed_points", "search_" + s.Metric, s.Metric + "_mean", s.Metric + "_std",
		"bits_" + strings.ReplaceAll(s.Accounting, "-", "_"), "virtual_seconds"}
	for _, seed := range e.Seeds {
		head = append(head, fmt.Sprintf("%s_seed_%d", s.Metric, seed))
	}
	lines := [][]string{head}
	for _, r := range results {
		for _, c := range r.Choices {
			cells := []string{plain(c.MaxBits), plain(c.MaxSeconds), c.Method, c.Grid, c.Chosen,
				strings.Join(c.Edge, " "),
				strconv.Itoa(c.Runs), strconv.Itoa(c.Failed), plain(float64(c.Search)), plain(float64(c.Mean)),
				plain(float64(c.Std)),
				strconv.FormatUint(c.Bits, 10), plain(float64(c.Seconds))}
			for i := range e.Seeds {
				text := ""
				if i < len(c.Values) {
					text = plain(float64(c.Values[i]))
				}
				cells = append(cells, text)
			}
			lines = append(lines, cells)
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// RankedLine is a line of a ranking in JSON.
type RankedLine struct {
	Rank       *int      `json:"rank"` // rank from 1; null where there is no value
	Run        string    `json:"run"`
	Folder     string    `json:"folder"` // folder of the first run
	Metric     string    `json:"metric"`
	Value      train.Num `json:"value"` // null where there is none
	Deviation  train.Num `json:"std"`   // sample standard deviation over the seeds
	Runs       int       `json:"runs"`
	Missing    int       `json:"runs_without_value"`
	Resolution train.Num `json:"resolution"` // resolution of the cost to reach an accuracy
	Iteration  int       `json:"iteration"`
	Bits       uint64    `json:"bits"`
	Status     string    `json:"status"`
	Failed     int       `json:"failed_to_converge"` // runs
}

func (s *Search) RankedLines(ranked []Ranked) []RankedLine {
	lines := []RankedLine{}
	for i, r := range ranked {
		line := RankedLine{nil, r.Setting.Name, r.Folder, s.Metric, train.Num(r.Value),
			train.Num(r.Deviation), len(r.Setting.Outcomes), r.Missing, train.Num(r.Resolution), r.Iteration, r.Bits,
			r.Setting.status(), r.Setting.failed()}
		if r.HasValue() {
			line.Rank = new(i + 1)
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *Search) WriteRanking(w io.Writer, ranked []Ranked, asCSV bool) error {
	seeded := slices.ContainsFunc(ranked, func(r Ranked) bool { return len(r.Setting.Outcomes) > 1 })
	head := []string{"rank", "run", s.Metric}
	if seeded {
		head = append(head, "std", "runs")
	}
	if s.metric.reach != "" {
		head = append(head, "resolution")
	}
	lines := [][]string{append(head, "iteration", "bits_"+strings.ReplaceAll(s.Accounting, "-", "_"), "status")}
	for i, r := range ranked {
		cells := []string{"", r.Setting.Name, plain(r.Value)}
		if r.HasValue() {
			cells[0] = strconv.Itoa(i + 1)
		}
		if seeded {
			cells = append(cells, plain(r.Deviation), strconv.Itoa(len(r.Setting.Outcomes)))
		}
		if s.metric.reach != "" {
			cells = append(cells, plain(r.Resolution))
		}
		bits := strconv.FormatUint(r.Bits, 10)
		if !asCSV {
			bits = inBits(float64(r.Bits))
		}
		lines = append(lines, append(cells, strconv.Itoa(r.Iteration), bits, r.Setting.ended()))
	}
	if asCSV {
		return csv.NewWriter(w).WriteAll(lines)
	}
	return writeMarkdownTable(w, lines)
}

// cellText escapes a text, such as a title, for a cell of a table in Markdown.
var cellText = strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")

func writeMarkdownTable(w io.Writer, lines [][]string) error {
	var b strings.Builder
	for i, cells := range lines {
		for _, c := range cells {
			b.WriteString("| " + cellText.Replace(c) + " ")
		}
		b.WriteString("|\n")
		if i == 0 {
			fmt.Fprintln(&b, "|"+strings.Repeat("---|", len(cells)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
