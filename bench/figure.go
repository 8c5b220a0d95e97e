package bench

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
	"fspda/train/config"
)

//go:embed figures/*.yaml
var figureFiles embed.FS

// Figure is one figure of the paper: runs on the same data, split and initial model, and the panels
// that show them.
type Figure struct {
	Number   int                      `yaml:"figure"`
	ID       string                   `yaml:"id"`
	Title    string                   `yaml:"title"`
	About    string                   `yaml:"about"` // the expected outcome
	Schedule *ScheduleFigure          `yaml:"schedule"`
	Common   yaml.MapSlice            `yaml:"common"`   // configuration of all runs
	Variants map[string]yaml.MapSlice `yaml:"flavours"` // changes to common by variant
	Runs     []FigureRun              `yaml:"runs"`
	Panels   []Panel                  `yaml:"panels"`
	Seeds    Seeds                    `yaml:"seeds"`  // of each run; empty: that of its configuration
	Source   string                   `yaml:"source"` // of printed values, with departures from it

	own bool // it is none of the paper's
}

// FigureRun is one curve. Its configuration merges common, the variant, Config and Variants; later
// ones take precedence.
type FigureRun struct {
	Name     string                   `yaml:"name"`  // of its folder
	Title    string                   `yaml:"title"` // in the legend, which appends what it exchanges
	Group    string                   `yaml:"group"` // a panel with a group shows only its runs
	Config   yaml.MapSlice            `yaml:"config"`
	Variants map[string]yaml.MapSlice `yaml:"flavours"`
	Printed  *float64                 `yaml:"printed"` // accuracy of a publication, in percent; may be missing

	like   *FigureRun // of a run that Add made: the run whose configuration it takes
	method string     // and its algorithm
}

// Panel describes one panel. Metric and Model together name a column of the metrics.
type Panel struct {
	Title  string `yaml:"title"`
	Group  string `yaml:"group"`
	Metric string `yaml:"metric"`
	Model  string `yaml:"model"` // worst (agent), or mean (model)
	X      string `yaml:"x"`     // iteration (the default), epoch, bits or virtual_time
	Y      string `yaml:"y"`     // linear (the default) or log
}

// ScheduleFigure plots step sizes and needs no runs.
type ScheduleFigure struct {
	PerEpoch float64 `yaml:"per_epoch"` // iterations per epoch
}

// VariantNames lists the variants of a figure (the flag --flavour). printed has the values of the
// paper's tables; released has those of the released scripts, with correct recursions; bug-compat
// also reproduces the deviations of the released program.
var VariantNames = []string{"printed", "released", "bug-compat"}

// Figures returns all figures of the paper with runs or schedules, by number.
func Figures() ([]*Figure, error) {
	all, err := parseAll(figureFiles, "figures", func(_ string, text []byte) (*Figure, error) {
		f := new(Figure)
		if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
			return nil, err
		}
		return f, f.check()
	})
	slices.SortFunc(all, func(a, b *Figure) int { return a.Number - b.Number })
	return all, err
}

// parseAll parses the files of a folder of the program.
func parseAll(files embed.FS, dir string, parse func(name string, text []byte) (*Figure, error)) ([]*Figure, error) {
	list, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*Figure
	for _, file := range list {
		text, err := files.ReadFile(dir + "/" + file.Name())
		if err != nil {
			return nil, err
		}
		f, err := parse(file.Name(), text)
		if err != nil {
			return nil, fmt.Errorf("bench: %s/%s: %w", dir, file.Name(), err)
		}
		all = append(all, f)
	}
	return all, nil
}

// FindFigure returns the figure with a number or id.
func FindFigure(name string) (*Figure, error) {
	all, err := Figures()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range all {
		if name == strconv.Itoa(f.Number) || name == f.ID {
			return f, nil
		}
		names = append(names, strconv.Itoa(f.Number), f.ID)
	}
	if name == "3" {
		return nil, &train.ConfigError{Key: "figure", Got: name,
			Want: "it is a sketch of a random graph: there is nothing to run"}
	}
	return nil, unknownName("figure", name, names)
}

// unknownName returns an error that lists the valid names and suggests the nearest.
func unknownName(kind, got string, names []string) error {
	want := "there are " + strings.Join(names, ", ")
	if near := config.Nearest(got, names); near != "" {
		want = fmt.Sprintf("did you mean %s? %s", near, want)
	}
	return &train.ConfigError{Key: kind, Got: fmt.Sprintf("%q", got), Want: want}
}

// check validates the file.
func (f *Figure) check() error {
	for _, name := range VariantNames {
		if _, ok := f.Variants[name]; !ok && !f.own {
			return fmt.Errorf("flavour %s is missing", name)
		}
	}
	var names []string
	for _, r := range f.Runs {
		if strings.Trim(r.Name, ".") == "" || slices.Contains(names, r.Name) || r.Name != plainName(r.Name) {
			return fmt.Errorf("run name %q is empty, occurs twice or is no name of a folder: use letters, digits, "+
				"points and dashes", r.Name)
		}
		if slices.Contains(ownFiles, strings.ToLower(r.Name)) {
			return fmt.Errorf("run name %q is that of a file that the figure writes: give the run another name", r.Name)
		}
		names = append(names, r.Name)
	}
	for i := range f.Panels {
		if err := f.Panels[i].check(f); err != nil {
			return err
		}
	}
	return nil
}

// ownFiles are the files that a figure writes beside the folders of its runs.
var ownFiles = []string{"figure.svg", "figure.png", "figure.html", "bits.svg", "bits.png", "table.md", "table.csv",
	"paper.md"}

