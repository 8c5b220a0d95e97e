package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"fspda/train"
)

// Criterion says by what the runs are judged, and with which effort they were tuned.
func (t *Tuning) Criterion() string {
	var at []string
	for _, b := range t.Budgets {
		at = append(at, t.At(b))
	}
	points := len(t.Methods[0].points)
	return fmt.Sprintf("Judged by the %s of %s %s. Each method was tuned by %d runs: %d points of its grid, with "+
		"seeds %s. The chosen point ran again with seeds %s, which are reported.", t.Best, t.Metric,
		strings.Join(at, ", and "), points*len(t.Seeds), points, t.Seeds, t.Report)
}

// At says at which evaluation a run is judged.
func (t *Tuning) At(b Budget) string {
	switch {
	case b.Bits > 0 && b.Seconds > 0:
		return fmt.Sprintf("at the last evaluation within %s (%s) and %g s of virtual time", inBits(b.Bits),
			t.Accounting, b.Seconds)
	case b.Bits > 0:
		return fmt.Sprintf("at the last evaluation within %s (%s)", inBits(b.Bits), t.Accounting)
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

// WriteMarkdown writes the tables of a tuning.
func (t *Tuning) WriteMarkdown(w io.Writer, results []TuneResult) error {
	if _, err := fmt.Fprintf(w, "%s\n", t.Criterion()); err != nil {
		return err
	}
	for _, r := range results {
		head := ""
		if len(results) > 1 {
			at := t.At(r.Budget)
			head = "\n**" + strings.ToUpper(at[:1]) + at[1:] + "**\n"
		}
		if _, err := fmt.Fprintf(w, "%s\n", head); err != nil {
			return err
		}
		if err := t.writeChoices(w, r.Choices); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tuning) writeChoices(w io.Writer, choices []Choice) error {
	lines := [][]string{{"method", "grid", "chosen", "on the grid's edge", "failed points", "search", t.Metric, "bits",
		"virtual seconds"}}
	for _, c := range choices {
		cells := []string{c.Method, "`" + c.Grid + "`", c.Chosen, c.edge(), fmt.Sprintf("%d", c.Failed),
			short(c.Search), fmt.Sprintf("%s ± %s", short(c.Mean), short(c.Std)),
			inBits(float64(c.Bits)), short(c.Seconds)}
		if c.Chosen == "" {
			cells[2], cells[3], cells[6], cells[7], cells[8] = t.noChoice(), "", "", "", ""
		}
		lines = append(lines, cells)
	}
	return writeMarkdownTable(w, lines)
}

// noChoice says why no point of a method was chosen.
func (t *Tuning) noChoice() string {
	if t.metric.reach != "" {
		return "none: no point reached it with every seed"
	}
	return "none: every point failed"
}

// WriteCSV writes the tables of a tuning, with the value of each reported seed.
func (t *Tuning) WriteCSV(w io.Writer, results []TuneResult) error {
	head := []string{"budget_bits", "budget_seconds", "method", "grid", "chosen", "edge", "search_runs",
		"failed_points", "search_" + t.Metric, t.Metric + "_mean", t.Metric + "_std",
		"bits_" + strings.ReplaceAll(t.Accounting, "-", "_"), "virtual_seconds"}
	for _, s := range t.Report {
		head = append(head, fmt.Sprintf("%s_seed_%d", t.Metric, s))
	}
	lines := [][]string{head}
	for _, r := range results {
		for _, c := range r.Choices {
			lines = append(lines, append([]string{plain(r.Bits), plain(r.Budget.Seconds)}, c.cells(len(t.Report))...))
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// cells returns the line of a choice, with so many values of seeds.
func (c *Choice) cells(seeds int) []string {
	cells := []string{c.Method, c.Grid, c.Chosen, strings.Join(c.Edge, " "), strconv.Itoa(c.Runs),
		strconv.Itoa(c.Failed), plain(c.Search), plain(c.Mean), plain(c.Std), strconv.FormatUint(c.Bits, 10),
		plain(c.Seconds)}
	for i := range seeds {
		v := math.NaN()
		if i < len(c.Values) {
			v = c.Values[i]
		}
		cells = append(cells, plain(v))
	}
	return cells
}

// ChoiceLine is a line of a tuning in JSON.
type ChoiceLine struct {
	MaxBits    float64     `json:"budget_bits"` // 0: no limit
	MaxSeconds float64     `json:"budget_seconds"`
	Method     string      `json:"method"`
	Grid       string      `json:"grid"`
	Chosen     string      `json:"chosen"`
	Edge       []string    `json:"edge"` // keys whose chosen value is at an end of the grid
	Runs       int         `json:"search_runs"`
	Failed     int         `json:"failed_points"`
	Metric     string      `json:"metric"`
	Search     train.Num   `json:"search"`
	Mean       train.Num   `json:"mean"` // null where there is none
	Std        train.Num   `json:"std"`
	Values     []train.Num `json:"values"` // by seed
	Bits       uint64      `json:"bits"`
	Seconds    train.Num   `json:"virtual_seconds"`
}

// Lines returns the tables of a tuning for JSON.
func (t *Tuning) Lines(results []TuneResult) []ChoiceLine {
	lines := []ChoiceLine{}
	for _, r := range results {
		for _, c := range r.Choices {
			l := ChoiceLine{MaxBits: r.Bits, MaxSeconds: r.Budget.Seconds, Method: c.Method, Grid: c.Grid,
				Chosen: c.Chosen, Edge: append([]string{}, c.Edge...), Runs: c.Runs, Failed: c.Failed,
				Metric: t.Metric, Search: train.Num(c.Search), Mean: train.Num(c.Mean), Std: train.Num(c.Std),
				Values: []train.Num{}, Bits: c.Bits, Seconds: train.Num(c.Seconds)}
			for _, v := range c.Values {
				l.Values = append(l.Values, train.Num(v))
			}
			lines = append(lines, l)
		}
	}
	return lines
}
