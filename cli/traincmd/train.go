package traincmd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/memory"
)

// trainFlags are the flags of a run that are no keys of its configuration.
type trainFlags struct {
	file        string
	out         string
	resume      bool
	quiet, json bool
	web         string // address of the live page; empty for none
	metrics     string // address of metrics; empty for none
	dry         bool
	from        string // folder of the run from a checkpoint of which this one goes on; empty for none
	at          int    // iteration of that checkpoint; 0 is the newest that fits
}

// config returns the configuration that the flags describe. With --resume it is the configuration
// of the run in --out, with the changes of the flags, and it may be longer. With --from it is that
// of another run, with the changes of the flags.
func (f *trainFlags) config(fs *pflag.FlagSet) (train.Config, error) {
	switch {
	case f.from != "" && f.resume:
		return train.Config{}, config.Invalid("--from", f.from, "--resume continues the run in --out: "+
			"leave one of them out")
	case f.from != "":
		old, err := train.ReadConfig(f.from)
		if err != nil {
			return old, &train.FolderError{Path: f.from, Got: "holds no run that can be read", Err: err}
		}
		c, err := setup.ReadConfig(f.file, f.from, fs)
		return c, errors.Join(err, c.Branch(old))
	case f.at != 0:
		return train.Config{}, config.Invalid("--at", f.at, "it is the iteration of a checkpoint of another "+
			"run: name the run with --from")
	case !f.resume:
		return setup.ReadConfig(f.file, "", fs)
	}
	c, err := setup.ReadConfig(f.file, f.out, fs)
	if err != nil {
		return c, err
	}
	if old, err := train.ReadConfig(f.out); err == nil {
		return c, c.Lengthen(old)
	}
	return c, nil
}

// add defines the flags that all commands of a run have; out explains --out.
func (f *trainFlags) add(fs *pflag.FlagSet, out string) {
	c := train.Default()
	setup.ConfigFlags(fs, &c)
	fs.StringVarP(&f.file, "config", "c", "", "YAML file of the keys above")
	fs.StringVar(&f.out, "out", "", out)
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.json, "json", false, "log JSON lines and print the summary as JSON")
	fs.StringVar(&f.metrics, "metrics-listen", "", metricsHelp)
	setup.Topic(fs, "run", "config")
	setup.Topic(fs, "output", "out", "quiet", "json", "metrics-listen")
}

// webHelp is the help of --web.
const webHelp = "serve the live page at HOST:PORT, such as :8080; without a host only to this machine"

// metricsHelp is the help of --metrics-listen.
const metricsHelp = "HOST:PORT, as 127.0.0.1:9100, for Prometheus (/metrics) and probes (/healthz, /readyz)"

