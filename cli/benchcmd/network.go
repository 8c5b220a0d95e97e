package benchcmd

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench/measure"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/cpu"
	"fspda/cuda"
	"fspda/data"
	"fspda/data/text"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

type networkFlags struct {
	model, recompute              string
	device, precision, optimizer  string
	size, classes, batch, threads int
	each                          time.Duration
}

func newBenchNetwork() *cobra.Command {
	f := networkFlags{}
	cmd := &cobra.Command{
		Use:   "network",
		Short: "Time, memory and kernels of the gradient of a network over random images",
		Long: `Time and memory of the gradient of a network over random images or tokens. On the CPU: by kernels,
against a matrix product measured in between, and of a language model also a step of training. On a GPU: by its own
clock, against the time of moving the bytes at the rate of a copy in the same run, if every operand of every kernel is
moved once.`,
		Example: "  fspda bench network --batch 8\n  fspda bench network --device cuda --batch 128 --size 256 " +
			"--precision bf16",
	}
	fs := cmd.Flags()
	fs.StringVar(&f.model, "model", "resnet50", "network, as in train")
	fs.IntVar(&f.size, "size", 224, "height and width of the images, of three channels")
	fs.IntVar(&f.classes, "classes", 0, "number of classes, or of tokens; 0 is 1000, or 65")
	fs.IntVar(&f.batch, "batch", 8, "images of a gradient, or windows")
	fs.StringVar(&f.recompute, "recompute", "none", "none or blocks, as in train")
	fs.StringVar(&f.device, "device", "cpu", "cpu, cuda, cuda:N or auto, as in train")
	fs.StringVar(&f.precision, "precision", "fp32", "as in train")
	fs.StringVar(&f.optimizer, "optimizer", "auto", "of the step of a language model, as in train")
	fs.IntVar(&f.threads, "threads", 0, "cores to use; 0 is all")
	fs.DurationVar(&f.each, "time", 10*time.Second, "how long to measure")
	return command.Report(cmd, func(ctx context.Context) (fmt.Stringer, error) { return f.run(ctx) })
}

func (f networkFlags) run(ctx context.Context) (r fmt.Stringer, err error) {
	c := train.Default()
	c.Model, c.Recompute, c.Device, c.Precision, c.Optimizer = f.model, f.recompute, f.device, f.precision, f.optimizer
	for _, n := range []struct {
		key        string
		got, least int
	}{{"size", f.size, 1}, {"classes", f.classes, 0}, {"batch", f.batch, 1}, {"threads", f.threads, 0}} {
		if n.got < n.least {
			return r, config.Invalid(n.key, n.got, "expected at least %d", n.least)
		}
	}
	if err := c.Check(); err != nil {
		return r, err
	}
	shape, classes := []int{f.size, f.size, 3}, 1000
	if model.IsTransformer(f.model) {
		c.Hidden, c.WeightDecay, shape, classes = nil, 0, nil, 65
	}
	net, err := setup.OpenModel(c, shape, cmp.Or(f.classes, classes))
	if err != nil {
		return r, err
	}
	plan, err := net.Plan(f.batch, model.Train)
	if err != nil {
		return r, &train.ConfigError{Key: "batch", Got: fmt.Sprint(f.batch), Err: err}
	}
	f.threads = cmp.Or(f.threads, runtime.GOMAXPROCS(0))
	e, err := setup.OpenDevice(c, f.threads)
	if err != nil {
		return r, err
	}
	defer e.Close()
	code := plan.Code()
	if card := cardOf(e.Device, f.precision); card != nil {
		return measure.CardNetwork(ctx, measure.CardNetworkOptions{Card: *card, Code: code, Forecast: e.Footprint(code),
			Each: f.each, Load: card.Gradient(code, net.Init(1), net.Classes())})
	}
	dev := e.Device.(*cpu.Device) // every device that is not a GPU
	o := measure.NetworkOptions{Code: code, Threads: f.threads, Forecast: dev.Footprint(code),
		Each: f.each, Load: gradientOf(net, dev, code), Product: productOf(dev), Train: measure.NoTraining}
	if net.Tokens() {
		if o.Train, err = trainingOf(net, f, e); err != nil {
			return r, err
		}
	}
	return measure.Network(ctx, o)
}

