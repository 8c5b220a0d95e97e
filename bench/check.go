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

	"fspda/train"
)

// check validates an experiment whose defaults are set, and makes the points of its runs.
func (e *Experiment) check() error {
	switch {
	case len(e.Files) > 0 && len(e.Runs) > 0:
		return &train.ConfigError{Key: "files", Want: "the file has runs too: move them to a file of their own, " +
			"which files lists"}
	case len(e.Files) > 0:
		return e.checkFiles()
	case e.Folder != "":
		return &train.ConfigError{Key: "folder", Got: e.Folder, Want: "is the folder of the results of files, of " +
			"which there are none: set the folder of the runs with --out"}
	case len(e.Runs) == 0:
		return &train.ConfigError{Key: "runs", Got: "has no runs",
			Want: "there is nothing to run: add runs: [{name: NAME, set: {algo: NAME}}]"}
	}
	if e.Origin == Paper && e.Search == nil {
		for _, name := range VariantNames {
			if _, ok := e.Variants[name]; !ok {
				return fmt.Errorf("variant %s is missing", name)
			}
		}
	}
	err := e.checkNames()
	if err == nil && e.Search != nil {
		err = e.checkSearch()
	}
	for i := range e.Panels {
		err = errors.Join(err, e.Panels[i].check(e))
	}
	return err
}

// checkNames refuses names of runs that occur twice or that are no names of folders.
func (e *Experiment) checkNames() error {
	seen := map[string]bool{}
	for _, r := range e.Runs {
		name := plainName(r.Name)
		switch {
		case e.Search != nil && !seen[name]:
		case e.Search != nil:
			return &train.ConfigError{Key: "runs", Got: r.Name, Want: "occurs twice: give each run a name of its own"}
		case strings.Trim(r.Name, ".") == "" || seen[name] || r.Name != name:
			return fmt.Errorf("run name %q is empty, occurs twice or is no name of a folder: use letters, digits, "+
				"points and dashes", r.Name)
		case slices.Contains(ownFiles, strings.ToLower(r.Name)):
			return fmt.Errorf("run name %q is that of a file that the figure writes: give the run another name", r.Name)
		}
		seen[name] = true
	}
	return nil
}