// panelAxes are the values of Panel.X, and panelScales those of Panel.Y; the first is the default.
var (
	panelAxes   = []string{"iteration", "epoch", "bits", "virtual_time"}
	panelScales = []string{"linear", "log"}
)

// check validates a panel and sets what it leaves out.
func (p *Panel) check(f *Figure) error {
	p.X, p.Y = cmp.Or(p.X, panelAxes[0]), cmp.Or(p.Y, panelScales[0])
	switch groups := f.Groups(); {
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

// OwnPanels returns the panels of a figure that is none of the paper's: its runs must fill them.
func (f *Figure) OwnPanels() []Panel {
	if f.own {
		return f.Panels
	}
	return nil
}

// Column returns the column of metrics.jsonl that a panel shows.
func (p *Panel) Column() (string, error) {
	name := p.Metric
	switch {
	case p.Metric == "test_acc" && p.Model == "worst":
		name = "test_acc_min"
	case p.Model == "mean":
		name = p.Metric + "_avg"
	case p.Model != "":
		name = p.Metric + "_" + p.Model
	}
	if !slices.Contains(train.Columns(), name) {
		return "", unknownName("metric", name, train.Columns())
	}
	return name, nil
}

// RunNames lists the names of the figure's runs.
func (f *Figure) RunNames() []string {
	var names []string
	for _, r := range f.Runs {
		names = append(names, r.Name)
	}
	return names
}

// FigureOptions configures the runs of a figure.
type FigureOptions struct {
	Variant string
	Scale   Scale
	Only    []string            // names, or parts of names between dashes; empty is all
	Without []string            // the same, of runs to leave out
	Adjust  func(*train.Config) // changes every configuration last: data, seed, threads
	Points  int                 // number of evaluations; 0 is that of the scale
}

// Job is one run of a campaign.
type Job struct {
	Name   string // of its folder
	Title  string // for legends, with what it exchanges
	Group  string
	Config train.Config
	Shared []string // keys that were set for all runs: they must have an effect on at least one of them

	Setting string // name of the runs that differ from this one in their seeds only; empty: none does
}

// Jobs returns the configurations of a figure's runs.
func (f *Figure) Jobs(o FigureOptions) ([]Job, error) {
	if !slices.Contains(VariantNames, o.Variant) && !(f.own && o.Variant == "") {
		return nil, unknownName("flavour", o.Variant, VariantNames)
	}
	if _, ok := f.Variants[o.Variant]; !ok && o.Variant != "" {
		return nil, &train.ConfigError{Key: "flavour", Got: o.Variant,
			Want: "the figure's file has no flavour of this name"}
	}
	if err := o.Scale.check(); err != nil {
		return nil, err
	}
	runs, err := f.chosen(o.Only)
	if err == nil {
		runs, err = f.without(runs, o.Without)
	}
	if err != nil {
		return nil, err
	}
	limit, err := f.maxFactor(o.Variant)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, r := range runs {
		c, err := f.config(r, o.Variant)
		if err != nil {
			return nil, err
		}
		if c, err = o.Scale.apply(c, o.Points, limit); err != nil {
			return nil, fmt.Errorf("%s: %w", f.runName(r), err)
		}
		if !f.own && r.like == nil {
			c.TakeExplicit() // a test has checked the keys of the file
		}
		algo := c.Algo
		if o.Adjust != nil {
			o.Adjust(&c)
		}
		shared := c.TakeExplicit()
		if err := c.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.runName(r), err)
		}
		title := r.Title
		if c.Algo != algo {
			title = c.Algo
		}
		title += exchanged(c)
		if r.Group != "" {
			title += " (" + r.Group + ")"
		}
		jobs = append(jobs, Job{Name: r.Name, Title: title, Group: r.Group, Config: c, Shared: shared})
	}
	return jobs, nil
}

// runName names a run of the figure in errors.
func (f *Figure) runName(r FigureRun) string {
	if f.own {
		return "run " + r.Name
	}
	return fmt.Sprintf("figure %d, run %s", f.Number, r.Name)
}

// maxFactor returns the factor by which all runs of the figure, selected or not, can increase the
// bits that they exchange.
func (f *Figure) maxFactor(variant string) (float64, error) {
	least := math.Inf(1)
	for _, r := range f.Runs {
		c, err := f.config(r, variant)
		if err != nil {
			return 0, err
		}
		least = min(least, maxFactor(c))
	}
	return least, nil
}

// chosen returns the selected runs. A run is selected by its name or by a part between dashes, such
// as sa for sa-sorted.
func (f *Figure) chosen(only []string) ([]FigureRun, error) {
	if len(only) == 0 {
		return f.Runs, nil
	}
	var runs []FigureRun
	for _, r := range f.Runs {
		if slices.ContainsFunc(only, r.matches) {
			runs = append(runs, r)
		}
	}
	for _, name := range only {
		if !slices.ContainsFunc(f.Runs, func(r FigureRun) bool { return r.matches(name) }) {
			return nil, unknownName("run", name, f.RunNames())
		}
	}
	return runs, nil
}

// config returns the configuration of a run at full length.
func (f *Figure) config(r FigureRun, variant string) (train.Config, error) {
	if r.like != nil {
		return f.fitted(r, variant)
	}
	return config.Made(func(c *train.Config) error {
		var errs []error
		for _, part := range []yaml.MapSlice{f.Common, f.Variants[variant], r.Config, r.Variants[variant]} {
			errs = append(errs, parseKeys(c, f.runName(r), part))
		}
		return errors.Join(errs...)
	})
}
