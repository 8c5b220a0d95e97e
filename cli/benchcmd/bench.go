package benchcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench/measure"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/cpu"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

func newBench() *cobra.Command {
	return command.Group("bench", "Measure this machine and this program", newBenchStep(), newBenchKernels(),
		newBenchNetwork(), newBenchLoad(),
		newBenchScale(), newBenchExchange(), newBenchCard())
}

func newBenchStep() *cobra.Command {
	c := stepDefaults(train.Default())
	var each time.Duration
	cmd := &cobra.Command{
		Use:   "step",
		Short: "Time of an agent's step on one core, or of an iteration on a GPU, in its parts",
		Long: `Time of an agent's step on one core, in its parts, against this machine's matrix product in the same run.
On a GPU (--device cuda) time of an iteration of all agents, with what of it the GPU waits for its host.

With --algo all, on the CPU: a line per algorithm, compared with the first one.`,
	}
	setup.ConfigFlags(cmd.Flags(), &c)
	cmd.Flags().DurationVar(&each, "time", 3*time.Second, "how long to measure each thing")
	return command.Report(cmd, func(ctx context.Context) (fmt.Stringer, error) {
		c, err := setup.ReadConfig("", "", cmd.Flags())
		if err != nil {
			return nil, err
		}
		if c, err = setup.WithFlags(stepDefaults(c), cmd.Flags()); err != nil {
			return nil, err
		}
		c.TakeExplicit()
		return measureSteps(ctx, c, each)
	})
}

// stepDefaults replaces settings of a run by the settings of a measurement.
func stepDefaults(c train.Config) train.Config {
	if !model.IsTransformer(c.Model) {
		c.Batch, c.DataTrain, c.DataTest = 256, 10000, 100
	}
	c.EvalPoints, c.Iterations, c.Checkpoint, c.SampleTokens = 1, 1e9, 0, 0
	c.Alpha = 0.01 // no algorithm diverges at this alpha, even with momentum
	return c
}

// measureSteps measures the algorithm that c names, or all of them.
func measureSteps(ctx context.Context, c train.Config, each time.Duration) (fmt.Stringer, error) {
	c.FoldNames()
	if c.Algo != "all" {
		o, dev, err := stepOptions(c, each)
		if err != nil {
			return nil, err
		}
		made, err := measureStep(ctx, o)
		return made, errors.Join(err, dev.Close())
	}
	var options []measure.StepOptions
	for _, name := range train.Algorithms() {
		c.Algo = name
		o, dev, err := stepOptions(c, each)
		if err != nil {
			return nil, err
		}
		defer dev.Close()
		if cardOf(o.Device, c.Precision) != nil {
			return nil, &train.ConfigError{Key: "algo", Got: "all",
				Want: "expected one algorithm on a GPU; --device cpu compares all"}
		}
		o.Products = nil // one limit for all algorithms
		options = append(options, o)
	}
	return measure.Steps(ctx, options)
}

// measureStep measures on one core, or on a GPU.
func measureStep(ctx context.Context, o measure.StepOptions) (fmt.Stringer, error) {
	c := o.Setup.Config
	card := cardOf(o.Device, c.Precision)
	if card == nil {
		return measure.Step(ctx, o)
	}
	m := o.Model.(*model.Engine) // made by setup.Prepare
	plan, err := m.Plan(c.Batch, model.Train)
	if err != nil {
		return nil, err
	}
	return measure.CardStep(ctx, measure.CardStepOptions{Card: *card, StepOptions: o, Load: card.Gradient(plan.Code(),
		m.Init(1), m.Classes())})
}

// stepOptions opens the device, which the caller closes, and prepares the measurement on it.
func stepOptions(c train.Config, each time.Duration) (o measure.StepOptions, dev *setup.Devices, err error) {
	if err := c.Check(); err != nil {
		return o, nil, err
	}
	if dev, err = setup.OpenDevice(c, 1); err != nil {
		return o, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dev.Close())
		}
	}()
	s, m, err := setup.Prepare(c, dev)
	if err != nil {
		return o, dev, err
	}
	net, ok := m.(*model.Engine)
	if !ok {
		return o, dev, config.Invalid("model", c.Model, "another program computes it: choose a network of this one")
	}
	code, err := net.Plan(c.Batch, model.Train)
	if err != nil {
		return o, dev, err
	}
	return measure.StepOptions{Setup: s, Device: dev.Device, Model: m, FLOPs: code.Code().FLOPs,
		Products: func() (func(), float64) { return products(code.Code()) }, Each: each}, dev, nil
}

// products returns a function that computes the matrix products of a plan, other than those inside
// of attention, on random factors, and their floating-point operations.
func products(c *device.Code) (run func(), flops float64) {
	var all []func()
	add := func(transA, transB bool, m, n, k int) {
		a, b, c := randomValues(m*k), randomValues(k*n), make([]float32, m*n)
		lda, ldb := k, n
		if transA {
			lda = m
		}
		if transB {
			ldb = k
		}
		all = append(all, func() { cpu.Gemm(transA, transB, m, n, k, 1, a, lda, b, ldb, 0, c, n) })
		flops += 2 * float64(m) * float64(n) * float64(k)
	}
	for _, call := range c.Calls {
		d := call.Dims
		switch call.Kernel {
		case device.Linear, device.LinearSigmoid, device.LinearReLU, device.Product, device.LinearGELUTanh,
			device.LinearGELUErf, device.ProductGELUTanh, device.ProductGELUErf:
			add(false, true, d[0], d[1], d[2])
		case device.LinearGradX, device.LinearGradXSigmoid, device.LinearGradXReLU, device.LinearGradXGELUTanh,
			device.LinearGradXGELUErf:
			add(false, false, d[0], d[2], d[1])
		case device.LinearGradW, device.LinearGradWDecay, device.ProductGradW:
			add(true, false, d[1], d[2], d[0])
		case device.Conv, device.ConvGradX, device.ConvGradW:
			pixels, outputs, window := convProduct(d)
			add(false, true, pixels, outputs, window)
		}
	}
	return func() {
		for _, product := range all {
			product()
		}
	}, flops
}

// convProduct returns the dimensions of the matrix product with as many operations as a convolution
// of dimensions n h w c k r s stride pad, or as one of its gradients: pixels of the output, its
// channels, and the inputs of each output.
func convProduct(d []int) (pixels, outputs, window int) {
	s := devicetest.ConvShape{N: d[0], H: d[1], W: d[2], C: d[3], K: d[4], R: d[5], S: d[6], Stride: d[7], Pad: d[8]}
	p, q := s.Out()
	return s.N * p * q, s.K, s.R * s.S * s.C
}

// randomValues returns numbers uniform in [-1,1): a processor may compute with zeros faster.
func randomValues(n int) []float32 {
	s, v := rng.New(0, "bench step"), make([]float32, n)
	for i := range v {
		v[i] = 2*s.Float32() - 1
	}
	return v
}
