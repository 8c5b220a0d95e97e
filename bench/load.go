package bench

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
	"fspda/train"
)

//go:embed figures replays
var shippedFiles embed.FS

// forms are the keys of an experiment.
var forms = []form{
	{"title", "My experiment"}, {"about", "what it shows"}, {"base", "{algo: dsgd, iterations: 2000}"},
	{"variants", "{printed: {alpha: 0.1}}"}, {"network", "{default: {latency_ms: 30}}"},
	{"runs", "[{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}], each with name, title, group, set, variants, grid, " +
		"random, printed"},
	{"seeds", "[1, 2, 3]"},
	{"search", "{seeds: [101, 102]}, with seeds, metric, best, accounting, budgets, halving, samples, seed"},
	{"panels", "[{title: Accuracy, metric: test_acc, model: mean, x: bits}]"}, {"source", "the paper"},
	{"files", "[{name: grid, file: grid.yaml}], each with name, priority, cores, file or command"},
	{"folder", "runs/evidence"},
}

// oldForms are the keys of the old dialects whose form an error shows.
var oldForms = []form{{"common", "{iterations: 2000}"}, {"flavours", "{printed: {alpha: 0.1}}"},
	{"grid", "{alpha: [0.1, 0.3]}"}, {"random", "{eta: 'log(0.0001, 0.01)'}"}, {"samples", "5"}, {"seed", "1"},
	{"halving", "{at: [0.25, 0.5], keep: 0.5}"}, {"metric", "test_acc_avg"}, {"best", "max"}, {"bits", "1.0e+9"},
	{"accounting", "shared-seed"}, {"methods", "[{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}]"},
	{"report", "[1, 2, 3]"}, {"seconds", "60"}, {"budgets", "[{bits: 1.0e+9}]"},
	{"tasks", "[{name: a, command: figure 9}], each with name, priority, cores, command"}}

// Read reads an experiment from a YAML file.
func Read(file string) (*Experiment, error) {
	text, err := bounded.YAMLFile(file)
	if err != nil {
		return nil, &train.ConfigError{Key: "experiment", Got: file, Err: err}
	}
	return parse(file, text, OwnFile)
}

func parse(file string, text []byte, origin Origin) (*Experiment, error) {
	e := &Experiment{Origin: origin}
	if err := decode(file, text, e); err != nil {
		return nil, err
	}
	err := e.translate()
	if err == nil {
		err = e.setDefaults(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	}
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return nil, &train.ConfigError{Key: file, Err: err}
	}
	return e, nil
}

// Dialects are the keys that old files have. translate moves them to the keys of an [Experiment].
type Dialects struct {
	Common   yaml.MapSlice            `yaml:"common"`   // figure: base
	Flavours map[string]yaml.MapSlice `yaml:"flavours"` // figure: variants
	Methods  []Run                    `yaml:"methods"`  // tune: runs
	Report   Seeds                    `yaml:"report"`   // tune: seeds, where seeds meant the search's seeds
	Grid     yaml.MapSlice            `yaml:"grid"`     // sweep: grid of its only run
	Random   yaml.MapSlice            `yaml:"random"`   // sweep: random keys of its only run
	Tasks    []Task                   `yaml:"tasks"`    // queue: files
	Judging  `yaml:",inline"`         // sweep and tune: keys of search
	Budget   `yaml:",inline"`         // sweep and tune: the only budget
}

// translate turns the keys of the old dialects of figure, sweep, tune and queue into the keys of an
// experiment.
func (e *Experiment) translate() error {
	o := e.Old
	e.Old = Dialects{}
	errs := []error{move(&e.Base, o.Common, "base", "common"), move(&e.Variants, o.Flavours, "variants", "flavours"),
		move(&e.Runs, o.Methods, "runs", "methods"), move(&e.Files, o.Tasks, "files", "tasks")}
	if len(o.Grid)+len(o.Random) > 0 {
		errs = append(errs, move(&e.Runs, []Run{{Grid: o.Grid, Random: o.Random}}, "runs", "grid or random"))
	}
	for i := range e.Runs {
		r := &e.Runs[i]
		errs = append(errs, move(&r.Set, r.OldSet, "set", "config"),
			move(&r.Variants, r.OldVariants, "variants", "flavours"))
		r.OldSet, r.OldVariants = nil, nil
	}
	return errors.Join(append(errs, e.translateSearch(o))...)
}

