package figurecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/train"
	"fspda/web"
)

// figureFlags are the flags of figure.
type figureFlags struct {
	flavour, accounting   string
	out, data, dataDir    string
	scale                 bench.Scale
	jobs, threads, points int
	seed                  uint64
	set                   []string
	quiet, noTime, json   bool
	figureCurves
	flags *pflag.FlagSet
}

func (f *figureFlags) changed(flag string) bool { return f.flags.Changed(flag) }

// figureCurves are the flags that choose the figure and its curves.
type figureCurves struct {
	file                string
	only, without, with []string
	seeds               bench.Seeds
	raw                 bool
}

// find reads the figure that the arguments name, and adds the curves of --with.
func (f *figureFlags) find(args []string) (fig *bench.Figure, err error) {
	if f.file != "" {
		if fig, err = bench.ReadFigure(f.file); err != nil {
			return nil, err
		}
		if !f.changed("flavour") {
			f.flavour = ""
		}
		if len(f.seeds) == 0 && !f.changed("seed") {
			f.seeds = fig.Seeds
		}
	} else if fig, err = bench.FindFigure(args[0]); err != nil {
		return nil, err
	}
	for _, spec := range f.with {
		if err := fig.Add(spec); err != nil {
			return nil, err
		}
	}
	return fig, nil
}

func newFigure() *cobra.Command {
	var f figureFlags
	cmd := &cobra.Command{
		Use:   "figure list | figure N | figure NAME | figure -c FILE",
		Short: "Run all algorithms of a figure of the paper, of a comparison, or of your own, and draw it",
		Long:  figureLong,
		Example: `  fspda figure list
  fspda figure 1 --scale 0.02 --retune --data-dir DIR
  fspda figure 1 --only sa,storm,choco --jobs 2 --data-dir DIR
  fspda figure 1 --without kgt,led --with d2 --with dsgd,theta=0.3 --scale 0.02 --retune --data-dir DIR
  fspda figure -c mine.yaml --seeds 3
  fspda figure 9
  fspda figure methods --jobs 2 --data-dir DIR
  fspda figure low-communication --jobs 2 --data-dir DIR`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.file != "" && len(args) == 0 {
				return nil
			}
			return command.Arguments(1, 1, "list, or the number or name of one figure")(cmd, args)
		},
	}
	f.add(cmd.Flags())
	f.flags = cmd.Flags()
	cmd.PreRunE = func(_ *cobra.Command, args []string) error { return f.check(args) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) }
	return cmd
}

// figureLong is the help of figure.
const figureLong = `Run all algorithms of a figure of the paper on the same data, split and initial model, and draw it.

The figure's folder holds a run folder for each curve, the plots as SVG and PNG, figure.html to look into them, and
the final numbers as table.md and table.csv. What is done is kept and what is unfinished goes on when the same command
runs again.

Flavours: printed (the tables of the paper), released (what the released scripts run, with the correct recursions),
bug-compat (the same with the released program's departures). --scale 0.01 makes a hundredth of the iterations;
--retune scales step sizes with it so that the figure keeps its shape, by the rules of docs/figures.md.

methods compares all methods, and low-communication those that exchange little, at equal bits and at equal seconds of a
slow network: each is tuned by the same number of runs, as fspda tune does it, and reported on seeds that no choice has
seen. The folder holds ranking.png, tuning.md with grids, choices and results, and tuning.html with the curves.

--with adds an algorithm, also one that your own program registers: with the settings of the figure's first run, and
edges, mask and momentum that it admits. -c reads a figure from a file: what all runs share, and what each changes.

  title: My method against two others
  common: {data: mnist, agents: 10, iterations: 2000}
  runs:
    - {name: mine, config: {algo: mine, params: {beta: 0.9}}}
    - {name: dsgd, title: DSGD, config: {algo: dsgd}}
  seeds: [1, 2, 3]
  panels: [{metric: test_acc, model: mean, x: bits, y: linear}]   # may be missing`

