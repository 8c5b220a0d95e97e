package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"gonum.org/v1/gonum/stat"

	"fspda/internal/bounded"
	"fspda/train"
	"fspda/train/config"
)

// Tuning compares methods with the same budget of tuning. Each method has a grid of the same number
// of points, and the same number of values where two grids have one key. Every point runs with all
// Seeds. For each budget, the best point of each method, by the mean of the metric, runs again with
// the seeds of Report, which no choice has seen: only those runs are reported.
type Tuning struct {
	ID      string        `yaml:"id"` // of a figure
	Title   string        `yaml:"title"`
	About   string        `yaml:"about"`
	Network yaml.MapSlice `yaml:"network"` // links of all runs
	Base    yaml.MapSlice `yaml:"base"`    // configuration of all runs
	Methods []TunedMethod `yaml:"methods"`
	Seeds   Seeds         `yaml:"seeds"`  // of the search
	Report  Seeds         `yaml:"report"` // of the runs that are reported

	Metric     string   `yaml:"metric"`     // see ParseMetric; default test_acc_avg
	Best       string   `yaml:"best"`       // max or min; by default max for accuracies, min for the rest
	Budget     Budget   `yaml:",inline"`    // the only one, or
	Budgets    []Budget `yaml:"budgets"`    // several, each with a choice and a table of its own
	Accounting string   `yaml:"accounting"` // of the bits

	metric Metric
	last   []string // keys that all runs get last, as YAML
	kept   bool     // some methods may have been left out: keys of Base need no effect
}

// Budget is what the runs of a tuning may spend: the metric counts at the last evaluation within so
// many bits and seconds of virtual time. 0 is no limit.
type Budget struct {
	Bits    float64 `yaml:"bits"`
	Seconds float64 `yaml:"seconds"`
}

// TunedMethod is a method with its grid.
type TunedMethod struct {
	Name  string        `yaml:"name"`  // of its line; empty: its algo
	Group string        `yaml:"group"` // of the plot that shows it
	Set   yaml.MapSlice `yaml:"set"`   // its configuration, on top of Tuning.Base
	Grid  yaml.MapSlice `yaml:"grid"`  // key: [values]

	points [][]setting
}

// ReadTuning reads a tuning from a YAML file.
func ReadTuning(path string) (*Tuning, error) {
	text, err := bounded.YAMLFile(path)
	if err != nil {
		return nil, &train.ConfigError{Key: "-c", Got: path, Err: err}
	}
	return parseTuning(path, text)
}

// tuningForms are the keys of a tuning.
var tuningForms = []form{
	{"id", "my-search"}, {"title", "My search"}, {"about", "what it answers"},
	{"network", "{default: {latency_ms: 30}}"},
	{"base", "{iterations: 2000}"},
	{"methods", "[{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}], each with name, group, set, grid"},
	{"seeds", "[101, 102]"}, {"report", "[1, 2, 3]"}, {"metric", "test_acc_avg"}, {"best", "max"},
	{"bits", "1.0e+9"}, {"seconds", "60"}, {"budgets", "[{bits: 1.0e+9}], each with bits, seconds"},
	{"accounting", "shared-seed"},
}

func parseTuning(path string, text []byte) (*Tuning, error) {
	t := &Tuning{Metric: "test_acc_avg", Accounting: "shared-seed", Seeds: Seeds{101, 102}, Report: Seeds{1, 2, 3}}
	if err := decode(path, text, t, tuningForms); err != nil {
		return nil, err
	}
	return t, errors.Join(t.check(), t.settleMethods())
}

func (t *Tuning) check() error {
	switch {
	case t.Budgets == nil:
		t.Budgets = []Budget{t.Budget}
	case len(t.Budgets) == 0:
		return &train.ConfigError{Key: "budgets", Want: "is an empty list: expected at least one budget, or no list"}
	case t.Budget != (Budget{}):
		return &train.ConfigError{Key: "budgets", Want: "bits and seconds are set outside of them too: move these in"}
	}
	var errs []error
	judge := Sweep{Grid: yaml.MapSlice{{}}, Metric: t.Metric, Best: t.Best, Accounting: t.Accounting}
	for _, b := range t.Budgets {
		judge.Bits = b.Bits
		errs = append(errs, judge.check())
		if !(b.Seconds >= 0) || math.IsInf(b.Seconds, 0) {
			errs = append(errs, &train.ConfigError{Key: "seconds", Got: fmt.Sprint(b.Seconds),
				Want: "expected a budget of virtual time above 0, or 0 for no limit"})
		}
	}
	t.Metric, t.metric, t.Best = judge.Metric, judge.metric, judge.Best
	return errors.Join(append(errs, t.SetReport(t.Report))...)
}

