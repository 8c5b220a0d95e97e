package measure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
	"fspda/train"
)

func options(t testing.TB, iterations int) StepOptions {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 300, Test: 50, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: []int{8}})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	m := model.NewEngine(net, dev)
	c := train.Default()
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations, c.EvalPoints = 3, "ring", "shuffled", 20, iterations, 1
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	return StepOptions{Setup: s, Device: dev, Model: m, FLOPs: 1e6,
		Products: func() (func(), float64) { return func() { time.Sleep(50 * time.Microsecond) }, 1e6 },
		Each:     20 * time.Millisecond}
}

// The parts make up the step, and what they are compared with was measured.
func TestStep(t *testing.T) {
	r, err := Step(context.Background(), options(t, 1e6))
	if err != nil {
		t.Fatal(err)
	}
	if r.Iterations < 1 || r.Gradient <= 0 || r.Vectors <= 0 || r.Batches < 0 || r.Rest <= 0 {
		t.Errorf("%+v", r)
	}
	if gap := r.Step - r.Gradient - r.Vectors - r.Batches - r.Rest; gap != 0 && r.Batches > 0 {
		t.Errorf("parts and whole are %v apart", gap)
	}
	if r.GEMM <= 0 || r.Rate <= 0 || r.Fraction <= 0 || r.RestShare <= 0 {
		t.Errorf("%+v", r)
	}
	if r.Cores < 1 || r.Iteration <= 0 || r.AllGEMM <= 0 || r.OverLimit <= 0 {
		t.Errorf("%+v", r)
	}
	if b := r.String(); !strings.Contains(b, "3 agents") {
		t.Errorf("%s", b)
	}
}

// A network with batch norm is measured as it trains: with its buffers, and the training step as
// gradient.
func TestStepWithBuffers(t *testing.T) {
	o := options(t, 1e6)
	net, err := model.Open("resnet20", model.Options{Shape: []int{28, 28, 1}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	m := model.NewEngine(net, o.Device)
	c := o.Setup.Config.Stored()
	c.Model, c.Agents, c.Batch, c.Alpha, c.Graph = "resnet20", 1, 2, 0.001, "complete"
	if o.Setup, err = c.Resolve(o.Setup.Set, m); err != nil {
		t.Fatal(err)
	}
	o.Model, o.Products, o.Each = m, nil, 50*time.Millisecond // longer than a step on a busy machine
	r, err := Step(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Gradient <= 0 || r.Step <= 0 { // measured one after the other: either may be the larger
		t.Errorf("%+v", r)
	}
}

// A run that is over before there is anything to measure is an error, not a number.
func TestStepTooShort(t *testing.T) {
	if r, err := Step(context.Background(), options(t, 10)); err == nil {
		t.Errorf("measured %+v", r)
	}
}

// What ends a measurement early is named.
func TestStepRefusals(t *testing.T) {
	o := options(t, 1e6)
	o.Each = 0
	var ce *train.ConfigError
	if _, err := Step(context.Background(), o); !errors.As(err, &ce) {
		t.Errorf("no time: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Step(ctx, options(t, 1e6)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	o = options(t, 1e6)
	o.Setup.Schedule.Alpha = 1e30
	var de *train.DivergedError
	if _, err := Step(context.Background(), o); !errors.As(err, &de) {
		t.Errorf("diverged: %v", err)
	}
}

// Cores that work at once reach the sum of their rates.
func TestLimit(t *testing.T) {
	made := 0
	o := StepOptions{Each: 20 * time.Millisecond, Products: func() (func(), float64) {
		made++
		return func() { time.Sleep(time.Millisecond) }, 1e6
	}}
	for cores := 1; cores < 4; cores++ {
		made = 0
		// at most 1e6 operations a millisecond each
		if got := o.limit(cores); got <= 0 || got > float64(cores) || made != cores {
			t.Errorf("%d cores: %v GFLOP/s with %d sets of factors", cores, got, made)
		}
	}
}

// The fastest stretch is long enough and not only a lucky moment.
func TestFastestStretch(t *testing.T) {
	at := []time.Duration{0, 10, 20, 21, 22, 32, 42, 52, 57, 62, 67, 77}
	for _, c := range []struct{ length, want time.Duration }{
		{1, 1}, {2, 1}, {3, 4}, {15, 5}, {16, 5}, {60, 6}, {77, 7}, {1000, 7},
	} {
		var marks []mark
		for _, at := range at {
			marks = append(marks, mark{at, 2 * at, 3 * at})
		}
		if got := fastestWindow(marks, c.length); got.at != c.want || got.gradient/2 != got.at ||
			got.vectors/3 != got.at {
			t.Errorf("stretches of %d: %d an iteration, want %d", c.length, got, c.want)
		}
	}
}

// A mark between kernels of other agents does not wait for the kernel that runs.
func TestClockIsReadWhileAKernelRuns(t *testing.T) {
	k := &clock{}
	k.timed(&k.gradient, func() { time.Sleep(time.Millisecond) })
	k.timed(&k.vectors, func() {
		if gradient, vectors := k.read(); gradient < time.Millisecond || vectors != 0 {
			t.Errorf("gradients took %v and vectors %v, want 1 ms at least and 0", gradient, vectors)
		}
	})
}
