package traincmd

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/device"
	"fspda/train"
	"fspda/web"
)

// trainFlags are what is said of a run besides its Config.
type trainFlags struct {
	file        string
	out         string
	resume      bool
	quiet, json bool
	web         string // address of the live page; empty for none
	dry         bool
}

// config returns the configuration that the flags describe.
func (f *trainFlags) config(fs *pflag.FlagSet) (train.Config, error) {
	resumed := ""
	if f.resume {
		resumed = f.out
	}
	return setup.ReadConfig(f.file, resumed, fs)
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
		Args: command.NoArgs,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	said := train.Default()
	setup.ConfigFlags(fs, &said)
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

// runTrain is the command: configuration, data, network, run, report.
func runTrain(ctx context.Context, f trainFlags, fs *pflag.FlagSet, stdout, stderr io.Writer) error {
	if f.resume && f.out == "" {
		out, err := latestUnfinished(command.RunsDir)
		if err != nil {
			return err
		}
		f.out = out
	}
	c, err := f.config(fs)
	if err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if c.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Threads))
	}
	dev, err := setup.OpenDevices(c, setup.AgentThreads(c), c.Agents)
	if err != nil {
		return err
	}
	defer dev.Close()
	s, m, err := setup.Prepare(c, dev)
	if err != nil {
		return err
	}
	if f.dry {
		return dryRun(ctx, f, s, m, dev, stdout)
	}
	if f.out == "" {
		f.out = command.NextFreeName(command.RunsDir, s.Config.Algo+"-"+s.Config.Data)
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
	others := dev.Workers(m)
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

// conclude writes what a run leaves behind and says how it ended.
func conclude(f trainFlags, s *train.Setup, folder *train.Folder, res *train.Result, dev device.Device,
	show *show) error {
	if res.Status == train.Stopped {
		show.stopped(folder.Path, res)
		return command.ErrStopped
	}
	sum := train.Summarize(s, res, dev.Name(), command.Version())
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