// SetReport sets the seeds that are reported. It refuses those of the search.
func (t *Tuning) SetReport(seeds Seeds) error {
	t.Report = seeds
	for _, s := range seeds {
		if slices.Contains(t.Seeds, s) {
			return &train.ConfigError{Key: "report", Got: fmt.Sprint(s),
				Want: "is one of the seeds of the search: what is reported must not have been chosen on"}
		}
	}
	return nil
}

// settleMethods makes the points of all grids and refuses unequal budgets.
func (t *Tuning) settleMethods() error {
	if len(t.Methods) == 0 {
		return &train.ConfigError{Key: "methods", Want: "expected the methods to compare, each with set and grid"}
	}
	names, values := map[string]bool{}, map[string]map[int][]string{}
	var sizes []string
	unequal := false
	for i := range t.Methods {
		m := &t.Methods[i]
		c, _, err := t.config(*m, nil)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(slices.Concat(t.Base, m.Set, m.Grid), isSeed) {
			return &train.ConfigError{Key: "methods", Got: cmp.Or(m.Name, c.Algo), Want: "has the key seed in base, " +
				"set or grid, where it has no effect: name the seeds of the search in seeds, and those that are " +
				"reported in report"}
		}
		m.Name = cmp.Or(m.Name, c.Algo)
		if names[plainName(m.Name)] {
			return &train.ConfigError{Key: "methods", Got: m.Name,
				Want: "occurs twice: give each line a name of its own"}
		}
		names[plainName(m.Name)] = true
		if m.points, err = (&Sweep{Grid: m.Grid}).points(); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		for _, item := range m.Grid {
			key, n := fmt.Sprint(item.Key), len(item.Value.([]any))
			if values[key] == nil {
				values[key] = map[int][]string{}
			}
			values[key][n] = append(values[key][n], m.Name)
		}
		sizes = append(sizes, fmt.Sprintf("%s %d", m.Name, len(m.points)))
		unequal = unequal || len(m.points) != len(t.Methods[0].points)
	}
	if unequal {
		return &train.ConfigError{Key: "methods", Got: strings.Join(sizes, ", "),
			Want: "are the points of the grids: give each method as many as the others, or the comparison is not fair"}
	}
	for key, by := range values {
		if len(by) > 1 {
			return &train.ConfigError{Key: "methods", Got: key, Want: "has more values in one grid than in another: " +
				"give each method as many values of it"}
		}
	}
	return nil
}

// config returns the configuration of a method at a point, and the keys that all methods share.
func (t *Tuning) config(m TunedMethod, point []setting) (c train.Config, shared []string, err error) {
	own := func(c *train.Config) error {
		errs := []error{parseKeys(c, "set", m.Set)}
		for _, kv := range point {
			errs = append(errs, c.Parse("grid", []byte(kv.key+": "+kv.value)))
		}
		return errors.Join(errs...)
	}
	last := func(c *train.Config) (err error) {
		for _, text := range t.last {
			err = errors.Join(err, c.Parse("--set", []byte(text)))
		}
		return err
	}
	c, err = config.Made(func(c *train.Config) error {
		return errors.Join(parseKeys(c, "base", t.Base), own(c), last(c))
	})
	if err != nil {
		return c, nil, err
	}
	err = errors.Join(c.Check(), c.FindData())
	var base, set, over train.Config
	err = errors.Join(err, parseKeys(&base, "base", t.Base), own(&set), last(&over))
	if !t.kept {
		shared = base.TakeExplicit()
	}
	shared = append(shared, over.TakeExplicit()...)
	c.TakeExplicit()
	c.SetExplicit(set.TakeExplicit()...) // each must have an effect
	return c, shared, err
}

