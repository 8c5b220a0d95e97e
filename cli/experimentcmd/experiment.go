package experimentcmd

import (
	"errors"
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
)

// flags are the flags of experiment and of the commands that are other names of it.
type flags struct {
	file, flavour, accounting string
	out                       string
	dataFlags
	scale                 bench.Scale
	jobs, threads, points int
	seed                  uint64
	seeds                 bench.Seeds
	dialogue
	lists
	queueFlags
	layoutFlags
	name  string         // name of the command
	given *pflag.FlagSet // flags of the command, of which some were given
}

// dialogue holds the layout of pictures, and whether questions are asked.
type dialogue struct {
	raw, quiet, noTime, json, yes bool
	stdin                         io.Reader // Answers come from it.
}

// dataFlags name another data set, or other files of it.
type dataFlags struct{ data, dataDir string }

// lists are the flags that may be repeated.
type lists struct{ only, without, with, set []string }

func (f *flags) changed(flag string) bool { return f.given.Changed(flag) }

// Help of flags that several commands have.
const (
	seedsHelp = "seeds of each setting: their number, as in 3, or a list, as in 1,5,9; tables and plots show " +
		"means and standard deviations"
	rawHelp = "draw the curve of every seed too"
)

func (f *flags) declare(fs *pflag.FlagSet) {
	fs.StringVarP(&f.file, "config", "c", "", "file of an experiment")
	fs.StringVar(&f.flavour, "flavour", "released", "variant: of the paper's figures printed, released or bug-compat")
	fs.Float64Var(&f.scale.Share, "scale", 1, "share of the iterations to make, above 0 and at most 1")
	fs.BoolVar(&f.scale.Retune, "retune", false, "scale step sizes so that the shape of the figure survives --scale")
	fs.StringSliceVar(&f.only, "only", nil, "runs to make, by name or part of it, such as storm,choco; all if empty")
	fs.StringSliceVar(&f.without, "without", nil, "runs to leave out, by name or part of it")
	fs.StringArrayVar(&f.with, "with", nil, "algorithm to add, NAME or NAME,key=value,...; may be repeated")
	fs.IntVar(&f.jobs, "jobs", 1, "runs at a time; they share the threads")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.IntVar(&f.points, "eval-points", 0,
		"evaluations of each run; 0 is as many as the experiment has, but in a shorter one not closer than 400 "+
			"iterations")
	fs.StringVar(&f.out, "out", "", "folder of the results; the default is below runs, named after the experiment")
	fs.StringVar(&f.data, "data", "", "another data set, or another form of the same: synthetic, mnist, folder")
	fs.StringVar(&f.dataDir, "data-dir", "", "folder of the data set's files")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	fs.Var(&f.seeds, "seeds", seedsHelp)
	fs.BoolVar(&f.raw, "raw", false, rawHelp)
	fs.StringVar(&f.accounting, "accounting", "shared-seed",
		"how the axis of bits counts: shared-seed, packed or reference")
	fs.StringArrayVar(&f.set, "set", nil, "key=value over the configuration of every run; may be repeated")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.noTime, "no-time", false, "list: do not measure how long each figure takes")
	fs.BoolVar(&f.json, "json", false, "print the list, the table, or the step sizes, as JSON")
	fs.BoolVar(&f.yes, "yes", false, "do not ask before runs that take more than an hour")
	f.queueFlags.declare(fs)
	f.layoutFlags.declare(fs)
}

// spelling is a command that reads an experiment and runs it.
type spelling struct {
	use, short, long, example string
	args                      string // Description of its argument; empty if it has none.
	flags                     string // Names of its flags.
	find                      func(name string) (*bench.Experiment, error)
	list                      func(f *flags, cmd *cobra.Command) error // Prints the list of experiments; may be nil.
}

// Names of flags by topic.
const (
	runFlags    = " out jobs threads quiet json yes" + layoutNames
	seedFlags   = " seeds raw"
	changeFlags = " scale only without eval-points data data-dir seed set"
)

