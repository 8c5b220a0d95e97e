package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/data"
	"fspda/device"
	"fspda/model"
	"fspda/train"
	"fspda/web"
)

// syntheticSeed fixes the built-in data set, so that runs of different seeds train on the same
// data.
const syntheticSeed = 1

// runsFolder is where runs without --out go.
const runsFolder = "runs"

// trainFlags are what is said of a run besides its Config.
type trainFlags struct {
	file        string
	out         string
	resume      bool
	quiet, json bool
	web         string // address of the live page; empty for none
	dry         bool
}

func newTrain() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model over many agents; without a flag, the main job on built-in data",
		Long: `Train one model on many agents that hold different data.

Without a flag: FSPDA-SA trains an MLP on built-in drawn digits, over ten agents that hold different classes, one random
edge at a time, a tenth of the coordinates an exchange. The run folder holds metrics, plots, checkpoints and report.html.

Every flag but the last few is also a key of the YAML file given with -c (dashes become underscores); flags win.`,
		Example: `  fspda train
  fspda train --algo dsgd --partition sorted --iterations 10000
  fspda train --data mnist --data-dir DIR --graph 'er(0.5)' --density 0.01
  fspda train -c run.yaml --seed 2 --out runs/second
  fspda train --out runs/second --resume
  fspda train --web :8080`,
		Args: noArgs,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	said := train.Default()
	configFlags(fs, &said)
	fs.StringVarP(&f.file, "config", "c", "", "YAML file of the keys above")
	fs.StringVar(&f.out, "out", "", "run folder; the default is the next free runs/ALGO-DATA-NUMBER")
	fs.BoolVar(&f.resume, "resume", false, "go on with the run in --out, or with the latest unfinished one in runs/")
	fs.BoolVar(&f.dry, "dry-run", false, "try a few iterations, say what the run would take, and leave nothing behind")
	fs.StringVar(&f.web, "web", "",
		"serve the live page at HOST:PORT, such as :8080; without a host to this machine alone")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.json, "json", false, "log JSON lines and print the summary as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runTrain(cmd.Context(), f, fs, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Sprintf("unexpected argument %q: everything is said by flags", args[0])}
	}
	return nil
}

// configFlags makes a flag of every key of the configuration.
func configFlags(fs *pflag.FlagSet, c *train.Config) {
	for _, f := range c.Fields() {
		name := flagName(f.Key)
		switch v := f.Value.(type) {
		case *string:
			fs.StringVar(v, name, *v, f.Help)
		case *bool:
			fs.BoolVar(v, name, *v, f.Help)
		case *int:
			fs.IntVar(v, name, *v, f.Help)
		case *uint64:
			fs.Uint64Var(v, name, *v, f.Help)
		case *float64:
			fs.Float64Var(v, name, *v, f.Help)
		case pflag.Value:
			fs.Var(v, name, f.Help)
		default:
			panic(fmt.Sprintf("fspda: no flag for the type %T of key %s", v, f.Key))
		}
	}
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// readConfig puts defaults, the configuration to be resumed, the file and the flags together; the
// later win.
func readConfig(f trainFlags, fs *pflag.FlagSet) (train.Config, error) {
	c := train.Default()
	if f.resume {
		old, err := train.ReadConfig(f.out)
		if err == nil {
			c = old
		} else if !errors.Is(err, os.ErrNotExist) {
			return c, &train.FolderError{Path: f.out, Got: "cannot be read", Err: err}
		}
	}
	if f.file != "" {
		text, err := os.ReadFile(f.file)
		if err != nil {
			return c, &train.ConfigError{Key: "-c", Got: f.file, Err: err}
		}
		if err := c.Parse(f.file, text); err != nil {
			return c, err
		}
	}
	over := pflag.NewFlagSet("", pflag.ContinueOnError)
	configFlags(over, &c)
	var errs []error
	fs.Visit(func(g *pflag.Flag) {
		if over.Lookup(g.Name) != nil {
			errs = append(errs, over.Set(g.Name, g.Value.String()))
		}
	})
	return c, errors.Join(errs...)
}

// runTrain is the command: configuration, data, network, run, report.
func runTrain(ctx context.Context, f trainFlags, fs *pflag.FlagSet, stdout, stderr io.Writer) error {
	if f.resume && f.out == "" {
		out, err := latestUnfinished(runsFolder)
		if err != nil {
			return err
		}
		f.out = out
	}
	c, err := readConfig(f, fs)
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Threads))
	}
	dev, err := openEngines(c, agentThreads(c), c.Agents)
	if err != nil {
		return err
	}
	defer dev.Close()
	s, m, err := prepare(c, dev)
	if err != nil {
		return err
	}
	if f.dry {
		return dryRun(ctx, f, s, m, dev, stdout)
	}
	if f.out == "" {
		f.out = nextFree(runsFolder, s.Config.Algo+"-"+s.Config.Data)
	}
	dash, err := openDashboard(f.web)
	if err != nil {
		return err
	}
	defer dash.close()
	folder, err := train.OpenFolder(f.out, s, f.resume)
	if err != nil {
		return err
	}
	show := newShow(f, s, m.Name(), stdout, stderr)
	defer show.close()
	show.engine = dev.String()
	for _, w := range s.Warnings {
		show.log.Warn(w)
	}
	s.Set.OnSkip(func(err error) { show.log.Warn("a picture is skipped: " + err.Error()) })
	defer s.Set.Close() // read only: nothing to lose
	defer keepTo(s.Footprint())()
	others := dev.places(m)
	if !f.quiet {
		ahead, err := s.Forecast(ctx, dev.Device, m, train.Standing(f.out), others...)
		if err != nil {
			return errors.Join(err, folder.Close())
		}
		show.ahead = forecastLine(ahead)
	}
	ctx, opt, err := dash.begin(ctx, f.out, s, train.Options{Device: dev.Device, Model: m, Others: others,
		Folder: folder, Log: show.log, OnRow: show.row, OnStep: show.step})
	if err != nil {
		return errors.Join(err, folder.Close())
	}
	dash.tell(show)
	show.begin(f.out)
	res, err := train.Run(ctx, s, opt)
	dash.finish()
	show.close()
	if err != nil {
		return ofLoss(err, f.out)
	}
	return conclude(f, s, folder, res, dev.Device, show)
}