func (f *figureFlags) add(fs *pflag.FlagSet) {
	fs.StringVarP(&f.file, "config", "c", "", "file of a figure of your own")
	fs.StringVar(&f.flavour, "flavour", "released", "printed, released or bug-compat")
	fs.Float64Var(&f.scale.Share, "scale", 1, "share of the figure's iterations to make, above 0 and at most 1")
	fs.BoolVar(&f.scale.Retune, "retune", false, "scale step sizes so that the shape of the figure survives --scale")
	fs.StringSliceVar(&f.only, "only", nil, "runs to make, by name or part of it, such as storm,choco; all if empty")
	fs.StringSliceVar(&f.without, "without", nil, "runs to leave out, by name or part of it")
	fs.StringArrayVar(&f.with, "with", nil, "algorithm to add, NAME or NAME,key=value,...; may be repeated")
	fs.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.IntVar(&f.points, "eval-points", 0,
		"evaluations of each run; 0 is as many as the figure has, but not closer than 400 iterations")
	fs.StringVar(&f.out, "out", "", "folder of the figure; the default is runs/figure-N-FLAVOUR and the scale")
	fs.StringVar(&f.data, "data", "", "another data set than the figure's: synthetic, mnist")
	fs.StringVar(&f.dataDir, "data-dir", "", "folder of the data set's files")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	fs.Var(&f.seeds, "seeds", seedsHelp)
	fs.BoolVar(&f.raw, "raw", false, rawHelp)
	fs.StringVar(&f.accounting, "accounting", "shared-seed",
		"how the axis of bits counts: shared-seed, packed or reference")
	fs.StringArrayVar(&f.set, "set", nil, "key=value over the configuration of every run; may be repeated")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.noTime, "no-time", false, "list: do not measure how long each figure takes")
	fs.BoolVar(&f.json, "json", false, "print the list, the table of the figure, or its step sizes, as JSON")
}

// check refuses what the command line and the file of a figure say wrongly, before anything is made.
func (f *figureFlags) check(args []string) error {
	if f.jobs < 1 {
		return command.UsageErrorf("--jobs is %d, expected at least 1", f.jobs)
	}
	if len(f.seeds) > 0 && f.changed("seed") {
		return command.UsageErrorf("--seed and --seeds are both set: leave one of the two out")
	}
	switch {
	case f.file != "" && len(args) > 0:
		return command.UsageErrorf("-c names a figure of your own, and %s another one: leave one of the two out",
			args[0])
	case f.file == "" && args[0] == "list":
		return command.OnlyFlags(f.flags, "figure list", "flavour", "scale", "retune", "threads", "eval-points",
			"data", "data-dir", "seed", "set", "no-time", "json")
	}
	if f.changed("no-time") {
		return command.UsageErrorf("--no-time has an effect on figure list only: leave it out")
	}
	if t, err := f.tuning(args); t != nil || err != nil {
		if err != nil {
			return err
		}
		return checkJobs(t.Search())
	}
	fig, err := f.find(args)
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	return checkJobs(fig.Jobs(o))
}

