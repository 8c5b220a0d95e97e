package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"fspda/internal/units"
	"fspda/train"
)

// Table summarizes several settings, each by one run or by runs of several seeds, whose numbers
// are then means and sample standard deviations. The costs to reach test accuracies, or
// perplexities of a text, are given for the mean model and for the worst agent, or the mean of the
// agents.
type Table struct {
	Accounting string    // accounting of the bits to reach a level
	Levels     []float64 // Levels are accuracies or, of texts, perplexities; empty: the usual ones.
	Outcomes   []*Outcome
}

// quantity is a column of a table.
type quantity struct {
	name  string
	whole bool // counts
	value func(o *Outcome) float64
	some  bool // runs that have not reached an accuracy lack it
}

func column(name string, value func(r train.Row) train.Num) quantity {
	return quantity{name: name, value: func(o *Outcome) float64 { return float64(value(o.Last())) }}
}
func count(name string, value func(r train.Row) uint64) quantity {
	return quantity{name: name, whole: true, value: func(o *Outcome) float64 { return float64(value(o.Last())) }}
}

func (t *Table) quantities() []quantity {
	all := []quantity{
		count("iterations", func(r train.Row) uint64 { return uint64(r.Iteration) }),
		column("train_loss_worst", func(r train.Row) train.Num { return r.TrainLossWorst }),
		column("grad_sq_worst", func(r train.Row) train.Num { return r.GradSqWorst }),
		column("consensus", func(r train.Row) train.Num { return r.Consensus })}
	if t.isText() {
		all = append(all, column("test_loss_mean", func(r train.Row) train.Num { return r.TestLossMean }),
			column("test_loss_avg", func(r train.Row) train.Num { return r.TestLossAvg }),
			column("perplexity", func(r train.Row) train.Num { return r.Perplexity }))
	} else {
		all = append(all, column("test_acc_min", worstAccuracy),
			column("test_acc_mean", func(r train.Row) train.Num { return r.TestAccMean }),
			column("test_acc_avg", meanAccuracy))
	}
	all = append(all, count("bits_shared_seed", func(r train.Row) uint64 { return r.BitsSharedSeed }),
		count("bits_packed", func(r train.Row) uint64 { return r.BitsPacked }),
		count("bits_reference", func(r train.Row) uint64 { return r.BitsReference }))
	goal, levels := t.goal(), t.milestones()
	for k, score := range goal.scores {
		for _, l := range levels {
			all = append(all, t.bitsTo(fmt.Sprintf("bits_to_%s_%s", l.name, goal.names[k]), l, score))
		}
	}
	if t.timed() {
		all = append(all, column("virtual_time", virtualTime))
		for _, l := range levels {
			all = append(all, t.timeTo(fmt.Sprintf("virtual_time_to_%s_%s", l.name, goal.names[0]), l))
		}
	}
	return append(all, wallTime)
}

var wallTime = quantity{name: "wall_s", value: func(o *Outcome) float64 { return o.WallS }}

// bitsTo is the number of bits to reach an accuracy, interpolated between evaluations.
func (t *Table) bitsTo(name string, level milestone, score func(train.Row) train.Num) quantity {
	return quantity{name: name, whole: true, some: true,
		value: func(o *Outcome) float64 { return t.reach(o, level, score).At }}
}

func (t *Table) reach(o *Outcome, level milestone, score func(train.Row) train.Num) Reach {
	return reach(o.Rows, level.least, score, func(r train.Row) float64 { return float64(Bits(r, t.Accounting)) })
}

func virtualTime(r train.Row) train.Num   { return r.Time }
func meanAccuracy(r train.Row) train.Num  { return r.TestAccAvg }
func worstAccuracy(r train.Row) train.Num { return r.TestAccMin }
func (t *Table) timeTo(name string, level milestone) quantity {
	score := t.goal().scores[0]
	return quantity{name: name, some: true, value: func(o *Outcome) float64 {
		return reach(o.Rows, level.least, score, func(r train.Row) float64 { return float64(r.Time) }).At
	}}
}

// seeded reports whether a setting has several runs.
func seeded(settings []Setting) bool {
	return slices.ContainsFunc(settings, func(s Setting) bool { return len(s.Outcomes) > 1 })
}

