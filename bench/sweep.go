package bench

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
	"fspda/internal/rng"
	"fspda/train"
	"fspda/train/config"
)

// Sweep is a hyperparameter search: every combination of the lists in Grid, each with Samples draws
// of the keys in Random.
type Sweep struct {
	Base    yaml.MapSlice `yaml:"base"`    // configuration of all runs
	Grid    yaml.MapSlice `yaml:"grid"`    // key: [values]
	Random  yaml.MapSlice `yaml:"random"`  // key: uniform(a,b), log(a,b), int(a,b), or [values]
	Samples int           `yaml:"samples"` // draws of Random; 1 if it is empty
	Seed    uint64        `yaml:"seed"`    // of the draws

	Seeds   Seeds    `yaml:"seeds"`   // of each setting; empty: that of its configuration
	Halving *Halving `yaml:"halving"` // nil: every run is made to its end

	Metric string `yaml:"metric"` // see ParseMetric; default test_acc_avg
	Best   string `yaml:"best"`   // max or min; by default max for accuracies, min for the rest
	// budget in bits: the metric counts at the last evaluation within it; 0 is the end of the run
	Bits       float64 `yaml:"bits"`
	Accounting string  `yaml:"accounting"` // of the budget

	metric Metric
}

// maxRuns limits the size of a grid.
const maxRuns = 10000

// sweepForms are the keys of a sweep.
var sweepForms = []form{
	{"base", "{algo: dsgd, iterations: 2000}"}, {"grid", "{alpha: [0.1, 0.3]}"},
	{"random", "{eta: 'log(0.0001, 0.01)'}"}, {"samples", "5"}, {"seed", "1"}, {"seeds", "[1, 2, 3]"},
	{"halving", "{at: [0.25, 0.5], keep: 0.5}"}, {"metric", "test_acc_avg"}, {"best", "max"}, {"bits", "1.0e+9"},
	{"accounting", "shared-seed"},
}

// ReadSweep reads a sweep from a YAML file.
func ReadSweep(path string) (*Sweep, error) {
	text, err := bounded.YAMLFile(path)
	if err != nil {
		return nil, &train.ConfigError{Key: "-c", Got: path, Err: err}
	}
	s := &Sweep{Metric: "test_acc_avg", Accounting: "shared-seed", Seed: 1}
	if err := decode(path, text, s, sweepForms); err != nil {
		return nil, err
	}
	return s, errors.Join(s.checkUnused(), s.check())
}

func (s *Sweep) check() error {
	var err error
	s.metric, err = ParseMetric(s.Metric)
	errs := []error{err, s.Halving.check()}
	s.Metric, s.Best = s.metric.Name, cmp.Or(s.Best, s.metric.best())
	if s.Best != "min" && s.Best != "max" {
		errs = append(errs, unknownName("best", s.Best, []string{"min", "max"}))
	}
	if modes := []string{"shared-seed", "packed", "reference"}; !slices.Contains(modes, s.Accounting) {
		errs = append(errs, unknownName("accounting", s.Accounting, modes))
	}
	if s.Bits < 0 || math.IsNaN(s.Bits) || math.IsInf(s.Bits, 0) {
		errs = append(errs, &train.ConfigError{Key: "bits", Got: fmt.Sprint(s.Bits),
			Want: "expected a budget above 0, or 0 for the end of the run"})
	}
	if len(s.Random) == 0 {
		s.Samples = 1
	} else if s.Samples < 1 {
		errs = append(errs, &train.ConfigError{Key: "samples", Got: strconv.Itoa(s.Samples),
			Want: "expected how many draws of the keys in random to try"})
	}
	if len(s.Grid)+len(s.Random) == 0 {
		errs = append(errs, &train.ConfigError{Key: "grid",
			Want: "the sweep has neither grid nor random: there is nothing to search"})
	}
	return errors.Join(errs...)
}

// checkUnused refuses keys of a file that have no effect: about draws where nothing is drawn, and
// keys that stand in two parts.
func (s *Sweep) checkUnused() error {
	switch {
	case len(s.Random) > 0:
	case s.Samples != 0:
		return &train.ConfigError{Key: "samples", Got: strconv.Itoa(s.Samples), Want: "has no effect: there are " +
			"no keys in random to draw; for several runs of each setting write seeds: 3"}
	case s.Seed != 1:
		return &train.ConfigError{Key: "seed", Got: fmt.Sprint(s.Seed), Want: "has no effect: it is the seed of " +
			"the draws of random, which has no keys; for the seeds of the runs write seeds: [1, 2, 3]"}
	}
	part := map[string]string{}
	for _, p := range []struct {
		name string
		keys yaml.MapSlice
	}{{"base", s.Base}, {"grid", s.Grid}, {"random", s.Random}} {
		for _, item := range p.keys {
			key := fmt.Sprint(item.Key)
			if first := part[key]; first != "" {
				return &train.ConfigError{Key: p.name + ": " + key, Got: fmt.Sprint(item.Value),
					Want: fmt.Sprintf("%s has this key too, and would have no effect: leave one of the two out", first)}
			}
			part[key] = p.name
		}
	}
	return nil
}

// setting is one key with a value.
type setting struct{ key, value string }