// job is the run of a method at a point with a seed.
func (t *Tuning) job(m TunedMethod, prefix string, point []setting, seed uint64) (Job, error) {
	c, shared, err := t.config(m, point)
	c.Seed = seed
	words := []string{m.Name}
	for _, kv := range point {
		words = append(words, kv.key+"="+strings.Trim(kv.value, `"'`))
	}
	setting := prefix + plainName(strings.Join(words, "-"))
	name := fmt.Sprintf("%s-seed-%d", setting, seed)
	if err != nil {
		err = fmt.Errorf("run %s: %w", name, err)
	}
	return Job{Name: name, Setting: setting, Title: strings.Join(words, " "), Group: m.Name, Config: c,
		Shared: shared}, err
}

// Search returns the runs of the search: by method, then by point, then by seed.
func (t *Tuning) Search() (jobs []Job, _ error) {
	var errs []error
	for _, m := range t.Methods {
		for p, point := range m.points {
			for _, seed := range t.Seeds {
				j, err := t.job(m, fmt.Sprintf("search-%03d-", p+1), point, seed)
				jobs, errs = append(jobs, j), append(errs, err)
			}
		}
	}
	return jobs, errors.Join(append(errs, t.checkTime(jobs))...)
}

// checkTime refuses what needs virtual time for runs that have none: a budget of it, and a metric
// that compares times of runs of which only some have it.
func (t *Tuning) checkTime(jobs []Job) error {
	lacks := func(j Job) bool { return len(t.Network) == 0 && !j.Config.HasVirtualTime() }
	at := slices.IndexFunc(jobs, lacks)
	if at < 0 {
		return nil
	}
	limited := func(b Budget) bool { return b.Seconds > 0 }
	switch mixed := slices.ContainsFunc(jobs, func(j Job) bool { return !lacks(j) }); {
	case slices.ContainsFunc(t.Budgets, limited):
		return &train.ConfigError{Key: "seconds", Want: fmt.Sprintf("is a budget of virtual time, which the runs of "+
			"%s do not have: give them a network, or links", jobs[at].Group)}
	case t.metric.reach == "time" && mixed:
		return &train.ConfigError{Key: "metric", Got: t.Metric, Want: fmt.Sprintf("compares times, and the runs of %s "+
			"have no virtual time, as others have: give all of them a network, or links", jobs[at].Group)}
	}
	return nil
}

// TuneResult is the comparison within one budget.
type TuneResult struct {
	Budget
	Choices []Choice // of each method
}

// Choice is what the search chose for a method, and what the runs on fresh seeds gave.
type Choice struct {
	Method string
	Grid   string
	Chosen string   // nothing if every point has a run without a value
	Edge   []string // keys whose chosen value is the least or the largest of several numbers
	Search float64  // mean of the metric over the seeds of the search
	Failed int      // points with a run that diverged or had no evaluation within the budget
	Runs   int      // of the search

	Mean, Std float64 // of the metric over the fresh seeds; NaN if one has no value
	Values    []float64
	Bits      uint64  // mean at those evaluations
	Seconds   float64 // the same of virtual time
	Outcomes  []*Outcome

	point []setting
}

// Choose picks the best point of each method for each budget. Outcomes are those of Search, in its
// order. Of equal points the first wins.
func (t *Tuning) Choose(outcomes []*Outcome) (all []TuneResult) {
	for _, b := range t.Budgets {
		all = append(all, TuneResult{Budget: b, Choices: t.choose(b, outcomes)})
	}
	return all
}

func (t *Tuning) choose(b Budget, outcomes []*Outcome) (all []Choice) {
	for _, m := range t.Methods {
		c := Choice{Method: m.Name, Grid: strings.TrimSpace(flow(m.Grid)), Search: math.NaN(), Mean: math.NaN(),
			Std: math.NaN(), Runs: len(m.points) * len(t.Seeds)}
		for _, point := range m.points {
			mean := 0.0
			for range t.Seeds {
				v, _ := t.judge(b, outcomes[0])
				mean += v / float64(len(t.Seeds))
				outcomes = outcomes[1:]
			}
			switch {
			case math.IsNaN(mean):
				c.Failed++
			case c.point == nil || t.better(mean, c.Search):
				c.point, c.Search = point, mean
			}
		}
		c.describe(m)
		all = append(all, c)
	}
	return all
}