// trainingOf returns a function that trains a language model on random tokens, with its default
// settings, and calls atStep before each step, until that returns false.
func trainingOf(net *model.Network, f networkFlags, e *setup.Devices) (
	func(ctx context.Context, atStep func() (more bool)) error, error) {
	c := train.Default()
	c.Model, c.Optimizer = f.model, f.optimizer
	if c = stepDefaults(c.Defaults()); f.optimizer != "auto" {
		c.Optimizer = f.optimizer
	}
	c.Algo, c.Agents, c.Batch, c.Threads, c.Recompute = "sgd", 1, f.batch, f.threads, f.recompute
	tokens := make([]uint16, 10*net.Inputs()+1) // few: an evaluation runs beside the first steps
	stream := rng.New(1, "bench tokens")
	for i := range tokens {
		tokens[i] = uint16(stream.IntN(net.Classes()))
	}
	few := tokens[:net.Inputs()+1]
	set, err := data.FromText("random tokens", &text.Corpus{Vocabulary: net.Classes(), Train: tokens, Val: few},
		net.Inputs())
	if err != nil {
		return nil, err
	}
	s, m, err := setup.Resolve(c, set, e)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, atStep func() bool) error {
		running, stop := context.WithCancel(ctx)
		defer stop()
		_, err := train.Run(running, s, train.Options{Device: e.Device, Model: m, OnStep: func(int) {
			if running.Err() == nil && !atStep() {
				stop()
			}
		}})
		return err
	}, nil
}

// cardOf returns a GPU with the functions that benchmarks need of it, or nil for another device.
func cardOf(dev device.Device, precision string) *measure.Card {
	gpu, ok := dev.(*cuda.Device)
	if !ok {
		return nil
	}
	bare := gpu.Raw()
	c := &measure.Card{What: gpu.Properties().Name, Device: gpu, Precision: precision, Time: bare.Time,
		Copy: bare.CopyRate, Element: 4}
	if precision == "fp16" || precision == "bf16" {
		c.Element = 2
	}
	return c
}

// productOf returns a product of two matrices of measure.ProductSide rows and columns.
func productOf(dev *cpu.Device) func() error {
	const n = measure.ProductSide
	at := func(s device.Space, off int) []device.Ref { return []device.Ref{{Space: s, Off: off, Len: n * n}} }
	code := &device.Code{Name: "product", Batch: 1, Features: 1, Dim: 2 * n * n, Arena: n * n,
		Calls: []device.Call{{Kernel: device.Product, In: append(at(device.Params, 0), at(device.Params, n*n)...),
			Out: at(device.Arena, 0), Dims: []int{n, n, n}}}}
	x := dev.NewVector(code.Dim)
	dev.Write(x, randomValues(code.Dim))
	b := device.Batch{X: []float32{0}, Y: []int32{0}}
	var p device.Program
	return func() (err error) {
		if p == nil {
			if p, err = dev.Load(code); err != nil {
				return err
			}
		}
		return p.Run(x, nil, b, nil)
	}
}

// randomBatch returns random images, or random windows of tokens.
func randomBatch(net *model.Network, batch int) device.Batch {
	if !net.Tokens() {
		b := device.Batch{X: randomValues(batch * net.Inputs()), Y: make([]int32, batch)}
		for i := range b.Y {
			b.Y[i] = int32(i % net.Classes())
		}
		return b
	}
	t := net.Inputs()
	b := device.Batch{Tokens: make([]uint16, batch*t+1), Length: t}
	stream := rng.New(1, "bench tokens")
	for i := range b.Tokens {
		b.Tokens[i] = uint16(stream.IntN(net.Classes()))
	}
	for i := range batch {
		b.At = append(b.At, int64(i*t))
	}
	return b
}

// gradientOf loads the gradient of a newly initialized network over a random batch.
func gradientOf(net *model.Network, dev *cpu.Device, code *device.Code) func() (func() ([]time.Duration, error),
	error) {
	x, grad := dev.NewVector(net.Dim()), dev.NewVector(net.Dim())
	dev.Write(x, net.Init(1))
	b := randomBatch(net, code.Batch)
	return func() (func() ([]time.Duration, error), error) {
		p, err := dev.Load(code)
		if err != nil {
			return nil, err
		}
		loss := make([]float64, 1)
		return func() ([]time.Duration, error) { return p.(*cpu.Program).Timed(x, grad, b, loss) }, nil
	}
}
