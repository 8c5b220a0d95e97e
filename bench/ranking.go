package bench

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fspda/train"
)

// Halving gives settings up early: at each share of At, the best Keep of the settings go on, judged by
// the metric at the last evaluation up to there, and the others stop with a checkpoint. The runs
// follow the schedule of their full length.
type Halving struct {
	At   []float64 `yaml:"at"`   // ascending; empty: 0.25 and 0.5
	Keep float64   `yaml:"keep"` // above 0 and below 1; 0: 0.5
}

func (h *Halving) check() error {
	if h == nil {
		return nil
	}
	if len(h.At) == 0 {
		h.At = []float64{0.25, 0.5}
	}
	h.Keep = cmp.Or(h.Keep, 0.5)
	for i, at := range h.At {
		if !(at > 0 && at < 1) || i > 0 && at <= h.At[i-1] {
			return &train.ConfigError{Key: "halving: at", Got: fmt.Sprint(h.At),
				Want: "expected ascending shares of the run above 0 and below 1, such as [0.25, 0.5]"}
		}
	}
	if !(h.Keep > 0 && h.Keep < 1) {
		return &train.ConfigError{Key: "halving: keep", Got: fmt.Sprint(h.Keep),
			Want: "expected the share of the settings that go on, above 0 and below 1, such as 0.5"}
	}
	return nil
}

// Run makes the runs of a campaign whose jobs are those of the sweep. The outcomes are those of
// [Campaign.Run], and of settings that were given up on the way.
func (s *Sweep) Run(ctx context.Context, c *Campaign) ([]*Outcome, error) {
	if s.Halving == nil {
		return c.Run(ctx)
	}
	all := make([]*Outcome, len(c.Jobs))
	alive := make([]int, len(c.Jobs))
	for i := range alive {
		alive[i] = i
	}
	for stage, share := range append(slices.Clone(s.Halving.At), 1) {
		outcomes, err := c.part(alive, share, stage == 0).Run(ctx)
		for k, o := range outcomes {
			all[alive[k]] = o
		}
		if err != nil || share == 1 {
			return all, err
		}
		ranked, err := s.Rank(outcomes)
		if err != nil {
			return all, err
		}
		going := map[*Outcome]bool{}
		for k, r := range ranked {
			for _, o := range r.Setting.Outcomes {
				if going[o] = float64(k) < s.Halving.Keep*float64(len(ranked)); !going[o] {
					o.Dropped = share
				}
			}
		}
		alive = slices.DeleteFunc(alive, func(i int) bool { return !going[all[i]] })
	}
	return all, nil
}

// part returns a campaign of some of the jobs up to a share of their iterations. Only the first one
// checks the keys that all jobs share.
func (c *Campaign) part(jobs []int, until float64, first bool) *Campaign {
	p := *c
	p.Jobs, p.Until = nil, until
	for _, i := range jobs {
		job := c.Jobs[i]
		if !first {
			job.Shared = nil
		}
		p.Jobs = append(p.Jobs, job)
	}
	if c.OnEvent != nil {
		p.OnEvent = func(e Event) {
			e.Job, e.Same = jobs[e.Job], jobs[e.Same]
			c.OnEvent(e)
		}
	}
	return &p
}

// Ranked is a setting of a sweep with its metric.
type Ranked struct {
	*Outcome // the first of its runs
	Setting  Setting

	// Value is the mean over the runs that have one: those that diverged, or had no evaluation within
	// the budget, have none. NaN if no run has one.
	Value      float64
	Deviation  float64 // sample standard deviation; NaN of fewer than two
	Missing    int     // runs without a value
	Resolution float64 // largest distance of the evaluations between which a value was interpolated

	Bits      uint64 // at the evaluation that was judged, the mean over the runs
	Iteration int    // the same

	accuracy float64 // mean of the last accuracies
}

// HasValue reports whether a run of the setting has a value. Settings without one have no rank.
func (r Ranked) HasValue() bool { return !math.IsNaN(r.Value) }

// Rank sorts the settings, the best first, without runs that were left out. Settings that were given
// up come after those that went on, and those with runs that have no value after those without. Equal
// values keep the order of the sweep. Times of runs that have virtual time and of runs that have not
// cannot be compared: an error.
func (s *Sweep) Rank(outcomes []*Outcome) ([]Ranked, error) {
	var err error
	if s.metric, err = ParseMetric(s.Metric); err != nil {
		return nil, err
	}
	if s.metric.reach == "time" {
		if err := sameClock(outcomes); err != nil {
			return nil, err
		}
	}
	var all []Ranked
	for _, setting := range Settings(outcomes) {
		all = append(all, s.judge(setting))
	}
	sign := 1.0
	if s.Best == "max" {
		sign = -1
	}
	slices.SortStableFunc(all, func(a, b Ranked) int {
		if a.Dropped != b.Dropped {
			return cmp.Compare(b.reached(), a.reached())
		}
		if a.Missing != b.Missing {
			return cmp.Compare(a.Missing, b.Missing)
		}
		if math.IsNaN(a.Value) || math.IsNaN(b.Value) { // last, though it compares as the least
			return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(b.accuracy, a.accuracy))
		}
		return cmp.Compare(sign*a.Value, sign*b.Value)
	})
	return all, nil
}