// describe writes out the chosen point, and which of its values are at an end of their range.
func (c *Choice) describe(m TunedMethod) {
	var words []string
	for k, kv := range c.point {
		words = append(words, kv.key+" "+strings.Trim(kv.value, `"'`))
		if atEnd(kv.value, m.Grid[k].Value.([]any)) {
			c.Edge = append(c.Edge, kv.key)
		}
	}
	c.Chosen = strings.Join(words, ", ")
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

func flow(keys yaml.MapSlice) string {
	text, err := yaml.MarshalWithOptions(keys, yaml.Flow(true))
	if err != nil {
		return fmt.Sprint(keys)
	}
	return string(text)
}

func (t *Tuning) better(a, b float64) bool {
	if t.Best == "max" {
		return a > b
	}
	return a < b
}

// judge returns the metric of a run at its last evaluation within the budget; NaN if it diverged or
// has none.
func (t *Tuning) judge(b Budget, o *Outcome) (value float64, at train.Row) {
	if o == nil || o.Status == train.Diverged {
		return math.NaN(), at
	}
	within := o.Rows[:t.Within(b, o)]
	_, time := o.clock()
	s := t.metric.of(within, t.bits, time)
	if s.row >= 0 {
		at = within[s.row]
	}
	return s.value, at
}

// Within returns the number of evaluations of a run until its budget is spent.
func (t *Tuning) Within(b Budget, o *Outcome) int {
	spent := func(r train.Row) bool {
		return b.Bits > 0 && t.bits(r) > b.Bits || b.Seconds > 0 && float64(r.Time) > b.Seconds
	}
	if k := slices.IndexFunc(o.Rows, spent); k >= 0 {
		return k
	}
	return len(o.Rows)
}

func (t *Tuning) bits(r train.Row) float64 { return float64(Bits(r, t.Accounting)) }

// Fresh returns the runs of the chosen points with the seeds that are reported, each once.
func (t *Tuning) Fresh(results []TuneResult) (jobs []Job, _ error) {
	var errs []error
	seen := map[string]bool{}
	for _, r := range results {
		for i, c := range r.Choices {
			if c.point == nil {
				continue
			}
			for _, seed := range t.Report {
				j, err := t.job(t.Methods[i], "report-", c.point, seed)
				if !seen[j.Name] {
					jobs, errs = append(jobs, j), append(errs, err)
				}
				seen[j.Name] = true
			}
		}
	}
	return jobs, errors.Join(errs...)
}

// Finish enters the outcomes of Fresh, in its order.
func (t *Tuning) Finish(results []TuneResult, outcomes []*Outcome) error {
	fresh, err := t.Fresh(results)
	if err != nil {
		return err
	}
	made := map[string]*Outcome{}
	for k, j := range fresh {
		made[j.Name] = outcomes[k]
	}
	for _, r := range results {
		for i := range r.Choices {
			c := &r.Choices[i]
			if c.point == nil {
				continue
			}
			for _, seed := range t.Report {
				j, err := t.job(t.Methods[i], "report-", c.point, seed)
				if err != nil {
					return err
				}
				c.Outcomes = append(c.Outcomes, made[j.Name])
			}
			t.report(r.Budget, c)
		}
	}
	return nil
}

// report enters the numbers of the outcomes of a choice.
func (t *Tuning) report(b Budget, c *Choice) {
	var bits, seconds []float64 // of the runs that have a value
	for _, o := range c.Outcomes {
		v, row := t.judge(b, o)
		if c.Values = append(c.Values, v); !math.IsNaN(v) {
			bits, seconds = append(bits, t.bits(row)), append(seconds, float64(row.Time))
		}
	}
	if len(bits) > 0 {
		c.Bits, c.Seconds = uint64(math.Round(stat.Mean(bits, nil))), stat.Mean(seconds, nil)
	}
	if mean, deviation, have := moments(c.Values); have == len(c.Values) {
		c.Mean, c.Std = mean, deviation
	}
}
