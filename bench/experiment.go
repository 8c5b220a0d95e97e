package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
	"fspda/train/config"
)

// Experiment describes runs, their search and comparison, and the plots and tables that show them.
// A file of YAML holds one; the files in figures/ and replays/ belong to the program.
//
// A run with a grid or random keys has several points. Without a search each run has one, and all
// runs are made with the Seeds. A search makes each point with the seeds of the search. If the
// experiment has Seeds, the best point of each run is made again with them, and only those results
// are reported; if it has none, all points are ranked.
type Experiment struct {
	Number   int                      `yaml:"figure"` // Number of the figure in the paper.
	ID       string                   `yaml:"id"`     // The default is the name of the file.
	Title    string                   `yaml:"title"`
	About    string                   `yaml:"about"`    // The expected outcome.
	Source   string                   `yaml:"source"`   // Publication of the printed values, with departures.
	Steps    *StepSizes               `yaml:"schedule"` // If set, step sizes are drawn and nothing is trained.
	Base     yaml.MapSlice            `yaml:"base"`     // Configuration of all runs.
	Variants map[string]yaml.MapSlice `yaml:"variants"` // Changes of Base, by the name of a variant.
	Network  yaml.MapSlice            `yaml:"network"`  // Links of all runs, in place of a file of the key links.
	Runs     []Run                    `yaml:"runs"`
	Seeds    Seeds                    `yaml:"seeds"`  // Seeds of the runs that are reported.
	Search   *Search                  `yaml:"search"` // Nil without a search.
	Panels   []Panel                  `yaml:"panels"`
	Folder   string                   `yaml:"folder"` // Folder of the results of Files.
	Files    []Task                   `yaml:"files"`  // Other experiments and commands, in place of Runs.
	Old      Dialects                 `yaml:",inline"`

	Origin Origin `yaml:"-"`
}

// Origin says where an experiment comes from.
type Origin int

// The origins of experiments.
const (
	OwnFile Origin = iota
	Paper          // a file of figures/
	Replay         // a file of replays/
)

// Run is a curve, or a method with the points among which a search chooses. Its configuration
// merges the base, the variant of the base, Set and the variant of the run; later ones take
// precedence.
type Run struct {
	Name     string                   `yaml:"name"`  // Name of its folder. The default is its algorithm.
	Title    string                   `yaml:"title"` // Name in legends. The default is Name.
	Group    string                   `yaml:"group"` // A panel with a group shows the runs of that group only.
	Set      yaml.MapSlice            `yaml:"set"`
	Variants map[string]yaml.MapSlice `yaml:"variants"`
	Grid     yaml.MapSlice            `yaml:"grid"`    // Lists of values by key: every combination is a point.
	Random   yaml.MapSlice            `yaml:"random"`  // Distributions by key, such as uniform(a,b), or lists.
	Printed  *float64                 `yaml:"printed"` // Accuracy of a publication, in percent.

	OldSet      yaml.MapSlice            `yaml:"config"`   // The old name of Set.
	OldVariants map[string]yaml.MapSlice `yaml:"flavours"` // The old name of Variants.

	points [][]setting
	like   *Run   // On a run that Add made: the run whose configuration it takes.
	method string // On a run that Add made: its algorithm.
}

// Search says how the points of runs are judged.
type Search struct {
	Seeds   Seeds `yaml:"seeds"` // Seeds of each point. The default is the seed of its configuration.
	Judging `yaml:",inline"`
}

// Judging holds the keys of a search that old files have outside of it.
type Judging struct {
	Metric     string   `yaml:"metric"`     // See [ParseMetric]. The default is test_acc_avg.
	Best       string   `yaml:"best"`       // max or min. The default is max for accuracies and min for the rest.
	Accounting string   `yaml:"accounting"` // How the bits of a budget are counted. The default is shared-seed.
	Budgets    []Budget `yaml:"budgets"`    // Each budget has a choice and a table. The default is one without a limit.
	Halving    *Halving `yaml:"halving"`    // If nil, every run is made to its end.
	Samples    int      `yaml:"samples"`    // Number of draws of random keys at each point of the grid.
	Seed       uint64   `yaml:"seed"`       // Seed of the draws. The default is 1.

	metric Metric
}