func (t *Table) names() []string {
	head := []string{"run", "algorithm", "status", "failed_to_converge"}
	several := seeded(Settings(t.Outcomes))
	if several {
		head = append(head, "runs")
	}
	for _, q := range t.quantities() {
		if head = append(head, q.name); several {
			head = append(head, q.name+"_std")
		}
		if several && q.some {
			head = append(head, q.name+"_runs")
		}
	}
	return head
}

// cells returns the row of a setting; unknown numbers are empty.
func (t *Table) cells(s Setting, several bool) []string {
	cells := []string{s.Title, s.Outcomes[0].Job.Config.Algo, s.status(), strconv.Itoa(s.failed())}
	if several {
		cells = append(cells, strconv.Itoa(len(s.Outcomes)))
	}
	for _, q := range t.quantities() {
		mean, deviation, have := moments(s.values(q))
		text := plain(mean)
		if q.whole && text != "" {
			text = strconv.FormatFloat(mean, 'f', 0, 64)
		}
		if cells = append(cells, text); several {
			cells = append(cells, plain(deviation))
		}
		if several && q.some {
			cells = append(cells, strconv.Itoa(have))
		}
	}
	return cells
}

func (s Setting) values(q quantity) []float64 {
	all := make([]float64, len(s.Outcomes))
	for i, o := range s.Outcomes {
		all[i] = q.value(o)
	}
	return all
}

// show formats the mean of a number and, of several runs, its deviation; how many runs have the
// number, if some lack it.
func (s Setting) show(values []float64, format func(float64) string) string {
	mean, deviation, n := moments(values)
	switch {
	case n == 0:
		return "–"
	case len(values) == 1:
		return format(mean)
	case n == 1:
		return fmt.Sprintf("%s (1 of %d)", format(mean), len(values))
	}
	text := format(mean) + " ± 0"
	if deviation > 0 {
		text = format(mean) + " ± " + format(deviation)
	}
	if n < len(values) {
		text += fmt.Sprintf(" (%d of %d)", n, len(values))
	}
	return text
}

// Timed reports whether a run has virtual time of a simulated network, in seconds.
func (o *Outcome) Timed() bool { return o.Job.Config.Links != "" }

func (t *Table) timed() bool {
	return slices.ContainsFunc(t.Outcomes, func(o *Outcome) bool { return o != nil && o.Timed() })
}

// Bits returns the bits of a row in an accounting.
func Bits(r train.Row, accounting string) uint64 {
	switch accounting {
	case "packed":
		return r.BitsPacked
	case "reference":
		return r.BitsReference
	}
	return r.BitsSharedSeed
}

