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

	"fspda/train"
)

// Milestones lists the test accuracies whose cost in bits a table shows.
var Milestones = []float64{0.5, 0.7, 0.8, 0.9, 0.95}

// Table summarizes several runs. Milestones are given for the worst agent and for the mean model.
type Table struct {
	Accounting string // of the bits to reach an accuracy
	Levels     []float64
	Outcomes   []*Outcome
}

// header returns the column names.
func (t *Table) header() []string {
	h := []string{"run", "algorithm", "status", "iterations", "train_loss_worst", "grad_sq_worst", "consensus",
		"test_acc_min", "test_acc_mean", "test_acc_avg", "bits_shared_seed", "bits_packed", "bits_reference"}
	for _, l := range t.Levels {
		h = append(h, fmt.Sprintf("bits_to_%g%%_mean_model", 100*l))
	}
	for _, l := range t.Levels {
		h = append(h, fmt.Sprintf("bits_to_%g%%_worst_agent", 100*l))
	}
	if t.timed() {
		h = append(h, "virtual_time")
		for _, l := range t.Levels {
			h = append(h, fmt.Sprintf("virtual_time_to_%g%%_mean_model", 100*l))
		}
	}
	return append(h, "wall_s")
}

// cells returns the row of a run; unknown numbers are empty.
func (t *Table) cells(o *Outcome) []string {
	r := o.Last()
	cells := []string{o.Job.Title, o.Job.Config.Algo, string(o.Status), strconv.Itoa(r.Iteration)}
	for _, v := range []train.Num{r.TrainLossWorst, r.GradSqWorst, r.Consensus, r.TestAccMin, r.TestAccMean,
		r.TestAccAvg} {
		cells = append(cells, plain(float64(v)))
	}
	for _, v := range []uint64{r.BitsSharedSeed, r.BitsPacked, r.BitsReference} {
		cells = append(cells, strconv.FormatUint(v, 10))
	}
	for _, column := range []func(train.Row) train.Num{meanAccuracy, worstAccuracy} {
		for _, l := range t.Levels {
			cells = append(cells, t.reach(o.Rows, column, l))
		}
	}
	if t.timed() {
		cells = append(cells, plain(float64(r.Time)))
		for _, l := range t.Levels {
			cells = append(cells, plain(timeTo(o.Rows, l)))
		}
	}
	return append(cells, plain(o.WallS))
}

// Timed reports whether a run has virtual time of a simulated network, in seconds.
func (o *Outcome) Timed() bool { return o.Job.Config.Links != "" }

func (t *Table) timed() bool { return slices.ContainsFunc(t.Outcomes, (*Outcome).Timed) }

// timeTo returns the virtual time of the first evaluation with a mean-model accuracy of at least
// level, NaN if there is none.
func timeTo(rows []train.Row, level float64) float64 {
	for _, r := range rows {
		if float64(r.TestAccAvg) >= level {
			return float64(r.Time)
		}
	}
	return math.NaN()
}

func meanAccuracy(r train.Row) train.Num  { return r.TestAccAvg }
func worstAccuracy(r train.Row) train.Num { return r.TestAccMin }

// reach returns the bits at the first evaluation with an accuracy of at least level.
func (t *Table) reach(rows []train.Row, accuracy func(train.Row) train.Num, level float64) string {
	for _, r := range rows {
		if float64(accuracy(r)) >= level {
			return strconv.FormatUint(Bits(r, t.Accounting), 10)
		}
	}
	return ""
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

// WriteCSV writes the table with all digits.
func (t *Table) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{t.header()}
	for _, o := range t.Outcomes {
		lines = append(lines, t.cells(o))
	}
	return out.WriteAll(lines)
}

// WriteMarkdown writes the table as Markdown: final results, then the bits to reach accuracies.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| run | worst loss | worst squared gradient | consensus | accuracy: worst agent | mean of agents " +
		"| mean model | bits: shared seed | packed | reference | time |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range t.Outcomes {
		r := o.Last()
		fmt.Fprintf(&b, "| %s%s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", o.Job.Title, state(o),
			short(r.TrainLossWorst), short(r.GradSqWorst), short(r.Consensus),
			percent(r.TestAccMin), percent(r.TestAccMean), percent(r.TestAccAvg), si(r.BitsSharedSeed), si(
				r.BitsPacked), si(r.BitsReference), minutes(o.WallS))
	}
	fmt.Fprintf(&b, "\nBits (%s accounting) at the first evaluation of at least this test accuracy, mean model / "+
		"worst agent:\n\n| run |", t.Accounting)
	for _, l := range t.Levels {
		fmt.Fprintf(&b, " %g %% |", 100*l)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.Levels)) + "\n")
	for _, o := range t.Outcomes {
		fmt.Fprintf(&b, "| %s |", o.Job.Title)
		for _, l := range t.Levels {
			fmt.Fprintf(&b, " %s / %s |", bitsText(t.reach(o.Rows, meanAccuracy, l)),
				bitsText(t.reach(o.Rows, worstAccuracy, l)))
		}
		b.WriteString("\n")
	}
	t.writeTimes(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeTimes writes the virtual times to reach accuracies, if runs have them.
func (t *Table) writeTimes(b *strings.Builder) {
	if !t.timed() {
		return
	}
	b.WriteString("\nSeconds of the simulated network at the first evaluation of at least this test accuracy of the " +
		"mean model:\n\n| run |")
	for _, l := range t.Levels {
		fmt.Fprintf(b, " %g %% |", 100*l)
	}
	b.WriteString(" end |\n|---|" + strings.Repeat("---|", len(t.Levels)+1) + "\n")
	for _, o := range t.Outcomes {
		if !o.Timed() {
			continue
		}
		fmt.Fprintf(b, "| %s |", o.Job.Title)
		for _, l := range t.Levels {
			fmt.Fprintf(b, " %s |", short(train.Num(timeTo(o.Rows, l))))
		}
		fmt.Fprintf(b, " %s |\n", short(o.Last().Time))
	}
}

// state returns the status of a run, empty if it has finished.
func state(o *Outcome) string {
	switch o.Status {
	case train.Finished:
		return ""
	case "":
		return " (unfinished)"
	}
	return " (" + string(o.Status) + fmt.Sprintf(" at %d)", o.Last().Iteration)
}

func short(v train.Num) string {
	if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
		return "–"
	}
	return strconv.FormatFloat(float64(v), 'g', 3, 64)
}

func percent(v train.Num) string {
	if math.IsNaN(float64(v)) {
		return "–"
	}
	return strconv.FormatFloat(100*float64(v), 'f', 2, 64) + " %"
}

func bitsText(digits string) string {
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil { // empty: not reached
		return "–"
	}
	return si(n)
}

// si formats a number of bits with three digits and a prefix.
func si(n uint64) string {
	v, unit := float64(n), 0
	for ; v >= 999.5 && unit < 6; unit++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + [...]string{"bit", "kbit", "Mbit", "Gbit", "Tbit", "Pbit",
		"Ebit"}[unit]
}

func minutes(s float64) string {
	if s < 60 {
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(s/60, 'f', 1, 64) + " min"
}

// WriteJSON writes the table as a list of objects, one per run, keyed by the CSV columns; unknown
// numbers are null.
func (t *Table) WriteJSON(w io.Writer) error {
	runs := []map[string]any{}
	for _, o := range t.Outcomes {
		run := map[string]any{}
		for k, text := range t.cells(o) {
			run[t.header()[k]] = jsonCell(text, k < 3)
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