// run plays what check has admitted.
func (f *figureFlags) run(cmd *cobra.Command, args []string) error {
	if f.file == "" && args[0] == "list" {
		return listFigures(cmd.Context(), *f, cmd.OutOrStdout())
	}
	if t, err := f.tuning(args); t != nil || err != nil {
		if err != nil {
			return err
		}
		return f.runTuned(cmd.Context(), t, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	fig, err := f.find(args)
	if err != nil {
		return err
	}
	return runFigure(cmd.Context(), fig, *f, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// tuning returns the figure of tuned methods that the arguments name, with what the flags change;
// nil if they name none.
func (f *figureFlags) tuning(args []string) (*bench.Tuning, error) {
	if f.file != "" {
		return nil, nil
	}
	t, err := bench.FindTuning(args[0])
	if t == nil || err != nil {
		return nil, err
	}
	for _, flag := range []string{"flavour", "scale", "retune", "with", "eval-points", "seed", "accounting"} {
		if f.changed(flag) {
			return nil, command.UsageErrorf("figure %s has no --%s: its methods, seeds and budgets are those of its "+
				"file; --set changes keys of all runs, --seeds the seeds that are reported", t.ID, flag)
		}
	}
	if err := errors.Join(t.Keep(f.only, f.without), t.Set(f.data, f.dataDir, f.set)); err != nil {
		return nil, err
	}
	if len(f.seeds) > 0 {
		return t, t.SetReport(f.seeds)
	}
	return t, nil
}

// runTuned plays a figure that compares tuned methods.
func (f *figureFlags) runTuned(ctx context.Context, t *bench.Tuning, stdout, stderr io.Writer) error {
	out := cmp.Or(f.out, filepath.Join(command.RunsDir, folderName(t.ID)))
	if !f.quiet {
		fmt.Fprintf(stderr, "%s\n%s\nexpected: %s\n", t.Title, out, t.About)
	}
	return playTuning(ctx, t, sweepFlags{out: out, jobs: f.jobs, threads: f.threads, quiet: f.quiet, json: f.json,
		raw: f.raw}, stdout, stderr)
}

// options returns the options of the figure's jobs.
func (f *figureFlags) options() (bench.FigureOptions, error) {
	probe := train.Default()
	if err := setKeys(&probe, f.set); err != nil {
		return bench.FigureOptions{}, err
	}
	adjust := func(c *train.Config) {
		if f.data != "" {
			c.Data = f.data
		}
		if f.dataDir != "" {
			c.DataDir = f.dataDir
			c.SetExplicit("data_dir")
		}
		if f.file == "" || f.changed("seed") {
			c.Seed = f.seed
		}
		if f.file == "" || f.changed("accounting") {
			c.Accounting = f.accounting
		}
		_ = setKeys(c, f.set) // checked above
	}
	return bench.FigureOptions{Variant: f.flavour, Scale: f.scale, Only: f.only, Without: f.without, Points: f.points,
		Adjust: adjust}, nil
}

// folder returns the folder of the figure.
func (f *figureFlags) folder(fig *bench.Figure) string {
	if f.out != "" {
		return f.out
	}
	parts := []string{"figure", strconv.Itoa(fig.Number), f.flavour}
	if f.file != "" {
		parts = []string{folderName(fig.ID)}
		if f.flavour != "" {
			parts = append(parts, f.flavour)
		}
	}
	if fig.Schedule == nil && f.scale.Share != 1 {
		parts = append(parts, strconv.FormatFloat(f.scale.Share, 'g', -1, 64))
		if f.scale.Retune {
			parts = append(parts, "retuned")
		}
	}
	if f.data != "" && fig.Schedule == nil {
		parts = append(parts, f.data)
	}
	switch {
	case len(f.seeds) > 0:
		parts = append(parts, "seeds", strings.ReplaceAll(f.seeds.String(), ",", "-"))
	case f.seed != 1:
		parts = append(parts, "seed", strconv.FormatUint(f.seed, 10))
	}
	return filepath.Join(command.RunsDir, strings.Join(parts, "-"))
}

// folderName returns the name of the folder of a figure that has a file of its own.
func folderName(id string) string {
	if strings.HasPrefix(id, "figure") {
		return id
	}
	return "figure-" + id
}

// seedJobs repeats the runs with every seed.
func (f *figureFlags) seedJobs(jobs []bench.Job) ([]bench.Job, error) {
	if f.raw && len(f.seeds) < 2 {
		return nil, errRawSeed
	}
	return f.seeds.Jobs(jobs)
}

func runFigure(ctx context.Context, fig *bench.Figure, f figureFlags, stdout, stderr io.Writer) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	jobs, err := fig.Jobs(o)
	if err != nil {
		return err
	}
	folder := f.folder(fig)
	if fig.Schedule != nil {
		return drawSchedule(fig, jobs, folder, f, stdout)
	}
	if jobs, err = f.seedJobs(jobs); err != nil {
		return err
	}
	f.accounting = jobs[0].Config.Accounting // which that of a file may have set
	c := &bench.Campaign{Folder: folder, Jobs: jobs, Parallel: f.jobs, Threads: f.threads, Open: newOpener().open,
		Panels: fig.OwnPanels()}
	if !f.quiet {
		fmt.Fprintf(stderr, "%s\n%s\n", f.title(fig), folder)
		if fig.About != "" {
			fmt.Fprintf(stderr, "expected: %s\n", fig.About)
		}
	}
	outcomes, playErr := runCampaign(ctx, c, func(ctx context.Context, c *bench.Campaign) ([]*bench.Outcome, error) {
		return c.Run(ctx)
	}, f.quiet, stderr)
	made := slices.DeleteFunc(slices.Clone(outcomes), func(o *bench.Outcome) bool { return o == nil })
	if len(made) == 0 {
		return playErr
	}
	if err := drawFigure(fig, made, folder, f); err != nil {
		return errors.Join(playErr, err)
	}
	switch {
	case playErr != nil:
		return playErr
	case f.json:
		return tableOf(f.accounting, made).WriteJSON(stdout)
	case f.quiet:
		return nil
	}
	name := "table.md"
	if fig.HasPrinted() {
		name = "paper.md"
	}
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s\n%s\n", text, filepath.Join(folder, "figure.html"))
	return err
}

// drawFigure draws the results of the runs: the paper's panels, accuracy and loss against bits, the
// page, and the tables.
func drawFigure(fig *bench.Figure, made []*bench.Outcome, folder string, f figureFlags) error {
	var curves []web.Curve
	for _, setting := range bench.Settings(made) {
		c, err := curveOf(setting)
		if err != nil {
			return err
		}
		c.Style = fig.IndexInGroup(setting.Name)
		curves = append(curves, c)
	}
	panels := f.panels(fig)
	title := f.title(fig)
	table := tableOf(f.accounting, made)
	bits := bitsPanels(bitsColumn(f.accounting), fig.Groups())
	c := web.Comparison{Title: title, Caption: append(f.caption(fig, made), seedNote(curves)...), Curves: curves,
		Raw: f.raw, Tables: []web.PageTable{costTable(table)}}
	paper, againstBits, page := c, c, c
	paper.Panels, paper.Across = panels, min(4, len(panels))
	againstBits.Title, againstBits.Panels, againstBits.Across = title+", against bits", bits, 3
	page.Panels = append(panels, bits...)
	if fig.HasPrinted() {
		if err := writeComparison(folder, fig, f.scale.Share, made, f.settings(made)); err != nil {
			return err
		}
	}
	return errors.Join(paper.WriteImages(filepath.Join(folder, "figure")),
		againstBits.WriteImages(filepath.Join(folder, "bits")), page.WritePage(filepath.Join(folder, "figure.html")),
		writeTable(folder, table))
}

func tableOf(accounting string, made []*bench.Outcome) *bench.Table {
	return &bench.Table{Accounting: accounting, Levels: bench.Milestones, Outcomes: made}
}

// panels returns the panels with the names of their columns. Check has made sure that they exist.
func (f *figureFlags) panels(fig *bench.Figure) (panels []web.Panel) {
	for _, p := range fig.Panels {
		column, _ := p.Column()
		x := p.X
		if x == "bits" {
			x = bitsColumn(f.accounting)
		}
		panels = append(panels, web.Panel{Title: p.Title, Group: p.Group, Column: column, X: x, Log: p.Y == "log"})
	}
	return panels
}

// bitsPanels returns the main panels of a comparison: accuracy and loss against bits, for each
// group of curves.
func bitsPanels(x string, groups []string) []web.Panel {
	var panels []web.Panel
	for _, g := range groups {
		title := ""
		if g != "" {
			title = "(" + g + ")"
		}
		panels = append(panels, web.Panel{Title: title, Group: g, Column: "test_acc_min", X: x},
			web.Panel{Title: title, Group: g, Column: "test_acc_avg", X: x},
			web.Panel{Title: title, Group: g, Column: "train_loss_worst", X: x, Log: true})
	}
	return panels
}

// title returns the title of the figure.
func (f *figureFlags) title(fig *bench.Figure) string {
	if f.file != "" {
		return fig.Title
	}
	return fmt.Sprintf("Figure %d: %s", fig.Number, fig.Title)
}

// caption returns the text below the plots.
func (f *figureFlags) caption(fig *bench.Figure, made []*bench.Outcome) []string {
	var lines []string
	if fig.About != "" {
		lines = append(lines, "Expected: "+fig.About)
	}
	settings := f.settings(made)
	settings[0] += " Bits are counted once, at the sending side, in " + f.accounting + " accounting."
	return slices.Concat(lines, settings, f.scale.Caption())
}

// settings describes the data and the network of the runs, and what was changed in all of them.
func (f *figureFlags) settings(made []*bench.Outcome) []string {
	c := made[0].Job.Config
	seed := fmt.Sprintf("seed %d", f.seed)
	if len(f.seeds) > 0 {
		seed = "seeds " + strings.ReplaceAll(f.seeds.String(), ",", ", ")
	}
	network := c.Model
	if network == "mlp" {
		network += " " + c.Hidden.String()
	}
	data := fmt.Sprintf("%s, %s data, %d agents, network %s.", seed, c.Data, c.Agents, network)
	if f.flavour != "" {
		data = "Flavour " + f.flavour + ", " + data
	}
	if c.EvalTest > 0 {
		data += fmt.Sprintf(" Evaluations use %d test examples.", c.EvalTest)
	}
	lines := []string{strings.ToUpper(data[:1]) + data[1:]}
	if len(f.set) > 0 {
		lines = append(lines, "Changed in every run: "+strings.Join(f.set, ", ")+".")
	}
	return lines
}

// drawSchedule draws step sizes. It trains nothing.
func drawSchedule(fig *bench.Figure, jobs []bench.Job, folder string, f figureFlags, stdout io.Writer) error {
	if err := command.OnlyFlags(f.flags, "a figure that draws step sizes and trains nothing", "config", "flavour",
		"scale", "retune", "only", "without", "set", "out", "threads", "quiet", "json"); err != nil {
		return err
	}
	var curves []web.Curve
	lines := []scheduleLine{}
	for _, j := range jobs {
		c := fig.Schedule.Columns(j.Config)
		curves = append(curves, web.Curve{Name: j.Title, Columns: c})
		lines = append(lines, scheduleLine{j.Title, c["iteration"], c["epoch"], c["lr"], c["eta"]})
	}
	panels := f.panels(fig)
	if err := command.MakeFolder(folder); err != nil {
		return err
	}
	c := &web.Comparison{Title: fmt.Sprintf("Figure %d: %s", fig.Number, fig.Title), Caption: []string{fig.About},
		Panels: panels, Across: 2, Curves: curves}
	if err := errors.Join(c.WriteImages(filepath.Join(folder, "figure")),
		c.WritePage(filepath.Join(folder, "figure.html"))); err != nil {
		return err
	}
	switch {
	case f.json:
		return command.PrintJSON(stdout, lines)
	case f.quiet:
		return nil
	}
	_, err := fmt.Fprintln(stdout, filepath.Join(folder, "figure.html"))
	return err
}

// scheduleLine is a curve of a figure that draws step sizes, in JSON.
type scheduleLine struct {
	Run       string    `json:"run"`
	Iteration []float64 `json:"iteration"`
	Epoch     []float64 `json:"epoch"`
	LR        []float64 `json:"lr"`
	Eta       []float64 `json:"eta"`
}

// figureLine describes a figure in the list.
type figureLine struct {
	Number   int      `json:"number"` // 0: it has a name only
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Runs     []string `json:"runs"`
	Expected string   `json:"expected"`
	Seconds  *float64 `json:"seconds"` // on this machine; null if not requested or not known
	time     string   // the same as text; empty if not requested
}

func (l figureLine) String() string {
	text := fmt.Sprintf("%d  %s: %s\n   runs: %s\n   expected: %s\n", l.Number, l.ID, l.Title,
		strings.Join(l.Runs, ", "), l.Expected)
	if l.time != "" {
		text += "   time" + l.time + "\n"
	}
	return text
}

func listFigures(ctx context.Context, f figureFlags, stdout io.Writer) error {
	all, err := bench.Figures()
	if err != nil {
		return err
	}
	lines := []figureLine{}
	for _, fig := range all {
		line := figureLine{Number: fig.Number, ID: fig.ID, Title: fig.Title, Runs: fig.RunNames(), Expected: fig.About}
		if err := f.timeOf(ctx, fig, &line); err != nil {
			return err
		}
		lines = append(lines, line)
		if f.json {
			continue
		}
		if _, err := fmt.Fprint(stdout, line); err != nil { // the next figure is measured for seconds
			return err
		}
	}
	tuned, err := bench.TuningFigures()
	if err != nil {
		return err
	}
	for _, t := range tuned {
		lines = append(lines, figureLine{ID: t.ID, Title: t.Title, Runs: t.Names(), Expected: t.About})
		if !f.json {
			fmt.Fprintf(stdout, "%s: %s\n   methods: %s\n   expected: %s\n", t.ID, t.Title,
				strings.Join(t.Names(), ", "), t.About)
		}
	}
	if f.json {
		return command.PrintJSON(stdout, lines)
	}
	_, err = fmt.Fprintf(stdout, "\nflavours: %s; 3 is a sketch\n", strings.Join(bench.VariantNames, ", "))
	return err
}

// timeOf measures how long a figure takes on this machine.
func (f *figureFlags) timeOf(ctx context.Context, fig *bench.Figure, line *figureLine) error {
	switch {
	case fig.Schedule != nil:
		line.time = ": none, it draws step sizes"
		return nil
	case f.noTime:
		return nil
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	jobs, err := fig.Jobs(o)
	if err != nil {
		return err
	}
	cal := &bench.Calibration{Path: filepath.Join(command.RunsDir, "calibration.json"), Open: newOpener().open,
		Threads: f.threads, Version: command.Version()}
	took, err := cal.Forecast(ctx, jobs)
	if bad := (*train.ConfigError)(nil); errors.As(err, &bad) && strings.HasPrefix(bad.Key, "data") {
		line.time = ": not known without its data set; name the folder with --data-dir"
		return nil
	}
	if err != nil {
		return err
	}
	length := ""
	if f.scale.Share != 1 {
		length = fmt.Sprintf(" at scale %g", f.scale.Share)
	}
	line.Seconds, line.time = &took, fmt.Sprintf(" on this machine%s: about %s", length, command.Seconds(took))
	return nil
}