func plain(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func (t *Table) WriteCSV(w io.Writer) error {
	lines := [][]string{t.names()}
	settings := Settings(t.Outcomes)
	for _, s := range settings {
		lines = append(lines, t.cells(s, seeded(settings)))
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// WriteMarkdown writes the table as Markdown: final results, then the bits to reach accuracies.
func (t *Table) WriteMarkdown(w io.Writer) error {
	settings := Settings(t.Outcomes)
	var b strings.Builder
	_ = writeMarkdownTable(&b, t.Finals()) // writing to memory gives no error
	costs, note := t.Costs()
	if seeded(settings) {
		note += "\nNumbers of several seeds are means ± sample standard deviations."
	}
	fmt.Fprintf(&b, "\n%s\n\n", note)
	_ = writeMarkdownTable(&b, costs)
	t.writeTimes(&b, settings)
	_, err := io.WriteString(w, b.String())
	return err
}

// Finals returns the table of the final results, the head first.
func (t *Table) Finals() [][]string {
	score := []string{"accuracy: worst agent", "mean of agents", "mean model"}
	formats := append(slices.Repeat([]func(float64) string{short}, 3), units.Percent, units.Percent, units.Percent,
		inBits, inBits, inBits, minutes)
	if t.isText() {
		score = []string{"test loss: mean of agents", "mean model", "perplexity"}
		formats[3], formats[4], formats[5] = fourDigits, fourDigits, fourDigits
	}
	lines := [][]string{slices.Concat([]string{"run", "worst loss", "worst squared gradient", "consensus"}, score,
		[]string{"bits: shared seed", "packed", "reference", "time"})}
	shown := append(t.quantities()[1:10:10], wallTime)
	for _, s := range Settings(t.Outcomes) {
		line := []string{s.Label() + s.note()}
		for k, q := range shown {
			line = append(line, s.show(s.values(q), formats[k]))
		}
		lines = append(lines, line)
	}
	return lines
}

// Costs returns the table of the bits to reach accuracies or perplexities, the head first, and a
// note on it.
func (t *Table) Costs() (lines [][]string, note string) {
	goal, levels := t.goal(), t.milestones()
	lines = [][]string{t.levelHead(levels)}
	least, most := math.Inf(1), 0.0
	for _, s := range Settings(t.Outcomes) {
		line := []string{s.Label()}
		for _, l := range levels {
			var costs []string
			for _, score := range goal.scores {
				costs = append(costs, s.show(s.values(t.bitsTo("", l, score)), inBits))
				for _, o := range s.Outcomes {
					if r := t.reach(o, l, score).Resolution; r > 0 {
						least, most = math.Min(least, r), math.Max(most, r)
					}
				}
			}
			line = append(line, strings.Join(costs, " / "))
		}
		lines = append(lines, line)
	}
	note = fmt.Sprintf("Bits (%s accounting) to reach this %s, %s: interpolated "+
		"between the evaluation before and the first that reached it", t.Accounting, goal.quantity,
		strings.ReplaceAll(strings.Join(goal.names, " / "), "_", " "))
	switch {
	case most == 0:
		return lines, note + "."
	case least == most:
		return lines, note + fmt.Sprintf(", which are %s apart.", inBits(most))
	}
	return lines, note + fmt.Sprintf(", which are %s to %s apart.", inBits(least), inBits(most))
}

func (t *Table) levelHead(levels []milestone) []string {
	head := []string{"run"}
	for _, l := range levels {
		head = append(head, l.label)
	}
	return head
}

// writeTimes writes the virtual times to reach accuracies, if runs have them.
func (t *Table) writeTimes(b *strings.Builder, settings []Setting) {
	if !t.timed() {
		return
	}
	levels := t.milestones()
	fmt.Fprintf(b, "\nSeconds of the simulated network to reach this %s of the mean model, interpolated "+
		"between evaluations:\n\n", t.goal().quantity)
	lines := [][]string{append(t.levelHead(levels), "end")}
	for _, s := range settings {
		if !s.Outcomes[0].Timed() {
			continue
		}
		line := []string{s.Label()}
		for _, l := range levels {
			line = append(line, s.show(s.values(t.timeTo("", l)), short))
		}
		lines = append(lines, append(line, s.show(s.values(column("", virtualTime)), short)))
	}
	_ = writeMarkdownTable(b, lines) // writing to memory gives no error
}

// failed counts the runs of a setting that finished and have failed to converge.
func (s Setting) failed() (n int) {
	for _, o := range s.Outcomes {
		if o.Failure != "" {
			n++
		}
	}
	return n
}

// ended is the status with the number of runs that have failed to converge.
func (s Setting) ended() string {
	if n := s.failed(); n == len(s.Outcomes) {
		return s.status() + ", failed to converge"
	} else if n > 0 {
		return fmt.Sprintf("%s, %d failed to converge", s.status(), n)
	}
	return s.status()
}

// note says how the runs of a setting ended, empty if they have finished and converged.
func (s Setting) note() string {
	o := s.Outcomes[0]
	status := s.ended()
	switch {
	case status == string(train.Finished):
		return ""
	case status == string(train.Diverged) && len(s.Outcomes) == 1:
		return fmt.Sprintf(" (diverged at %d)", o.Last().Iteration)
	}
	return " (" + status + ")"
}

func fourDigits(v float64) string { return units.Significant(v, 4) }

func short(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func inBits(v float64) string { return units.SI(v, "bit") }

func minutes(s float64) string {
	if s < 60 {
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(s/60, 'f', 1, 64) + " min"
}

// WriteJSON writes the table as a list of objects, one per setting, keyed by the CSV columns;
// unknown numbers are null.
func (t *Table) WriteJSON(w io.Writer) error {
	runs := []map[string]any{}
	settings, names := Settings(t.Outcomes), t.names()
	for _, s := range settings {
		run := map[string]any{}
		for k, text := range t.cells(s, seeded(settings)) {
			run[names[k]] = jsonCell(text, k < 3)
		}
		runs = append(runs, run)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(runs)
}

// jsonCell returns a cell as a string or as a number with its digits unchanged.
func jsonCell(text string, name bool) any {
	switch {
	case name:
		return text
	case text == "":
		return nil
	}
	return json.Number(text)
}