func (s spelling) command(root func() *cobra.Command) *cobra.Command {
	f := &flags{name: strings.Fields(s.use)[0]}
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long, Example: s.example}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.declare(all)
	for _, name := range strings.Fields(s.flags) {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	f.given = cmd.Flags()
	if s.args == "" {
		cmd.Args = command.NoArgs
	} else {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if f.file != "" && len(args) == 0 {
				return nil
			}
			return command.Arguments(1, 1, s.args)(cmd, args)
		}
	}
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if err := f.check(args); err != nil || s.isList(args) {
			return err
		}
		if f.changed("no-time") {
			return command.UsageErrorf("--no-time has an effect on figure list only: leave it out")
		}
		if f.isBaseGraph(args) {
			return nil
		}
		e, err := f.read(s, args)
		if err == nil && e.Kind() != bench.Queue {
			_, err = e.Jobs(f.options(e))
		}
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.stdin = cmd.InOrStdin()
		switch {
		case s.isList(args):
			return s.list(f, cmd)
		case f.isBaseGraph(args):
			return f.baseGraph(cmd.OutOrStdout())
		}
		e, err := f.read(s, args)
		switch {
		case err != nil:
			return err
		case e.Kind() == bench.Queue:
			return f.runQueue(cmd.Context(), e, root, cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		return f.run(cmd.Context(), e, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// lists reports whether the arguments ask for the list.
func (s spelling) isList(args []string) bool { return s.list != nil && isList(args) }

// isBaseGraph reports whether the arguments name the replay that trains nothing.
func (f *flags) isBaseGraph(args []string) bool {
	return f.name == "replay" && len(args) == 1 && args[0] == "base-graph"
}

// check refuses combinations of flags and arguments, before any file is read.
func (f *flags) check(args []string) error {
	switch {
	case f.file == "" && len(args) == 0:
		return command.UsageErrorf("-c is missing: name the file that says what to run; --help shows one")
	case f.file != "" && len(args) > 0:
		return command.UsageErrorf("-c names an experiment of your own, and %s another one: leave one of the two out",
			args[0])
	case f.jobs < 1:
		return command.UsageErrorf("--jobs is %d, expected at least 1", f.jobs)
	case len(f.seeds) > 0 && f.changed("seed"):
		return command.UsageErrorf("--seed and --seeds are both set: leave one of the two out")
	}
	probe := train.Default()
	return errors.Join(f.queueFlags.check(), f.layoutFlags.check(), setKeys(&probe, f.set))
}

// read reads the experiment that the arguments name, and adds the settings of the flags to it.
func (f *flags) read(s spelling, args []string) (*bench.Experiment, error) {
	find := bench.Read
	if f.file == "" {
		find = s.find
		args = args[:1]
	} else {
		args = []string{f.file}
	}
	e, err := find(args[0])
	if err != nil {
		return nil, err
	}
	if e.Origin == bench.OwnFile {
		f.file = args[0]
	}
	if err := f.refuse(e, f.name+" "+args[0]); err != nil {
		return nil, err
	}
	for _, spec := range f.with {
		if err := e.Add(spec); err != nil {
			return nil, err
		}
	}
	switch {
	case len(f.seeds) > 0:
		err = e.SetSeeds(f.seeds)
	case f.changed("seed"):
		e.Seeds = nil
	}
	if err == nil && f.raw && len(e.Repeats()) < 2 {
		err = errRawSeed
	}
	return e, err
}

// refuse refuses flags that have no effect on an experiment.
func (f *flags) refuse(e *bench.Experiment, name string) error {
	switch {
	case e.Kind() == bench.Queue && f.list:
		return command.OnlyFlags(f.given, "queue --list, which runs nothing", "list", "out")
	case e.Kind() == bench.Queue:
		return command.OnlyFlags(f.given, "a file that lists others", strings.Fields(queueNames+" out threads")...)
	case e.Steps != nil:
		return command.OnlyFlags(f.given, "a figure that draws step sizes and trains nothing",
			append(strings.Fields(layoutNames), "config", "flavour", "scale", "retune", "only", "without", "with",
				"set", "out", "threads",
				"quiet", "json", "yes")...)
	}
	for _, flag := range strings.Fields(queueNames) {
		if f.changed(flag) {
			return command.UsageErrorf("--%s has an effect on a file that lists others only: leave it out", flag)
		}
	}
	if e.Search != nil {
		for _, flag := range []string{"scale", "retune", "with", "eval-points", "seed", "accounting"} {
			if f.changed(flag) {
				return command.UsageErrorf("%s has no --%s: its methods, seeds and budgets are those of its "+
					"file; --set "+
					"changes keys of all runs, --seeds the seeds", name, flag)
			}
		}
	}
	if e.Origin == bench.Replay {
		for _, pair := range f.set {
			switch key, _, _ := strings.Cut(pair, "="); strings.TrimSpace(key) {
			case "iterations", "epochs":
				return command.UsageErrorf("--set %s: the share of the paper's run is that of --scale, set it instead",
					pair)
			}
		}
	}
	return nil
}

// isFile reports whether an argument names a file, and no experiment of the program.
func isFile(name string) bool {
	if strings.ContainsAny(name, `/\`) || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func find(name string) (*bench.Experiment, error) {
	if isFile(name) {
		return bench.Read(name)
	}
	return bench.Find(name)
}

func (f *flags) options(e *bench.Experiment) bench.Options {
	paper := e.Origin == bench.Paper && e.Search == nil
	o := bench.Options{Scale: f.scale, Only: f.only, Without: f.without, Points: f.points}
	if paper || f.changed("flavour") {
		o.Variant = f.flavour
	}
	o.Adjust = func(c *train.Config) {
		if f.data != "" {
			c.Data = f.data
		}
		if f.dataDir != "" {
			c.DataDir = f.dataDir
			c.SetExplicit("data_dir")
		}
		if paper || f.changed("seed") {
			c.Seed = f.seed
		}
		if paper || f.changed("accounting") {
			c.Accounting = f.accounting
		}
		_ = setKeys(c, f.set) // check has read them
	}
	return o
}

func (f *flags) folder(e *bench.Experiment) string {
	if f.out != "" {
		return f.out
	}
	var parts []string
	variant := f.options(e).Variant
	switch kind := e.Kind(); {
	case e.Folder != "":
		return e.Folder
	case kind == bench.Queue, e.Search != nil && e.Origin == bench.OwnFile:
		base := filepath.Base(f.file)
		parts = []string{string(kind), strings.TrimSuffix(base, filepath.Ext(base))}
	case kind == bench.Replayed:
		parts = []string{"replay", e.ID}
	case e.Number > 0:
		parts = []string{"figure", strconv.Itoa(e.Number)}
	default:
		parts = []string{folderName(e.ID)}
	}
	if variant != "" {
		parts = append(parts, variant)
	}
	if e.Steps == nil && f.scale.Share != 1 {
		parts = append(parts, strconv.FormatFloat(f.scale.Share, 'g', -1, 64))
		if f.scale.Retune {
			parts = append(parts, "retuned")
		}
	}
	if e.Kind() == bench.Figure {
		if f.data != "" && e.Steps == nil {
			parts = append(parts, f.data)
		}
		switch {
		case len(e.Seeds) > 0:
			parts = append(parts, "seeds", strings.ReplaceAll(e.Seeds.String(), ",", "-"))
		case f.seed != 1:
			parts = append(parts, "seed", strconv.FormatUint(f.seed, 10))
		}
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

// errNoValue ends a search that ranked nothing.
var errNoValue = errors.New("sweep: no run has a value of the metric: all diverged, or were evaluated beyond the " +
	"budget only; use other step sizes, more evaluations (eval_points), or another metric or budget")

// errRawSeed refuses --raw where no curve is a mean.
var errRawSeed = command.UsageErrorf("--raw has no effect: it draws the curve of every seed beside their mean, and " +
	"no setting has several seeds; leave it out, or give several seeds")
