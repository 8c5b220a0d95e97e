package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
)

// Halving gives points up early: at each share of At, the best Keep of the points of a run go on,
// judged by the metric at the last evaluation up to there, and the others stop with a checkpoint.
// The runs follow the schedule of their full length.
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

// Run makes the runs of a campaign whose jobs are the first of the experiment. It returns the
// outcomes of [Campaign.Run], and the outcomes of points that were given up on the way.
func (e *Experiment) Run(ctx context.Context, c *Campaign) ([]*Outcome, error) {
	if e.Search == nil || e.Search.Halving == nil {
		return RunAll(ctx, c)
	}
	h := e.Search.Halving
	all := make([]*Outcome, len(c.Jobs))
	alive := make([]int, len(c.Jobs))
	for i := range alive {
		alive[i] = i
	}
	for stage, share := range append(slices.Clone(h.At), 1) {
		outcomes, err := c.part(alive, share, stage == 0).Run(ctx)
		for k, o := range outcomes {
			all[alive[k]] = o
		}
		if err != nil || share == 1 {
			return all, err
		}
		going := map[*Outcome]bool{}
		for i := range e.Runs {
			ranked, err := e.Rank(e.Search.Budgets[0], ofRun(outcomes, i))
			if err != nil {
				return all, err
			}
			for k, r := range ranked {
				for _, o := range r.Setting.Outcomes {
					if going[o] = float64(k) < h.Keep*float64(len(ranked)); !going[o] {
						o.Dropped = share
					}
				}
			}
		}
		alive = slices.DeleteFunc(alive, func(i int) bool { return !going[all[i]] })
	}
	return all, nil
}

// RunAll makes all runs of a campaign.
func RunAll(ctx context.Context, c *Campaign) ([]*Outcome, error) { return c.Run(ctx) }

// Column returns the column of the metrics that curves show: the metric, or the accuracy that was
// to be reached.
func (s *Search) Column() string {
	if s.metric.reach != "" {
		return "test_acc_avg"
	}
	return s.Metric
}

