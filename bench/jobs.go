package bench

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
	"fspda/train/config"
)

// Options change the runs of an experiment.
type Options struct {
	Variant string
	Scale   Scale               // The zero value is the full length.
	Only    []string            // Names, or parts of names between dashes; empty is all.
	Without []string            // The same for runs to leave out.
	Adjust  func(*train.Config) // Adjust changes every configuration last, such as its data and threads.
	Points  int                 // Number of evaluations; 0 is the experiment's.
}

// Job is one run of a campaign.
type Job struct {
	Name   string // Name of its folder.
	Title  string // Title in legends, with a description of its exchanges.
	Group  string
	Config train.Config
	Shared []string // Keys that were set for all runs: they must have an effect on at least one of them.

	Setting string // Name of the runs that differ from this one in their seeds only; empty if none does.

	run   int // index of the Run
	point []setting
}

// Jobs returns the first runs of an experiment: the runs of the search, or else all.
func (e *Experiment) Jobs(o Options) ([]Job, error) {
	if err := e.checkOptions(o); err != nil {
		return nil, err
	}
	runs, err := e.selected(o)
	if err != nil {
		return nil, err
	}
	limit, err := e.maxFactor(o.Variant)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	var errs []error
	said := map[string]bool{} // an error of many runs is reported once
	for _, i := range runs {
		for k, point := range e.Runs[i].points {
			prefix := fmt.Sprintf("search-%03d-", k+1)
			if e.Kind() == Ranking {
				prefix = fmt.Sprintf("%03d", len(jobs)+1)
			}
			j, err := e.job(i, prefix, point, o, limit)
			if jobs = append(jobs, j); err != nil && !said[err.Error()] {
				said[err.Error()] = true
				errs = append(errs, e.inJob(j, err))
			}
		}
	}
	seeds := e.Seeds
	if e.Search != nil {
		errs, seeds = append(errs, e.checkTime(jobs)), e.Search.Seeds
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return seeds.Jobs(jobs)
}

func (e *Experiment) checkOptions(o Options) error {
	names := VariantNames
	if e.Origin != Paper || e.Search != nil {
		names = slices.Sorted(maps.Keys(e.Variants))
	}
	known := o.Variant == "" && (e.Origin != Paper || e.Search != nil) || slices.Contains(names, o.Variant)
	switch {
	case !known && len(names) == 0:
		return &train.ConfigError{Key: "flavour", Got: o.Variant, Want: "the file has no variants: leave it out"}
	case !known:
		return unknownName("flavour", o.Variant, names)
	case e.Search != nil:
		return nil
	}
	return o.Scale.check()
}

// inJob names the run in an error.
func (e *Experiment) inJob(j Job, err error) error {
	if e.Number > 0 {
		return fmt.Errorf("figure %d, run %s: %w", e.Number, j.Name, err)
	}
	return fmt.Errorf("run %s: %w", j.Name, err)
}

// selected returns the indices of the selected runs. A name selects the run that has it, or else
// all runs of which it is a part between dashes, such as sa for sa-sorted.
func (e *Experiment) selected(o Options) (runs []int, _ error) {
	names := e.RunNames()
	matches := func(i int, pattern string) bool {
		return names[i] == pattern ||
			!slices.Contains(names, pattern) && slices.Contains(strings.Split(names[i], "-"), pattern)
	}
	for _, pattern := range slices.Concat(o.Only, o.Without) {
		if !slices.ContainsFunc(e.Runs, func(r Run) bool { return matches(slices.Index(names, r.Name), pattern) }) {
			return nil, unknownName("run", pattern, names)
		}
	}
	for i := range e.Runs {
		match := func(pattern string) bool { return matches(i, pattern) }
		if (len(o.Only) == 0 || slices.ContainsFunc(o.Only, match)) && !slices.ContainsFunc(o.Without, match) {
			runs = append(runs, i)
		}
	}
	if len(runs) == 0 {
		return nil, &train.ConfigError{Key: "--without", Got: strings.Join(o.Without, ","), Want: "no run is left"}
	}
	return runs, nil
}

// maxFactor returns the factor by which all runs, selected or not, can increase the bits that they
// exchange.
func (e *Experiment) maxFactor(variant string) (float64, error) {
	least := math.Inf(1)
	if e.Search != nil {
		return least, nil
	}
	for i := range e.Runs {
		c, err := e.config(&e.Runs[i], variant, nil, nil)
		if err != nil {
			return 0, e.inJob(Job{Name: e.Runs[i].Name}, err)
		}
		least = min(least, maxFactor(c))
	}
	return least, nil
}

// job returns a run at a point, without a seed of its own. prefix is the beginning of the names of
// runs of a search.
func (e *Experiment) job(i int, prefix string, point []setting, o Options, limit float64) (Job, error) {
	r := &e.Runs[i]
	j := Job{Name: r.Name, Title: r.Title, Group: r.Group, run: i, point: point}
	if e.Search != nil {
		j.name(prefix, r, e.Kind() == Tuning)
	}
	c, err := e.config(r, o.Variant, point, o.Adjust)
	planned := exchanged(c)
	if err == nil && e.Search == nil {
		c, err = o.Scale.apply(c, o.Points, limit)
	}
	if err != nil {
		return j, err
	}
	j.Shared = c.TakeExplicit()
	var own []string
	if e.Kind() == Tuning {
		set := new(train.Config)
		if err := apply(set, e.parts(r, o.Variant)[2:], point); err != nil {
			return j, err
		}
		own = set.TakeExplicit()
		j.Shared = slices.DeleteFunc(j.Shared, func(key string) bool { return slices.Contains(own, key) })
	}
	if e.Origin == Paper && r.like == nil { // a test has checked the keys of these files
		j.Shared = nil
	}
	algo := c.Algo
	if o.Adjust != nil {
		o.Adjust(&c)
	}
	j.Shared = append(j.Shared, c.TakeExplicit()...)
	if e.Search == nil {
		if c.Algo != algo {
			j.Title = c.Algo
		}
		// A title that the author of a file has written stays, unless another exchange is made than planned.
		if made := exchanged(c); e.Origin != OwnFile || r.Title == r.Name || made != planned {
			j.Title += made
		}
		if r.Group != "" {
			j.Title += " (" + r.Group + ")"
		}
	}
	c.SetExplicit(own...) // each must have an effect on this run
	c.KeepWholeMetrics()
	j.Config = c
	return j, c.Check()
}

// name names a run of a search after its run and its point. The names of earlier versions differ
// between tunings and rankings, and are kept so that studies continue.
func (j *Job) name(prefix string, r *Run, tuning bool) {
	words, titles := []string{plainName(r.Name)}, []string{r.Title}
	for _, kv := range j.point {
		text := kv.key + "=" + plainName(kv.value)
		words = append(words, text)
		if tuning {
			text = kv.key + "=" + strings.Trim(kv.value, `"'`)
		}
		titles = append(titles, text)
	}
	if r.Name == "" {
		words, titles = words[1:], titles[1:]
	}
	j.Title, j.Name = strings.Join(titles, " "), strings.Join(append([]string{prefix}, words...), "-")
	if tuning {
		j.Name = prefix + plainName(strings.Join(words, "-"))
	}
}

// parts returns the parts of the configuration of a run, those with precedence last.
func (e *Experiment) parts(r *Run, variant string) []part {
	return []part{{"base", e.Base}, {"variant " + variant, e.Variants[variant]}, {"set", r.Set},
		{"variant " + variant, r.Variants[variant]}}
}

func apply(c *train.Config, parts []part, point []setting) error {
	var errs []error
	for _, p := range parts {
		if len(p.keys) == 0 {
			continue
		}
		text, err := yaml.Marshal(p.keys)
		if err == nil {
			err = c.Parse(p.name, text)
		}
		errs = append(errs, err)
	}
	for _, kv := range point {
		errs = append(errs, c.Parse("grid", []byte(kv.key+": "+kv.value)))
	}
	return errors.Join(errs...)
}

// config returns the configuration of a run at full length. adjust may change keys on which
// defaults depend.
func (e *Experiment) config(r *Run, variant string, point []setting, adjust func(*train.Config)) (train.Config, error) {
	if r.like != nil {
		return e.fitted(r, variant)
	}
	c, err := config.Made(func(c *train.Config) error {
		err := apply(c, e.parts(r, variant), point)
		if adjust != nil && e.Search != nil {
			adjust(c)
		}
		return err
	})
	if err != nil {
		return c, err
	}
	return c, c.FindData()
}

// fitted returns the configuration of a run that Add made.
func (e *Experiment) fitted(r *Run, variant string) (train.Config, error) {
	c, err := e.config(r.like, variant, nil, nil)
	if err != nil {
		return c, err
	}
	c.FitTo(r.method)
	c.TakeExplicit()
	for _, item := range r.Set {
		text := fmt.Sprintf("%v: %s", item.Key, quotedYAML(fmt.Sprint(item.Value)))
		if err := c.Parse("--with "+r.method, []byte(text)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// checkTime refuses a search that needs virtual time of runs that have none: a budget of it, and a
// metric that compares times of runs of which only some have it.
func (e *Experiment) checkTime(jobs []Job) error {
	lacks := func(j Job) bool { return len(e.Network) == 0 && !j.Config.HasVirtualTime() }
	at := slices.IndexFunc(jobs, lacks)
	if at < 0 {
		return nil
	}
	limited := func(b Budget) bool { return b.Seconds > 0 }
	switch mixed := slices.ContainsFunc(jobs, func(j Job) bool { return !lacks(j) }); {
	case slices.ContainsFunc(e.Search.Budgets, limited):
		return &train.ConfigError{Key: "seconds", Want: fmt.Sprintf("is a budget of virtual time, which the runs of "+
			"%s do not have: give them a network, or links", e.Runs[jobs[at].run].Name)}
	case e.Search.metric.reach == "time" && mixed:
		return &train.ConfigError{Key: "metric", Got: e.Search.Metric,
			Want: fmt.Sprintf("compares times, and the runs "+
				"of %s have no virtual time, as others have: give all of them a network, or links",
				e.Runs[jobs[at].run].Name)}
	}
	return nil
}

// KeyValue returns a pair key=value, as --set has them, as a line of YAML.
func KeyValue(pair string) (string, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		return "", &train.ConfigError{Key: "--set", Got: fmt.Sprintf("%q", pair),
			Want: "expected key=value, such as batch=32"}
	}
	return strings.TrimSpace(key) + ": " + quotedYAML(value), nil
}

// quotedYAML quotes a text such as bernoulli(0.1).
func quotedYAML(v string) string {
	if strings.ContainsAny(v, "(:,") && !strings.HasPrefix(v, "[") && !strings.HasPrefix(v, "{") {
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}
	return v
}

// exchanged describes how much a run exchanges, for the legend; scaling may have changed it.
func exchanged(c train.Config) string {
	name, p := probability(c.Edges)
	switch {
	case c.LocalSteps > 0:
		return fmt.Sprintf(", %d steps", c.LocalSteps)
	case c.Masked():
		return fmt.Sprintf(" %.3g %%", 100*c.Density)
	case name != "":
		return fmt.Sprintf(", p %.3g", p)
	case c.Algo == "swarm" && c.Edges == "matching":
		return ", matchings"
	}
	return ""
}