// Jobs returns the runs. The name of a run is its number and its settings, and its seed if there are
// seeds. A draw depends only on
// the seed of the sweep, its number and its key, so more samples or keys do not change earlier
// draws.
func (s *Sweep) Jobs() ([]Job, error) {
	points, err := s.points()
	if err != nil {
		return nil, err
	}
	var jobs []Job
	var errs []error
	for i, settings := range points {
		words := []string{fmt.Sprintf("%03d", i+1)}
		for _, kv := range settings {
			words = append(words, kv.key+"="+plainName(kv.value))
		}
		c, err := config.Made(func(c *train.Config) error {
			errs := []error{parseKeys(c, "base", s.Base)}
			for _, kv := range settings {
				errs = append(errs, c.Parse("sweep", []byte(kv.key+": "+kv.value)))
			}
			return errors.Join(errs...)
		})
		if err == nil {
			err = errors.Join(c.Check(), c.FindData())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", strings.Join(words, "-"), err))
		}
		shared := c.TakeExplicit()
		jobs = append(jobs, Job{Name: strings.Join(words, "-"), Title: strings.Join(words[1:], " "), Config: c,
			Shared: shared})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(s.Seeds) > 0 && slices.ContainsFunc(slices.Concat(s.Grid, s.Random), isSeed) {
		return nil, &train.ConfigError{Key: "seeds", Got: s.Seeds.String(),
			Want: "grid or random has the key seed too: leave one of the two out"}
	}
	return s.Seeds.Jobs(jobs)
}

// parseKeys sets the given keys of a configuration.
func parseKeys(c *train.Config, what string, keys yaml.MapSlice) error {
	if len(keys) == 0 {
		return nil
	}
	text, err := yaml.Marshal(keys)
	if err != nil {
		return err
	}
	return c.Parse(what, text)
}

func isSeed(item yaml.MapItem) bool { return fmt.Sprint(item.Key) == "seed" }

// plainName replaces characters of a value that file names may not contain.
func plainName(v string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r) {
			return r
		}
		return '_'
	}, strings.Trim(v, `"'`))
}

// points returns the settings of all runs.
func (s *Sweep) points() ([][]setting, error) {
	all := [][]setting{nil}
	for _, item := range s.Grid {
		values, ok := item.Value.([]any)
		if !ok || len(values) == 0 {
			return nil, &train.ConfigError{Key: fmt.Sprintf("grid: %v", item.Key), Got: fmt.Sprint(item.Value),
				Want: "expected a list of values, such as [0.1, 0.3]"}
		}
		if at := repeated(values); at != "" {
			return nil, &train.ConfigError{Key: fmt.Sprintf("grid: %v", item.Key), Got: fmt.Sprint(item.Value),
				Want: "has " + at + " twice: name each value once; for several runs of a setting write seeds"}
		}
		var longer [][]setting
		for _, p := range all {
			for _, v := range values {
				text, err := value(v)
				if err != nil {
					return nil, err
				}
				longer = append(longer, append(slices.Clone(p), setting{fmt.Sprint(item.Key), text}))
			}
		}
		if all = longer; len(all) > maxRuns {
			return nil, &train.ConfigError{Key: "grid", Got: fmt.Sprintf("of more than %d runs", maxRuns),
				Want: "use fewer values, or random"}
		}
	}
	if len(s.Random) == 0 {
		return all, nil
	}
	if most := maxRuns / len(all); s.Samples > most {
		return nil, &train.ConfigError{Key: "samples", Got: strconv.Itoa(s.Samples), Want: fmt.Sprintf("expected at "+
			"most %d: a sweep has at most %d runs", most, maxRuns)}
	}
	var drawn [][]setting
	for _, p := range all {
		for k := range s.Samples {
			q := slices.Clone(p)
			for _, item := range s.Random {
				v, err := s.draw(fmt.Sprint(item.Key), item.Value, k)
				if err != nil {
					return nil, err
				}
				q = append(q, setting{fmt.Sprint(item.Key), v})
			}
			drawn = append(drawn, q)
		}
	}
	return drawn, nil
}

// repeated returns a value that occurs twice in a list; empty: none does.
func repeated(values []any) string {
	seen := map[string]bool{}
	for _, v := range values {
		text := fmt.Sprint(v)
		if seen[text] {
			return text
		}
		seen[text] = true
	}
	return ""
}

// value formats a value of the grid as YAML on one line.
func value(v any) (string, error) {
	text, err := yaml.MarshalWithOptions(v, yaml.Flow(true))
	return strings.TrimSpace(string(text)), err
}

// draw returns the k-th draw of a key.
func (s *Sweep) draw(key string, distribution any, k int) (string, error) {
	stream := rng.New(s.Seed, "sweep", hash(key), uint64(k))
	if list, ok := distribution.([]any); ok && len(list) > 0 {
		return value(list[stream.IntN(len(list))])
	}
	name, arg, _ := strings.Cut(strings.ReplaceAll(fmt.Sprint(distribution), " ", ""), "(")
	arg, closed := strings.CutSuffix(arg, ")")
	from, to, two := strings.Cut(arg, ",")
	a, errA := strconv.ParseFloat(from, 64)
	b, errB := strconv.ParseFloat(to, 64)
	bad := !closed || !two || errA != nil || errB != nil || !(a < b) || math.IsInf(b-a, 0)
	u := stream.Float64()
	switch {
	case !bad && name == "uniform":
		return strconv.FormatFloat(digits(a+(b-a)*u), 'g', -1, 64), nil
	case !bad && name == "log" && a > 0:
		return strconv.FormatFloat(digits(a*math.Pow(b/a, u)), 'g', -1, 64), nil
	case !bad && name == "int" && a == math.Trunc(a) && b == math.Trunc(b) && max(-a, b) <= 1<<53:
		return strconv.Itoa(int(a) + stream.IntN(int(b-a)+1)), nil
	}
	return "", &train.ConfigError{Key: "random: " + key, Got: fmt.Sprint(distribution),
		Want: "expected uniform(a,b), log(a,b) with a above 0, int(a,b), each with a below b, both finite, or a list " +
			"of values"}
}

// hash returns the FNV-1a hash of a name.
func hash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
