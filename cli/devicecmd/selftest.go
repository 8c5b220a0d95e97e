package devicecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/cuda"
	"fspda/device"
	"fspda/selftest"
	"fspda/train"
)

type selftestFlags struct {
	device, precision string
	which             selftest.Selection
	json              bool
}

func newSelftest() *cobra.Command {
	f := selftestFlags{}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Check the results of a device on this machine",
		Long: `Check the results of a device on this machine: every operation on vectors and every draw of a mask to the last bit,
every kernel within the bounds of its roundings, networks against the CPU engine and against differences of their own
loss, the algorithms' golden values, a short training that must repeat to the last bit, and memory that must come
back. It needs no files. The exit status is 1 if a check fails. If a check ends the work of this process on a GPU, the
message has the command that makes the checks that are left.`,
		Example: `  fspda selftest --device cuda
  fspda selftest --device cuda --precision fp16
  fspda selftest --device cpu --only algorithms,networks`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.device, "device", "auto", "auto, cpu, cuda, or cuda:N for GPU N")
	fs.StringVar(&f.precision, "precision", "fp32",
		"of networks on a GPU, as in train; kernels are held to the bounds of fp32 only with fp32")
	fs.StringVar(&f.which.Only, "only", "", "checks whose name has this part, or one of several by commas")
	fs.StringVar(&f.which.After, "after", "", "only checks after the one of this name")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

// run makes all checks, even if some fail.
func (f selftestFlags) run(cmd *cobra.Command) error {
	c := train.Default()
	c.Device, c.Precision, c.Deterministic = f.device, f.precision, true
	c.DataTrain, c.DataTest, c.Hidden, c.Iterations, c.EvalPoints, c.Checkpoint = 1000, 200, train.Widths{32}, 200, 1, 0
	if err := c.Check(); err != nil {
		return err
	}
	dev, err := setup.OpenDevice(c, 1)
	if err != nil {
		return err
	}
	defer dev.Close()
	w := cmd.OutOrStdout()
	if !f.json {
		fmt.Fprintf(w, "%s, %s\n", dev, f.precision)
	}
	r, err := selftestTarget(dev.Device, c).Run(cmd.Context(), f.which, func(r selftest.Result) {
		if !f.json {
			fmt.Fprintln(w, r)
		}
	})
	if err != nil {
		return err
	}
	if len(r.Results) == 0 {
		return command.UsageErrorf("--only %q --after %q select no check: expected a part of a check's name, and the "+
			"whole name of one; without them all names are listed", f.which.Only, f.which.After)
	}
	if f.json {
		if err := command.PrintJSON(w, r); err != nil {
			return err
		}
	}
	if r.Left > 0 {
		last := r.Results[len(r.Results)-1].Name
		return fmt.Errorf("selftest: %s does nothing any more after the check %s: %d checks are left, with --after %q",
			dev, last, r.Left, last)
	}
	if r.Failed > 0 {
		return fmt.Errorf("selftest: %d of %d checks failed on %s", r.Failed, len(r.Results), dev)
	}
	return nil
}

// selftestTarget adds to a device the functions that package selftest must not import: training,
// and access to a GPU.
func selftestTarget(dev device.Device, c train.Config) selftest.Target {
	t := selftest.Target{Device: dev, Precision: c.Precision, Train: func(ctx context.Context,
		dev device.Device) ([]float32, float64, error) {
		return trainShortly(ctx, c, dev)
	}}
	if gpu, ok := dev.(*cuda.Device); ok {
		bare := gpu.Raw()
		t.Kernels, t.Free, t.Err = bare, bare.FreeMemory, gpu.Err
		t.Again = func() (device.Device, func() error, error) {
			e, err := setup.OpenDevice(c, 1)
			if err != nil {
				return nil, nil, err
			}
			return e.Device, e.Close, nil
		}
	}
	return t
}

// trainShortly trains, and returns the mean model and the last training loss.
func trainShortly(ctx context.Context, c train.Config, dev device.Device) ([]float32, float64, error) {
	s, m, err := setup.Prepare(c, &setup.Devices{Device: dev})
	if err != nil {
		return nil, 0, err
	}
	defer s.Set.Close() // read only: nothing to lose
	r, err := train.Run(ctx, s, train.Options{Device: dev, Model: m})
	if err != nil {
		return nil, 0, err
	}
	if r.Diverged != nil {
		return nil, 0, r.Diverged
	}
	if r.Status != train.Finished {
		return nil, 0, fmt.Errorf("a training of the self-test was interrupted at iteration %d of %d",
			r.Iteration, c.Iterations)
	}
	return r.Mean, float64(r.Rows[len(r.Rows)-1].TrainLossAvg), nil
}