func ofRun(outcomes []*Outcome, run int) (own []*Outcome) {
	for _, o := range outcomes {
		if o != nil && o.Job.run == run {
			own = append(own, o)
		}
	}
	return own
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

// Verdict is the metric of the runs of a setting within a budget.
type Verdict struct {
	// Value is the mean over the runs that have a value: a run that diverged, or had no evaluation
	// within the budget, has none. It is NaN if no run has one.
	Value      float64
	Deviation  float64   // sample standard deviation; NaN of fewer than two
	Values     []float64 // The value of each run, NaN if it has none.
	Missing    int       // runs without a value
	Resolution float64   // largest distance of the evaluations between which a value was interpolated

	Bits      uint64  // bits at the evaluation that was judged, the mean over the runs
	Iteration int     // the same
	Seconds   float64 // the same, in virtual time

	accuracy float64 // mean of the last accuracies
}

// HasValue reports whether a run of the setting has a value. Settings without one have no rank.
func (v Verdict) HasValue() bool { return !math.IsNaN(v.Value) }

// Within returns the number of evaluations of a run until its budget is spent.
func (s *Search) Within(b Budget, o *Outcome) int {
	spent := func(r train.Row) bool {
		return b.Bits > 0 && s.bits(r) > b.Bits || b.Seconds > 0 && float64(r.Time) > b.Seconds
	}
	if k := slices.IndexFunc(o.Rows, spent); k >= 0 {
		return k
	}
	return len(o.Rows)
}

func (s *Search) bits(r train.Row) float64 { return float64(Bits(r, s.Accounting)) }

// judge computes the metric of runs within a budget.
func (s *Search) judge(b Budget, outcomes []*Outcome) Verdict {
	var v Verdict
	var accuracies, bits, iterations, seconds []float64
	for _, o := range outcomes {
		one := score{value: math.NaN(), accuracy: math.NaN(), row: -1}
		if o != nil {
			within := o.Rows[:s.Within(b, o)]
			_, time := o.clock()
			one = s.metric.of(within, s.bits, time)
			if o.Status == train.Diverged {
				one.value = math.NaN()
			}
			if one.row >= 0 {
				row := within[one.row]
				bits, iterations = append(bits, s.bits(row)), append(iterations, float64(row.Iteration))
				seconds = append(seconds, float64(row.Time))
			}
		}
		if one.resolution > v.Resolution {
			v.Resolution = one.resolution
		}
		v.Values, accuracies = append(v.Values, one.value), append(accuracies, one.accuracy)
	}
	n := 0
	v.Value, v.Deviation, n = moments(v.Values)
	v.Missing = len(v.Values) - n
	v.accuracy, _, _ = moments(accuracies)
	if mean, _, n := moments(bits); n > 0 {
		at, _, _ := moments(iterations)
		v.Bits, v.Iteration = uint64(math.Round(mean)), int(math.Round(at))
		v.Seconds, _, _ = moments(seconds)
	}
	return v
}

// Ranked is a setting with its verdict.
type Ranked struct {
	*Outcome // the first of its runs
	Setting  Setting
	Verdict
}

// Rank sorts settings, the best first, without runs that were left out. Settings that were given up
// come after settings that went on, and settings with a run without a value come after settings in
// which every run has one. Equal values keep the order of the experiment. It is an error to compare
// times of runs with and without virtual time.
func (e *Experiment) Rank(b Budget, outcomes []*Outcome) ([]Ranked, error) {
	s := e.Search
	if s.metric.reach == "time" {
		if err := sameClock(outcomes); err != nil {
			return nil, err
		}
	}
	var all []Ranked
	for _, setting := range Settings(outcomes) {
		all = append(all, Ranked{setting.Outcomes[0], setting, s.judge(b, setting.Outcomes)})
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

// Result is the comparison of the runs of a tuning within one budget.
type Result struct {
	Budget
	Choices []Choice // choices of each run
}

// Choice is the point that the search chose for a run, with the verdict of the runs with fresh
// seeds. It is encoded in JSON as a line of the table; numbers that do not exist are null.
type Choice struct {
	MaxBits    float64     `json:"budget_bits"` // 0 without a limit
	MaxSeconds float64     `json:"budget_seconds"`
	Method     string      `json:"method"`
	Grid       string      `json:"grid"`
	Chosen     string      `json:"chosen"`          // Empty if every point has a run without a value.
	Edge       []string    `json:"edge"`            // Keys whose chosen value is at an end of its range.
	Runs       int         `json:"search_runs"`     // Number of runs of the search.
	Failed     int         `json:"failed_points"`   // Points with a run that has no value.
	Metric     string      `json:"metric"`          // Name of the metric.
	Search     train.Num   `json:"search"`          // Mean of the metric over the seeds of the search.
	Mean       train.Num   `json:"mean"`            // Mean over the fresh seeds, if all have a value.
	Std        train.Num   `json:"std"`             // Sample standard deviation.
	Values     []train.Num `json:"values"`          // Value of each fresh seed.
	Bits       uint64      `json:"bits"`            // Mean at the evaluations that were judged.
	Seconds    train.Num   `json:"virtual_seconds"` // The same.

	Run      *Run       `json:"-"`
	Algo     string     `json:"-"`
	Outcomes []*Outcome `json:"-"` // Runs with the fresh seeds.

	run   int
	point []setting
}

// Choose picks the best point of each run for each budget. Of equal points the first wins.
func (e *Experiment) Choose(outcomes []*Outcome) (results []Result, _ error) {
	for _, b := range e.Search.Budgets {
		r := Result{Budget: b}
		for i := range e.Runs {
			own := ofRun(outcomes, i)
			if len(own) == 0 { // it was not selected
				continue
			}
			ranked, err := e.Rank(b, own)
			if err != nil {
				return nil, err
			}
			run, none := &e.Runs[i], train.Num(math.NaN())
			c := Choice{MaxBits: b.Bits, MaxSeconds: b.Seconds, Method: run.Title, Metric: e.Search.Metric,
				Grid: flow(slices.Concat(run.Grid, run.Random)), Edge: []string{}, Runs: len(own),
				Search: none, Mean: none,
				Std: none, Values: []train.Num{}, Run: run, Algo: own[0].Job.Config.Algo, run: i}
			for _, p := range ranked {
				if p.Missing > 0 {
					c.Failed++
				}
			}
			if best := ranked[0]; best.Missing == 0 && best.HasValue() && best.Dropped == 0 {
				c.Search, c.point = train.Num(best.Value), best.Job.point
				c.describe()
			}
			r.Choices = append(r.Choices, c)
		}
		results = append(results, r)
	}
	return results, nil
}

// describe writes out the chosen point, and which of its values are at an end of their range.
func (c *Choice) describe() {
	words := []string{}
	for k, kv := range c.point {
		words = append(words, kv.key+" "+strings.Trim(kv.value, `"'`))
		if k < len(c.Run.Grid) && atEnd(kv.value, c.Run.Grid[k].Value.([]any)) {
			c.Edge = append(c.Edge, kv.key)
		}
	}
	c.Chosen = cmp.Or(strings.Join(words, ", "), "its settings")
}

// atEnd reports whether a value is the least or the largest of several numbers.
func atEnd(chosen string, values []any) bool {
	at, err := strconv.ParseFloat(chosen, 64)
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if x, err := strconv.ParseFloat(fmt.Sprint(v), 64); err == nil {
			low, high = min(low, x), max(high, x)
		}
	}
	return err == nil && low < high && (at <= low || at >= high)
}

// flow writes the grid and the random keys of a run on one line.
func flow(keys yaml.MapSlice) string {
	text, err := yaml.MarshalWithOptions(keys, yaml.Flow(true))
	if err != nil {
		return fmt.Sprint(keys)
	}
	return strings.TrimSpace(string(text))
}

// Fresh returns the runs of the chosen points with the seeds that are reported, each once.
func (e *Experiment) Fresh(results []Result, o Options) (jobs []Job, _ error) {
	var errs []error
	seen := map[string]bool{}
	for _, r := range results {
		for _, c := range r.Choices {
			if c.Chosen == "" {
				continue
			}
			j, err := e.job(c.run, "report-", c.point, o, 0)
			if !seen[j.Name] {
				jobs, errs = append(jobs, j), append(errs, err)
			}
			seen[j.Name] = true
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e.Seeds.Jobs(jobs)
}

// Finish enters the outcomes of Fresh.
func (e *Experiment) Finish(results []Result, outcomes []*Outcome) {
	for _, r := range results {
		for i := range r.Choices {
			c := &r.Choices[i]
			if c.Chosen == "" {
				continue
			}
			for _, o := range outcomes {
				if o != nil && o.Job.run == c.run && slices.Equal(o.Job.point, c.point) {
					c.Outcomes = append(c.Outcomes, o)
				}
			}
			v := e.Search.judge(r.Budget, c.Outcomes)
			c.Bits, c.Seconds = v.Bits, train.Num(v.Seconds)
			for _, value := range v.Values {
				c.Values = append(c.Values, train.Num(value))
			}
			if v.Missing == 0 && len(c.Outcomes) == len(e.Seeds) {
				c.Mean, c.Std = train.Num(v.Value), train.Num(v.Deviation)
			}
		}
	}
}