// Budget limits the bits and seconds of a run: the metric counts at the last evaluation within it.
// 0 is no limit.
type Budget struct {
	Bits    float64 `yaml:"bits"`
	Seconds float64 `yaml:"seconds"` // virtual time
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

// Kind names the form of an experiment. Default names of folders begin with it.
type Kind string

// The kinds of experiments.
const (
	Queue    Kind = "queue"  // It lists other files and commands.
	Figure   Kind = "figure" // All runs are reported.
	Ranking  Kind = "sweep"  // All points are ranked.
	Tuning   Kind = "tune"   // The best point of each run is reported.
	Replayed Kind = "replay" // A figure of another paper.
)

func (e *Experiment) Kind() Kind {
	switch {
	case len(e.Files) > 0:
		return Queue
	case e.Search != nil && len(e.Seeds) > 0:
		return Tuning
	case e.Search != nil:
		return Ranking
	case e.Origin == Replay:
		return Replayed
	}
	return Figure
}

// VariantNames lists the variants of the paper's figures (the flag --flavour). printed has the
// values of the paper's tables; released has the values of the released scripts, with correct
// recursions; bug-compat also reproduces the deviations of the released program.
var VariantNames = []string{"printed", "released", "bug-compat"}

// ownFiles are the files that an experiment writes beside the folders of its runs.
var ownFiles = []string{"figure.svg", "figure.png", "figure.pdf", "figure.html", "bits.svg", "bits.png", "bits.pdf",
	"table.md", "table.csv", "table.tex", "paper.md", "caption.md", "evaluations.csv"}

// RunNames lists the names of the runs.
func (e *Experiment) RunNames() []string {
	var names []string
	for _, r := range e.Runs {
		names = append(names, r.Name)
	}
	return names
}

// Groups lists the groups of the runs in order; it is a single empty name if they have none.
func (e *Experiment) Groups() []string {
	var groups []string
	for _, r := range e.Runs {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

// IndexInGroup returns the position of a run in its group, from 1. It determines the colour of the
// curve.
func (e *Experiment) IndexInGroup(name string) int {
	index := map[string]int{}
	for _, r := range e.Runs {
		index[r.Group]++
		if r.Name == name {
			return index[r.Group]
		}
	}
	return 0
}

// HasPrinted reports whether a run has a printed value to compare with.
func (e *Experiment) HasPrinted() bool {
	return slices.ContainsFunc(e.Runs, func(r Run) bool { return r.Printed != nil })
}

// OwnPanels returns the panels that runs of the experiment must fill: all but the panels of the
// paper.
func (e *Experiment) OwnPanels() []Panel {
	if e.Origin == Paper {
		return nil
	}
	return e.Panels
}

// LinksText returns the network as a file of links.
func (e *Experiment) LinksText() (string, error) {
	text, err := yaml.Marshal(e.Network)
	if err != nil {
		return "", fmt.Errorf("bench: write network: %w", err)
	}
	return string(text), nil
}

// Repeats returns the seeds with which each setting that is shown runs.
func (e *Experiment) Repeats() Seeds {
	if e.Kind() == Ranking {
		return e.Search.Seeds
	}
	return e.Seeds
}

// SetSeeds replaces the seeds of a ranking, or else the reported seeds. It refuses to report seeds
// of the search.
func (e *Experiment) SetSeeds(seeds Seeds) error {
	if e.Kind() == Ranking {
		e.Search.Seeds = seeds
		return nil
	}
	e.Seeds = seeds
	return e.checkSeeds()
}

// Add adds the curve of an algorithm, NAME or NAME,key=value,...: to each group a run with the
// configuration of the group's first one but for the algorithm, the keys that the algorithm cannot
// use, and the given keys.
func (e *Experiment) Add(spec string) error {
	parts := splitOutside(spec)
	method := strings.TrimSpace(parts[0])
	if !slices.Contains(train.Algorithms(), method) {
		return unknownName("--with", method, train.Algorithms())
	}
	var set yaml.MapSlice
	title := method
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return &train.ConfigError{Key: "--with", Got: spec, Want: "expected NAME,key=value, such as dsgd,theta=0.3"}
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		set = append(set, yaml.MapItem{Key: key, Value: value})
		title += " " + strings.TrimPrefix(key, "params.") + "=" + value
	}
	if e.Steps != nil {
		return &train.ConfigError{Key: "--with", Got: spec, Want: "the figure draws step sizes and trains nothing"}
	}
	for _, group := range e.Groups() {
		like := e.Runs[slices.IndexFunc(e.Runs, func(r Run) bool { return r.Group == group })]
		name := plainName(strings.ReplaceAll(title, " ", "-"))
		if group != "" {
			name += "-" + plainName(group)
		}
		if slices.Contains(e.RunNames(), name) {
			return &train.ConfigError{Key: "--with", Got: spec,
				Want: "the figure has this curve: change a setting, as in " + method + ",alpha=0.1"}
		}
		e.Runs = append(e.Runs, Run{Name: name, Title: title, Group: group, Set: set, points: [][]setting{nil},
			like: &like, method: method})
	}
	return nil
}

// splitOutside splits at commas that are outside of parentheses.
func splitOutside(text string) (parts []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// unknownName returns an error that lists the valid names and suggests the nearest.
func unknownName(kind, got string, names []string) error {
	want := "there are " + strings.Join(names, ", ")
	if near := config.Nearest(got, names); near != "" {
		want = fmt.Sprintf("did you mean %s? %s", near, want)
	}
	return &train.ConfigError{Key: kind, Got: fmt.Sprintf("%q", got), Want: want}
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

// StepSizes describes a figure of step sizes.
type StepSizes struct {
	PerEpoch float64 `yaml:"per_epoch"` // iterations per epoch
}

// Columns returns the step sizes of a configuration over its run as the columns iteration, epoch,
// lr and eta.
func (f *StepSizes) Columns(c train.Config) map[string][]float64 {
	s := train.Schedule{Alpha: c.Alpha, Eta: c.Eta.V}
	if c.Schedule == "cosine" {
		s.Shape = train.CosineEpochs{Warmup: c.Warmup, Epochs: float64(c.Iterations) / f.PerEpoch, PerEpoch: f.PerEpoch}
	}
	const points = 400
	columns := map[string][]float64{}
	for k := range points + 1 {
		t := k * (c.Iterations - 1) / points
		alpha, eta := s.At(t)
		for name, v := range map[string]float64{"iteration": float64(t), "epoch": float64(t+1) / f.PerEpoch,
			"lr": alpha, "eta": eta} {
			columns[name] = append(columns[name], v)
		}
	}
	return columns
}

// defaultPanels are the panels of an experiment that names none.
func defaultPanels() []Panel {
	return []Panel{{Metric: "test_acc", Model: "mean", X: "iteration", Y: "linear"},
		{Metric: "train_loss", Model: "worst", X: "iteration", Y: "log"}, {Metric: "consensus", X: "iteration",
			Y: "log"}}
}

// setDefaults fills in the keys that an experiment leaves out. name is the name of its file.
func (e *Experiment) setDefaults(name string) error {
	e.ID = cmp.Or(e.ID, name)
	searched := slices.ContainsFunc(e.Runs, func(r Run) bool { return len(r.Grid)+len(r.Random) > 0 })
	if searched && e.Search == nil {
		e.Search = new(Search)
	}
	if len(e.Panels)+len(e.Files) == 0 && e.Search == nil {
		e.Panels = defaultPanels()
	}
	if s := e.Search; s != nil {
		s.Metric, s.Accounting = cmp.Or(s.Metric, "test_acc_avg"), cmp.Or(s.Accounting, "shared-seed")
		s.Seed = cmp.Or(s.Seed, 1)
		if s.Budgets == nil {
			s.Budgets = []Budget{{}}
		}
	}
	for i := range e.Runs {
		r := &e.Runs[i]
		r.points = [][]setting{nil}
		if r.Name == "" && (e.Kind() != Ranking || len(e.Runs) > 1) {
			c, err := e.config(r, "", nil, nil)
			if err != nil {
				return err
			}
			r.Name = c.Algo
		}
		r.Title = cmp.Or(r.Title, r.Name)
	}
	switch {
	case e.Title != "":
	case e.Kind() == Tuning:
		e.Title = fmt.Sprintf("%d methods, tuned alike", len(e.Runs))
	default:
		e.Title = e.ID
	}
	return nil
}