// checkSearch validates the search and the points of the runs.
func (e *Experiment) checkSearch() error {
	s := e.Search
	var err error
	s.metric, err = ParseMetric(s.Metric)
	errs := []error{err, s.Halving.check(), e.checkSeeds(), e.checkUnused()}
	s.Metric, s.Best = s.metric.Name, cmp.Or(s.Best, s.metric.best())
	if s.Best != "min" && s.Best != "max" {
		errs = append(errs, unknownName("best", s.Best, []string{"min", "max"}))
	}
	if modes := []string{"shared-seed", "packed", "reference"}; !slices.Contains(modes, s.Accounting) {
		errs = append(errs, unknownName("accounting", s.Accounting, modes))
	}
	if len(s.Budgets) == 0 {
		errs = append(errs, &train.ConfigError{Key: "budgets",
			Want: "is an empty list: expected at least one budget, or no list"})
	}
	if len(s.Budgets) > 1 && (len(e.Seeds) == 0 || s.Halving != nil) {
		errs = append(errs, &train.ConfigError{Key: "budgets", Got: strconv.Itoa(len(s.Budgets)),
			Want: "a ranking and halving have one budget: leave the others out, or name the seeds that are reported " +
				"in seeds, without halving"})
	}
	for _, b := range s.Budgets {
		errs = append(errs, b.check())
	}
	if e.HasPrinted() {
		errs = append(errs, &train.ConfigError{Key: "printed", Want: "has no effect on a search: leave it out, or " +
			"leave out search, grid and random"})
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range e.Runs {
		r := &e.Runs[i]
		if r.points, err = s.pointsOf(r); err != nil {
			return inRun(r.Name, err)
		}
	}
	if e.Kind() == Tuning {
		return e.checkFairness()
	}
	return nil
}

func inRun(name string, err error) error {
	if err == nil || name == "" {
		return err
	}
	return fmt.Errorf("run %s: %w", name, err)
}

func (b Budget) check() error {
	for _, limit := range []struct {
		key   string
		value float64
		of    string
	}{{"bits", b.Bits, "a budget"}, {"seconds", b.Seconds, "a budget of virtual time"}} {
		if !(limit.value >= 0) || math.IsInf(limit.value, 0) {
			return &train.ConfigError{Key: limit.key, Got: fmt.Sprint(limit.value),
				Want: fmt.Sprintf("expected %s above 0, or 0 for the end of the run", limit.of)}
		}
	}
	return nil
}

// checkSeeds refuses to report seeds of the search, and the key seed beside a list of seeds.
func (e *Experiment) checkSeeds() error {
	if e.Search == nil {
		return nil
	}
	for _, s := range e.Seeds {
		if slices.Contains(e.Search.Seeds, s) {
			return &train.ConfigError{Key: "seeds", Got: fmt.Sprint(s),
				Want: "is one of the seeds of the search: what is reported must not have been chosen on"}
		}
	}
	for _, r := range e.Runs {
		searched := slices.ContainsFunc(slices.Concat(r.Grid, r.Random), isSeed)
		switch {
		case e.Kind() == Tuning && (searched || slices.ContainsFunc(slices.Concat(e.Base, r.Set), isSeed)):
			return &train.ConfigError{Key: "runs", Got: r.Name, Want: "has the key seed in base, set or grid, where " +
				"it has no effect: name the seeds of the search in its seeds, and those that are reported in seeds"}
		case len(e.Search.Seeds) > 0 && searched:
			return &train.ConfigError{Key: "seeds", Got: e.Search.Seeds.String(),
				Want: "grid or random has the key seed too: leave one of the two out"}
		}
	}
	return nil
}

func isSeed(item yaml.MapItem) bool { return fmt.Sprint(item.Key) == "seed" }

// part is a part of an experiment that has keys of the configuration.
type part struct {
	name string
	keys yaml.MapSlice
}

// checkUnused refuses keys without an effect: keys about draws where nothing is drawn, and keys
// that stand in two parts of which one has precedence.
func (e *Experiment) checkUnused() error {
	s := e.Search
	random := slices.ContainsFunc(e.Runs, func(r Run) bool { return len(r.Random) > 0 })
	switch {
	case random && s.Samples < 1:
		return &train.ConfigError{Key: "samples", Got: strconv.Itoa(s.Samples),
			Want: "expected how many draws of the keys in random to try"}
	case random:
	case s.Samples != 0:
		return &train.ConfigError{Key: "samples", Got: strconv.Itoa(s.Samples), Want: "has no effect: there are " +
			"no keys in random to draw; for several runs of each setting write seeds: 3"}
	case s.Seed != 1:
		return &train.ConfigError{Key: "seed", Got: fmt.Sprint(s.Seed), Want: "has no effect: it is the seed of " +
			"the draws of random, which has no keys; for the seeds of the runs write seeds: [1, 2, 3]"}
	}
	for _, r := range e.Runs {
		parts := []part{{"base", e.Base}, {"set", r.Set}, {"grid", r.Grid}, {"random", r.Random}}
		if len(e.Runs) > 1 { // another run may use the key of the base
			parts = parts[2:]
		}
		owner := map[string]string{}
		for _, p := range parts {
			for _, item := range p.keys {
				key := fmt.Sprint(item.Key)
				if first := owner[key]; first != "" {
					return &train.ConfigError{Key: p.name + ": " + key, Got: fmt.Sprint(item.Value),
						Want: fmt.Sprintf("%s has this key too, and would have no effect: leave one of the two "+
							"out", first)}
				}
				owner[key] = p.name
			}
		}
	}
	return nil
}

// checkFairness refuses grids of different size, and grids with more values of a key than another.
func (e *Experiment) checkFairness() error {
	values := map[string]map[int]bool{}
	var sizes []string
	unequal := false
	for _, r := range e.Runs {
		for _, item := range r.Grid {
			key, n := fmt.Sprint(item.Key), len(item.Value.([]any))
			if values[key] == nil {
				values[key] = map[int]bool{}
			}
			values[key][n] = true
		}
		sizes = append(sizes, fmt.Sprintf("%s %d", r.Name, len(r.points)))
		unequal = unequal || len(r.points) != len(e.Runs[0].points)
	}
	if unequal {
		return &train.ConfigError{Key: "runs", Got: strings.Join(sizes, ", "),
			Want: "are the points of the grids: give each run as many as the others, or the comparison is not fair"}
	}
	for key, by := range values {
		if len(by) > 1 {
			return &train.ConfigError{Key: "runs", Got: key, Want: "has more values in one grid than in another: " +
				"give each run as many values of it"}
		}
	}
	return nil
}

// panelAxes are the values of Panel.X, and panelScales the values of Panel.Y; the first is the
// default.
var (
	panelAxes   = []string{"iteration", "epoch", "bits", "virtual_time"}
	panelScales = []string{"linear", "log"}
)

// check validates a panel and sets the keys that it leaves out.
func (p *Panel) check(e *Experiment) error {
	p.X, p.Y = cmp.Or(p.X, panelAxes[0]), cmp.Or(p.Y, panelScales[0])
	switch groups := e.Groups(); {
	case e.Search != nil:
		return &train.ConfigError{Key: "panels", Want: "have no effect on a search, whose plots show its metric: " +
			"leave them out"}
	case !slices.Contains(panelAxes, p.X):
		return unknownName("panels: x", p.X, panelAxes)
	case !slices.Contains(panelScales, p.Y):
		return unknownName("panels: y", p.Y, panelScales)
	case p.Group != "" && len(groups) == 1 && groups[0] == "":
		return &train.ConfigError{Key: "panels: group", Got: p.Group, Want: "the runs have no groups: leave it out"}
	case p.Group != "" && !slices.Contains(groups, p.Group):
		return unknownName("panels: group", p.Group, groups)
	}
	_, err := p.Column()
	return err
}