// move sets a key to the value of its old name. Both are an error.
func move[T any](to *T, old T, key, oldKey string) error {
	switch {
	case reflect.ValueOf(old).Len() == 0:
		return nil
	case reflect.ValueOf(*to).Len() > 0:
		return &train.ConfigError{Key: oldKey, Want: "is in an old file what " + key +
			" is now, which is set too: leave one of the two out"}
	}
	*to = old
	return nil
}

// translateSearch translates the keys of sweep and tune.
func (e *Experiment) translateSearch(o Dialects) error {
	if len(o.Methods)+len(o.Grid)+len(o.Random) == 0 {
		if reflect.ValueOf(o.Judging).IsZero() && o.Budget == (Budget{}) {
			return nil
		}
		return &train.ConfigError{Key: "search", Want: "metric, best, accounting, bits, seconds, budgets, halving, " +
			"samples and seed are keys of search, as in search: {metric: test_acc_avg}"}
	}
	if e.Search != nil {
		return &train.ConfigError{Key: "search", Want: "methods, grid and random are keys of old files, which have " +
			"no search: write runs: [{set: {algo: dsgd}, grid: {alpha: [0.1, 0.3]}}]"}
	}
	if o.Budget != (Budget{}) {
		if o.Budgets != nil {
			return &train.ConfigError{Key: "budgets",
				Want: "bits and seconds are set outside of them too: move these in"}
		}
		o.Budgets = []Budget{o.Budget}
	}
	e.Search = &Search{Seeds: e.Seeds, Judging: o.Judging}
	e.Seeds = o.Report
	if o.Methods != nil {
		if e.Search.Seeds == nil {
			e.Search.Seeds = Seeds{101, 102}
		}
		if e.Seeds == nil {
			e.Seeds = Seeds{1, 2, 3}
		}
	}
	return nil
}

// shipped parses the experiments in a folder of the program.
func shipped(dir string, origin Origin) ([]*Experiment, error) {
	list, err := shippedFiles.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*Experiment
	for _, file := range list {
		if path.Ext(file.Name()) != ".yaml" {
			continue
		}
		text, err := shippedFiles.ReadFile(path.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		e, err := parse(file.Name(), text, origin)
		if err != nil {
			return nil, fmt.Errorf("bench: %s: %w", dir, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// Figures returns all figures of the paper by number, and then the comparisons of tuned methods by
// name.
func Figures() ([]*Experiment, error) {
	all, err := shipped("figures", Paper)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *Experiment) int { return a.Number - b.Number })
	tuned, err := shipped("figures/tuned", Paper)
	return append(all, tuned...), err
}

// Replays returns the experiments of other papers by name.
func Replays() ([]*Experiment, error) { return shipped("replays", Replay) }

// FindFigure returns the figure with a number or id.
func FindFigure(name string) (*Experiment, error) {
	all, err := Figures()
	if err != nil {
		return nil, err
	}
	if name == "3" {
		return nil, &train.ConfigError{Key: "figure", Got: name,
			Want: "it is a sketch of a random graph: there is nothing to run"}
	}
	return findIn(all, "figure", name, nil)
}

// FindReplay returns the experiment of a name.
func FindReplay(name string) (*Experiment, error) {
	all, err := Replays()
	if err != nil {
		return nil, err
	}
	return findIn(all, "replay", name, []string{"base-graph"})
}

// Find returns the figure or the replay of a name.
func Find(name string) (*Experiment, error) {
	figures, err := Figures()
	if err != nil {
		return nil, err
	}
	replays, err := Replays()
	if err != nil {
		return nil, err
	}
	e, err := findIn(append(figures, replays...), "experiment", name, nil)
	if err != nil {
		return nil, fmt.Errorf("%w; there is no file of this name either", err)
	}
	return e, nil
}

// findIn returns the experiment with a number or id. The error lists their names after others.
func findIn(all []*Experiment, kind, name string, others []string) (*Experiment, error) {
	names := others
	for _, e := range all {
		number := strconv.Itoa(e.Number)
		if name == e.ID || e.Number > 0 && name == number {
			return e, nil
		}
		if e.Number > 0 {
			names = append(names, number)
		}
		names = append(names, e.ID)
	}
	return nil, unknownName(kind, name, names)
}