// agentThreads is on how many cores an agent computes: one where there are as many agents as cores,
// else an equal share of all.
func agentThreads(c train.Config) int {
	cores := c.Threads
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	return max(1, cores/c.Agents)
}

// prepare loads the data and resolves the configuration. It writes nothing.
func prepare(c train.Config, dev *engine) (*train.Setup, *model.Engine, error) {
	if err := checkModel(c); err != nil { // before the data, which may take long
		return nil, nil, err
	}
	set, err := openData(c)
	if err != nil {
		return nil, nil, err
	}
	return resolve(c, set, dev)
}

func openData(c train.Config) (*data.Set, error) {
	set, err := data.Open(c.Data, data.OpenOptions{Dir: c.DataDir, TrainSize: c.DataTrain, TestSize: c.DataTest,
		Seed:    syntheticSeed,
		Augment: data.Augment(c.Augment), Crop: c.Crop, ImageSize: c.ImageSize, JPEG: data.Decoder(
			c.JPEG), OnBad: data.OnBad(c.OnBad), Workers: c.Threads})
	if err != nil {
		return nil, &train.ConfigError{Key: "data", Got: c.Data, Err: err}
	}
	return set, nil
}

// resolve makes the network and resolves the configuration on a data set.
func resolve(c train.Config, set *data.Set, dev *engine) (*train.Setup, *model.Engine, error) {
	s, m, err := resolveAgent(c, set, dev.Device)
	if err != nil {
		return nil, nil, err
	}
	return s, m, s.CheckMemory(append([]train.Place{{Device: dev.Device, Model: m}}, dev.places(m)...)...)
}

// resolveAgent is resolve for a process of one agent, which does not need the memory of all.
func resolveAgent(c train.Config, set *data.Set, dev device.Device) (*train.Setup, *model.Engine, error) {
	net, err := openModel(c, set.Shape, set.Classes)
	if err != nil {
		return nil, nil, err
	}
	m := model.NewEngine(net, dev)
	if c.Start != "" {
		x, buffers, err := readWeights(c.Start, net)
		if err != nil {
			return nil, nil, err
		}
		m.StartFrom(x, buffers)
	}
	s, err := c.Resolve(set, m)
	if err != nil {
		return nil, nil, err
	}
	return s, m, nil
}

// conclude writes what a run leaves behind and says how it ended.
func conclude(f trainFlags, s *train.Setup, folder *train.Folder, res *train.Result, dev device.Device,
	show *show) error {
	if res.Status == train.Stopped {
		show.stopped(folder.Path, res)
		return errStopped
	}
	sum := train.Summarize(s, res, dev.Name(), version())
	if err := folder.WriteSummary(sum); err != nil {
		return err
	}
	if err := errors.Join(web.WritePlots(folder.Path), web.WriteReport(folder.Path)); err != nil {
		return &train.FolderError{Path: folder.Path, Got: "plots or report cannot be written", Err: err,
			Hint: "make room, then add --resume: the training is done and kept"}
	}
	if err := show.end(folder.Path, sum, res); err != nil {
		return err
	}
	if res.Diverged != nil {
		return res.Diverged
	}
	return nil
}

// nextFree is the first of BASE-1, BASE-2, ... that does not exist, or that cannot be looked at:
// opening it will say why.
func nextFree(dir, base string) string {
	for i := 1; ; i++ {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d", base, i))
		if _, err := os.Lstat(path); err != nil {
			return path
		}
	}
}

// latestUnfinished finds the run folder without a summary whose configuration is the youngest.
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

// printJSON writes v as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