func newTrain() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model over many agents; without a flag, the default job on built-in data",
		Long: `Train one model on many agents that hold different data.

Without a flag: FSPDA-SA trains an MLP on built-in drawn digits, over ten agents that hold different classes, one
random edge at a time, a tenth of the coordinates an exchange. The run folder holds metrics, plots, checkpoints and
report.html.

Every flag but --config, --resume, --from, --at, --dry-run, --out, --quiet, --json, --web and --metrics-listen is also
a key of the YAML file given with -c (dashes become underscores); flags win. Names that other programs use (--lr,
--workers, --topology, --dataset, --batch-size, --world-size) are understood, and upper and lower case are the same in
names of algorithms, graphs, data sets and networks.`,
		Example: `  fspda train
  fspda train --algo help
  fspda train --algo dsgd --partition sorted --iterations 10000
  fspda train --data mnist --data-dir DIR --graph 'er(0.5)' --density 0.01
  fspda train -c run.yaml --seed 2 --out runs/second
  fspda train --out runs/second --resume
  fspda train --out runs/second --resume --iterations 6000
  fspda train --from runs/wsd --at 3000 --iterations 3600 --decay-length 600
  fspda train --web :8080`,
	}
	fs := cmd.Flags()
	f.add(fs, "run folder; the default is the next free runs/ALGO-DATA-NUMBER")
	fs.BoolVar(&f.resume, "resume", false, "resume the run in --out, or the latest unfinished one in runs/; with "+
		"more --iterations, a finished one continues beyond its end")
	fs.StringVar(&f.from, "from", "", "run folder: train a new run that goes on from a checkpoint of this one, with "+
		"its configuration and the changes of the flags, such as another decay")
	fs.IntVar(&f.at, "at", 0, "with --from: iteration of the checkpoint; 0 is the newest that fits")
	fs.BoolVar(&f.dry, "dry-run", false,
		"time a few iterations, print how long the run would take and what it needs, and write nothing")
	fs.StringVar(&f.web, "web", "", webHelp)
	setup.Topic(fs, "run", "resume", "from", "at", "dry-run")
	setup.Topic(fs, "output", "web")
	help := func() bool { return fs.Lookup("algo").Value.String() == "help" }
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if help() {
			return nil
		}
		_, err := (&allAgents{trainFlags: f}).configure(fs)
		return err
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if help() {
			_, err := io.WriteString(cmd.OutOrStdout(), config.MethodHelp())
			return err
		}
		return runTrain(cmd.Context(), &allAgents{trainFlags: f}, fs, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// runTrain trains, or only prints a forecast.
func runTrain(ctx context.Context, m *allAgents, fs *pflag.FlagSet, stdout, stderr io.Writer) error {
	r, err := openRun(m, &m.trainFlags, fs, stdout, stderr)
	if err != nil {
		return err
	}
	defer r.close()
	if m.dry {
		return dryRun(ctx, r, m, stdout)
	}
	return explainLoss(r.train(ctx, m), m.out)
}

// allAgents is the mode of fspda train: this process holds all agents of the run.
type allAgents struct {
	trainFlags
	page livePage
}

func (m *allAgents) configure(fs *pflag.FlagSet) (train.Config, error) {
	if m.resume && m.out == "" && m.from == "" {
		out, err := latestUnfinished(command.RunsDir)
		if err != nil {
			return train.Config{}, err
		}
		m.out = out
	}
	c, err := m.config(fs)
	if err != nil {
		return c, err
	}
	return c, c.Check()
}

func (m *allAgents) openDevices(c train.Config) (*setup.Devices, error) {
	return setup.OpenDevices(c, setup.AgentThreads(c), c.Agents)
}

func (m *allAgents) resolve(c train.Config, set *data.Set, dev *setup.Devices) (*train.Setup, setup.Model, error) {
	return setup.Resolve(c, set, dev)
}

func (m *allAgents) attach(ctx context.Context, r *run) (context.Context, error) {
	if m.out == "" {
		m.out = command.NextFreeName(r.setup.Config.Algo + "-" + r.setup.Config.Data)
	}
	var err error
	if m.page, err = openLivePage(m.web); err != nil { // opened before the folder: a bad address leaves nothing behind
		return ctx, err
	}
	r.onClose(m.page.close)
	watched, err := openMetrics(m.metrics, filepath.Base(m.out), "")
	if err != nil {
		return ctx, err
	}
	r.onClose(watched.close)
	folder, err := m.openFolder(r.setup)
	if err != nil {
		return ctx, err
	}
	r.onClose(setup.LimitMemory(func() uint64 { return memory.Process(r.setup) }, r.setup.Config.Model))
	if r.display.from, err = folder.ResumesAt(r.setup); err != nil {
		return ctx, errors.Join(err, folder.Close())
	}
	r.options.Folder, r.options.Others = folder, r.devices.Workers(r.model)
	if !m.quiet {
		f, err := train.ForecastRun(ctx, r.setup, r.devices.Device, r.model, r.display.from, r.options.Others...)
		if err != nil {
			return ctx, errors.Join(err, folder.Close())
		}
		r.display.forecast = &f
	}
	if ctx, err = m.page.serve(ctx, m.out, r); err != nil {
		return ctx, errors.Join(err, folder.Close())
	}
	if r.options.Live == nil && m.metrics != "" { // The metrics need the live state, which no page has made.
		r.options.Live = train.NewLiveState(r.setup.Config.Agents)
	}
	watched.serve(wholeRun{r.options.Live, r.setup.Config.Iterations}, r.display.log)
	r.observe(watched)
	m.page.announce(r.display)
	r.announce(m.out)
	return ctx, nil
}

// openFolder opens the run folder, with --from after a copy of the state from which the run goes on.
func (m *allAgents) openFolder(s *train.Setup) (*train.Folder, error) {
	if m.from == "" {
		return train.OpenFolder(m.out, s, m.resume)
	}
	b, err := train.OpenBranch(m.from, s, m.at)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	folder, err := train.OpenFolder(m.out, s, false)
	if err != nil {
		return nil, err
	}
	if err := b.CopyTo(folder, s); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

func (m *allAgents) conclude(r *run, res *train.Result) error {
	m.page.finish()
	return printResults(r, res)
}

// printResults prints the table of a run that ended, or that it was stopped.
func printResults(r *run, res *train.Result) error {
	folder := r.options.Folder
	if res.Status == train.Stopped {
		r.display.stopped(folder.Path, res)
		return command.ErrStopped
	}
	if err := r.display.end(folder.Path, res.Summary); err != nil {
		return err
	}
	if res.Diverged != nil {
		return res.Diverged
	}
	return nil
}

// latestUnfinished returns the run folder without a summary whose configuration is the newest.
func latestUnfinished(dir string) (string, error) {
	configs, err := filepath.Glob(filepath.Join(dir, "*", "config.yaml"))
	if err != nil {
		return "", err
	}
	best, found := "", os.FileInfo(nil)
	for _, c := range configs {
		if _, err := os.Stat(filepath.Join(filepath.Dir(c), "summary.json")); err == nil {
			continue
		}
		if info, err := os.Stat(c); err == nil && (found == nil || info.ModTime().After(found.ModTime())) {
			best, found = filepath.Dir(c), info
		}
	}
	if found == nil {
		return "", &train.FolderError{Path: dir, Got: "holds no unfinished run", Hint: "name the run folder with --out"}
	}
	return best, nil
}
