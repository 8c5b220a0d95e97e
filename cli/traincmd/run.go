package traincmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/train"
)

// mode holds the differences between the commands that train in this process: train holds all
// agents, agent holds one.
type mode interface {
	// configure combines defaults, files, flags and environment, and checks the result.
	configure(fs *pflag.FlagSet) (train.Config, error)

	openDevices(c train.Config) (*setup.Devices, error)

	// resolve makes the network and resolves the configuration on a data set.
	resolve(c train.Config, set *data.Set, dev *setup.Devices) (*train.Setup, setup.Model, error)

	// attach opens the run folder and all that observes the run, and sets the options that depend
	// on them. The context that it returns may end earlier than ctx.
	attach(ctx context.Context, r *run) (context.Context, error)

	// conclude writes the results and reports how the run ended.
	conclude(r *run, res *train.Result) error
}

// run is one training run in this process. The caller of openRun calls close.
type run struct {
	devices *setup.Devices
	setup   *train.Setup
	model   setup.Model
	display *display
	options train.Options

	hung    chan error // receives why the agent of this process is abandoned, which hangs
	cleanup []func()   // called by close, the last one first
}

// openRun opens the inputs of a run: configuration, devices, data set, network. It writes no file.
func openRun(m mode, f *trainFlags, fs *pflag.FlagSet, stdout, stderr io.Writer) (*run, error) {
	c, err := m.configure(fs)
	if err != nil {
		return nil, err
	}
	r := &run{hung: make(chan error, 1)}
	if err := r.open(m, c); err != nil {
		r.close()
		return nil, err
	}
	r.display = newDisplay(f, r.setup, r.model.Name(), r.devices.String(), stdout, stderr)
	r.onClose(func() { r.display.close(false) })
	r.setup.Set.OnSkip(func(err error) { r.display.log.Warn("skipped an image: " + err.Error()) })
	r.options = train.Options{Device: r.devices.Device, Model: r.model, OnRow: r.display.row, OnStep: r.display.step,
		Version: command.Version()}
	return r, nil
}

func (r *run) open(m mode, c train.Config) (err error) {
	if c.Threads > 0 {
		before := runtime.GOMAXPROCS(c.Threads)
		r.onClose(func() { runtime.GOMAXPROCS(before) })
	}
	if r.devices, err = m.openDevices(c); err != nil {
		return err
	}
	r.onClose(func() { _ = r.devices.Close() })
	set, err := setup.OpenData(c)
	if err != nil {
		return err
	}
	r.onClose(func() { _ = set.Close() }) // read only: nothing to lose
	r.setup, r.model, err = m.resolve(c, set, r.devices)
	return err
}

// train runs the training. It returns early if the agent of this process hangs: then nothing is
// closed, since its computation may still use it, and the process should end.
func (r *run) train(ctx context.Context, m mode) error {
	ctx, err := m.attach(ctx, r)
	if err != nil {
		return err
	}
	r.options.Log = r.display.log
	var res *train.Result
	ended := make(chan error, 1)
	go func() {
		var err error
		res, err = train.Run(ctx, r.setup, r.options)
		ended <- err
	}()
	select {
	case err = <-ended:
	case err := <-r.hung:
		r.cleanup = nil
		return fmt.Errorf("%w; %w", err, errHung)
	}
	r.display.close(err == nil && res.Status != train.Stopped)
	if err != nil {
		return err
	}
	return m.conclude(r, res)
}

var errHung = errors.New("the agent of this process does not end its computation, so that the process ends")

func (r *run) observe(m metrics) {
	show := r.options.OnRow
	r.options.OnRow = func(row train.Row) {
		m.row(row)
		show(row)
	}
}

// announce logs the warnings of the configuration and a description of the run that is about to
// start.
func (r *run) announce(folder string) {
	for _, w := range r.setup.Warnings {
		r.display.log.Warn(w)
	}
	r.display.begin(folder)
}

func (r *run) onClose(f func()) { r.cleanup = append(r.cleanup, f) }

func (r *run) close() {
	for _, f := range slices.Backward(r.cleanup) {
		f()
	}
}
