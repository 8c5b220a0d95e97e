package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"fspda/cpu"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/model"
	"fspda/train"
)

// selftestFlags are those of fspda selftest.
type selftestFlags struct {
	device, precision string
}

func newSelftest() *cobra.Command {
	f := selftestFlags{}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Check that a device computes what it should, on this machine",
		Long: `Check that a device computes what it should, on this machine: every operation on vectors to the last bit, every kernel within the bounds
of its roundings, networks and short trainings against the CPU engine, and that a training repeats to the last bit. It needs no files. Anything
that is wrong is told, and the exit status is 1.`,
		Example: "  fspda selftest --device cuda\n  fspda selftest --device cpu",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&f.device, "device", "auto", "auto, cpu, cuda, or cuda:N for GPU N")
	cmd.Flags().StringVar(&f.precision, "precision", "fp32", "of networks on a GPU: fp32, tf32, fp16 or bf16; kernels are held to the bounds of fp32 only with fp32")
	return cmd
}

// run makes all checks, also after one that fails.
func (f selftestFlags) run(ctx context.Context, w io.Writer) error {
	c := train.Default()
	c.Device, c.Precision, c.Repeats = f.device, f.precision, true
	c.DataTrain, c.DataTest, c.Hidden, c.Iterations, c.EvalPoints, c.Checkpoint = 1000, 200, train.Widths{32}, 200, 1, 0
	if err := c.Check(); err != nil {
		return err
	}
	dev, err := openEngine(c, 1)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Fprintf(w, "device      %s\n", dev)
	t := &selftest{ctx: ctx, dev: dev.Device, config: c, exact: f.precision == "fp32"}
	var failed []string
	for _, check := range []struct {
		name string
		run  func() error
	}{{"contract", t.contract}, {"mlp", t.mlp}, {"resnet18", t.resnet}, {"training", t.training}} {
		begin := time.Now()
		err := check.run()
		if errors.Is(err, context.Canceled) {
			return errStopped
		}
		verdict := "ok"
		if errors.Is(err, errInexact) {
			verdict = "left out: " + err.Error()
		} else if err != nil {
			verdict = "FAILED: " + err.Error()
			failed = append(failed, check.name)
		}
		fmt.Fprintf(w, "%-11s %s (%.1f s)\n", check.name, verdict, time.Since(begin).Seconds())
	}
	if failed != nil {
		return fmt.Errorf("selftest: %v failed on %s", failed, dev)
	}
	return nil
}

// selftest checks one device.
type selftest struct {
	ctx    context.Context
	dev    device.Device
	config train.Config
	exact  bool // networks are computed in float32
}

// contract is the test that every device passes.
func (t *selftest) contract() error {
	if !t.exact {
		return errInexact
	}
	var errs []error
	for _, c := range devicetest.Checks() {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		r := &reporter{name: c.Name}
		c.Run(r, t.dev)
		errs = append(errs, r.errs...)
	}
	if n := len(errs); n > mostErrors {
		errs = append(errs[:mostErrors:mostErrors], fmt.Errorf("and %d more", n-mostErrors))
	}
	return errors.Join(errs...)
}

// errInexact leaves out what has no bounds but those of float32.
var errInexact = errors.New("it holds kernels to the bounds of fp32")

// mostErrors is how many lines of what is wrong are worth reading.
const mostErrors = 20

// reporter collects what a check reports. The rest of a testing.TB, which checks do not use, it has not.
type reporter struct {
	testing.TB
	name string
	errs []error
}

func (r *reporter) Helper() {}

func (r *reporter) Errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(r.name+": "+format, args...))
}

// bound is how far a gradient may be from the CPU's, against its length.
func (t *selftest) bound(exact float64) float64 {
	if t.exact {
		return exact
	}
	return max(0.02, exact) // ten bits of each factor
}

func (t *selftest) mlp() error { return t.network("mlp", []int{28, 28, 1}, 10, 64, t.bound(1e-5)) }

// A batch norm of few pixels magnifies roundings, layer by layer.
func (t *selftest) resnet() error {
	return t.network("resnet18", []int{64, 64, 3}, 10, 8, t.bound(1e-3))
}

// network compares a gradient and a loss with the CPU's, and with themselves.
func (t *selftest) network(name string, shape []int, classes, batch int, bound float64) error {
	c := t.config
	c.Model = name
	if name != "mlp" {
		c.Hidden = train.Default().Hidden
	}
	net, err := openModel(c, shape, classes)
	if err != nil {
		return err
	}
	b := device.Batch{X: noise(batch * net.Inputs()), Y: make([]int32, batch)}
	for i := range b.Y {
		b.Y[i] = int32(i % classes)
	}
	want, wantLoss, err := gradientOn(net, cpu.New(), b)
	if err != nil {
		return err
	}
	got, loss, err := gradientOn(net, t.dev, b)
	if err != nil {
		return err
	}
	again, _, err := gradientOn(net, t.dev, b)
	if err != nil {
		return err
	}
	if far := distance(got, want); !(far <= bound) || !(math.Abs(loss-wantLoss) <= bound*math.Abs(wantLoss)) {
		return fmt.Errorf("the gradient differs from the CPU's by %.2g of its length, the loss is %v and the CPU's %v: want %.2g at most", far, loss, wantLoss, bound)
	}
	if !slices.Equal(got, again) {
		return errors.New("a second gradient has other bits than the first")
	}
	return nil
}

// gradientOn is the gradient at the network's start. It is taken three times, for a device may send later ones in another way.
func gradientOn(net *model.Network, dev device.Device, b device.Batch) (grad []float32, loss float64, err error) {
	m := model.NewEngine(net, dev)
	x, g := dev.NewVector(net.Dim()), dev.NewVector(net.Dim())
	dev.Write(x, net.Init(1))
	for range 3 {
		if loss, err = m.Grad(g, x, b); err != nil {
			return nil, 0, err
		}
	}
	grad = make([]float32, net.Dim())
	dev.Read(grad, g)
	return grad, loss, nil
}

// distance is |a-b| / |b|.
func distance(a, b []float32) float64 {
	far, long := 0.0, 0.0
	for i, v := range b {
		d := float64(a[i]) - float64(v)
		far, long = far+d*d, long+float64(v)*float64(v)
	}
	return math.Sqrt(far / long)
}

// training plays a short main job twice, which must repeat, and once on the CPU, which must come out alike.
func (t *selftest) training() error {
	first, err := t.play(t.dev)
	if err != nil {
		return err
	}
	second, err := t.play(t.dev)
	if err != nil {
		return err
	}
	if !slices.Equal(first.Mean, second.Mean) {
		return errors.New("the same training came out otherwise the second time")
	}
	want, err := t.play(cpu.New())
	if err != nil {
		return err
	}
	got, ref := float64(first.Rows[len(first.Rows)-1].TrainLossAvg), float64(want.Rows[len(want.Rows)-1].TrainLossAvg)
	if bound := t.bound(1e-3); !(math.Abs(got-ref) <= bound*ref) {
		return fmt.Errorf("after %d iterations the loss is %v, on the CPU %v: want them within %.2g", t.config.Iterations, got, ref, bound)
	}
	return nil
}

func (t *selftest) play(dev device.Device) (*train.Result, error) {
	s, m, err := prepare(t.config, &engine{Device: dev})
	if err != nil {
		return nil, err
	}
	defer s.Set.Close() // read only: nothing to lose
	return train.Run(t.ctx, s, train.Options{Device: dev, Model: m})
}