// reached returns the share of its iterations that a run was allowed to make.
func (o *Outcome) reached() float64 { return cmp.Or(o.Dropped, 1) }

// sameClock refuses runs of which only some have virtual time.
func sameClock(outcomes []*Outcome) error {
	var first string
	for _, o := range outcomes {
		if o == nil || len(o.Rows) < 2 {
			continue
		}
		clock, _ := o.clock()
		if first != "" && clock != first {
			return &train.ConfigError{Key: "metric", Got: "time_to", Want: "some of the runs have virtual time and " +
				"others have not: give all of them links, or rank by bits_to or iterations_to"}
		}
		first = clock
	}
	return nil
}

// judge computes the metric of a setting.
func (s *Sweep) judge(setting Setting) Ranked {
	r := Ranked{Outcome: setting.Outcomes[0], Setting: setting}
	var values, accuracies, bits, iterations []float64
	for _, o := range setting.Outcomes {
		within := o.Rows
		for k, row := range o.Rows {
			if s.Bits > 0 && float64(Bits(row, s.Accounting)) > s.Bits {
				within = o.Rows[:k]
				break
			}
		}
		_, time := o.clock()
		one := s.metric.of(within, func(row train.Row) float64 { return float64(Bits(row, s.Accounting)) }, time)
		if o.Status == train.Diverged {
			one.value = math.NaN()
		}
		if one.row >= 0 {
			bits = append(bits, float64(Bits(within[one.row], s.Accounting)))
			iterations = append(iterations, float64(within[one.row].Iteration))
		}
		if one.resolution > r.Resolution {
			r.Resolution = one.resolution
		}
		values, accuracies = append(values, one.value), append(accuracies, one.accuracy)
	}
	n := 0
	r.Value, r.Deviation, n = moments(values)
	r.Missing = len(values) - n
	r.accuracy, _, _ = moments(accuracies)
	if mean, _, n := moments(bits); n > 0 {
		at, _, _ := moments(iterations)
		r.Bits, r.Iteration = uint64(math.Round(mean)), int(math.Round(at))
	}
	return r
}

// Budget describes the ranking criterion.
func (s *Sweep) Budget() string {
	at := " at the end of the run"
	if s.metric.reach != "" {
		at = ", interpolated between evaluations"
	}
	if s.Bits > 0 {
		at = fmt.Sprintf(" at the last evaluation within %s, %s accounting", inBits(s.Bits), s.Accounting)
	}
	if len(s.Seeds) > 1 {
		at += fmt.Sprintf(", mean of %d seeds", len(s.Seeds))
	}
	return fmt.Sprintf("%s of %s%s", s.Best, s.Metric, at)
}

// Verdict names the run to go on with, or says that there is none.
func (s *Sweep) Verdict(ranked []Ranked) string {
	switch {
	case ranked[0].HasValue():
		return "best: fspda train -c " + filepath.Join(ranked[0].Folder, "config.yaml")
	case s.metric.reach != "":
		return "no setting reached it"
	}
	return "no setting has a value of " + s.Metric
}

// RankedLine is a line of a ranking in JSON.
type RankedLine struct {
	Rank       *int      `json:"rank"` // from 1; null where there is no value
	Run        string    `json:"run"`
	Folder     string    `json:"folder"` // of the first run
	Metric     string    `json:"metric"`
	Value      train.Num `json:"value"` // null where there is none
	Deviation  train.Num `json:"std"`   // sample standard deviation over the seeds
	Runs       int       `json:"runs"`
	Missing    int       `json:"runs_without_value"`
	Resolution train.Num `json:"resolution"` // of what it took to reach an accuracy
	Iteration  int       `json:"iteration"`
	Bits       uint64    `json:"bits"`
	Status     string    `json:"status"`
	Failed     int       `json:"failed_to_converge"` // runs
}

// Lines returns a ranking as lines for JSON.
func (s *Sweep) Lines(ranked []Ranked) []RankedLine {
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

// status says how the runs of a setting ended.
func (s Setting) status() string {
	if share := s.Outcomes[0].Dropped; share > 0 {
		return fmt.Sprintf("given up at %g %%", 100*share)
	}
	count := map[train.Status]int{}
	for _, o := range s.Outcomes {
		count[o.Status]++
	}
	var words []string
	for _, k := range []train.Status{train.Finished, train.Stopped, train.Diverged, ""} {
		name := cmp.Or(string(k), string(train.Stopped))
		switch {
		case count[k] == len(s.Outcomes):
			return name
		case count[k] > 0:
			words = append(words, fmt.Sprintf("%d %s", count[k], name))
		}
	}
	return strings.Join(words, ", ")
}

// WriteRanking writes a ranking as Markdown or CSV.
func (s *Sweep) WriteRanking(w io.Writer, ranked []Ranked, asCSV bool) error {
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

// writeMarkdownTable writes lines of cells, the first of which is the head.
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
