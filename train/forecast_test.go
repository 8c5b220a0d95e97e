package train

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fspda/cpu"
	"fspda/device"
	"fspda/train/memory"
)

// The bits that are expected are those that are sent: to the bit where chance plays no part, else
// on average.
func TestExpectedBits(t *testing.T) {
	forSomeLines(t, 1, func(t *testing.T, _ line, c Config) {
		c.ReferenceBits, c.EvalPoints, c.Batch = "honest", 1, min(c.Batch, 2)
		last := play(t, c, Options{}).Rows[c.EvalPoints]
		for accounting, sent := range map[string]uint64{
			"shared-seed": last.BitsSharedSeed, "packed": last.BitsPacked, "reference": last.BitsReference,
		} {
			c.Accounting = accounting
			s, _ := resolve(t, c)
			got, want := s.ExpectedBits()*float64(c.Iterations), float64(sent)
			within := 0.02 // STORM's first message has one vector
			if s.Config.Edges != "one-edge" && s.Config.Edges != "full" && s.Config.Edges != "periodic(10)" ||
				s.Asynchronous() || s.BatchPerGradient() {
				within = 0.35
			}
			if !(math.Abs(got-want) <= within*want) {
				t.Errorf("%s, edges %s: %.4g bits expected, %.4g were sent", accounting, s.Config.Edges, got, want)
			}
		}
	})
}

// A forecast changes nothing and keeps nothing: the run after it is the run without.
func TestForecastLeavesNoTrace(t *testing.T) {
	for _, name := range []string{"fspda-sa", "fspda-async", "led"} {
		c := small()
		c.Algo, c.EvalPoints = name, 3
		s, m := resolve(t, c)
		f, err := ForecastRun(context.Background(), s, cpuDevice, m, 0)
		if err != nil {
			t.Fatal(err)
		}
		if f.Iterations != 60 || f.Step <= 0 || f.Row <= 0 || f.Total < 60*f.Step || f.Bits <= 0 || f.Memory == 0 ||
			f.ImagesPerS <= 0 {
			t.Errorf("%s: %+v", name, f)
		}
		r, err := Run(context.Background(), s, Options{Device: cpuDevice, Model: m})
		if err != nil {
			t.Fatal(err)
		}
		if trace(t, r) != trace(t, play(t, c, Options{})) {
			t.Errorf("%s: the run changed", name)
		}
		if f, err := ForecastRun(context.Background(), s, cpuDevice, m, 60); err != nil || f.Iterations != 0 ||
			f.Total != 0 || f.Bits != 0 {
			t.Errorf("%s: at the end %+v, %v", name, f, err)
		}
	}
}

// The time that is forecast is that of the run, where every example takes the same time, whether
// steps or rows take most of it. They overlap a little.
func TestForecastTime(t *testing.T) {
	for _, size := range []struct{ iterations, rows int }{{600, 1}, {60, 20}} {
		synctest.Test(t, func(t *testing.T) {
			c := small()
			c.Hidden, c.Iterations, c.EvalPoints = Widths{4}, size.iterations, size.rows
			s, m := resolve(t, c)
			slow := steady{m}
			f, err := ForecastRun(t.Context(), s, cpuDevice, slow, 0)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if _, err := Run(t.Context(), s, Options{Device: cpuDevice, Model: slow}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > f.Total*21/20 || took < f.Total*3/4 {
				t.Errorf("%+v: forecast %v (%v a step, %v a row), took %v", size, f.Total, f.Step, f.Row, took)
			}
		})
	}
}

// steady takes a millisecond for each example, and for the batch.
type steady struct{ Model }

func (s steady) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	time.Sleep(time.Duration(1+b.N()) * time.Millisecond)
	return s.Model.StartGrad(dst, x, buffers, b)
}

func (s steady) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	return s.StartGrad(dst, x, nil, b)()
}

func (s steady) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	time.Sleep(time.Duration(1+b.N()) * time.Millisecond)
	return s.Model.Score(x, b)
}

// No more than three large gradients are begun at once on a device with a memory of its own, and
// the run is the same.
func TestGate(t *testing.T) {
	c := small()
	s, m := resolve(t, c)
	want, err := Run(context.Background(), s, Options{Device: cpuDevice, Model: m})
	if err != nil {
		t.Fatal(err)
	}
	s.Programs.Gradient = memory.LargeProgram
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	d := &privateDevice{cpu.New()}
	counted := &crowd{Model: privateModel{m, d}}
	got, err := Run(context.Background(), s, Options{Device: gpuLike{d}, Model: counted})
	if err != nil {
		t.Fatal(err)
	}
	if trace(t, got) != trace(t, want) {
		t.Error("the run changed")
	}
	if most := counted.most.Load(); most < 1 || most > 3 {
		t.Errorf("%d gradients at once, want 1 to 3", most)
	}
}

// crowd counts how many training gradients of a batch are computed at once. Evaluations have chunks
// of other sizes.
type crowd struct {
	Model
	now, most atomic.Int64
}

func (c *crowd) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	if b.N() == 16 {
		if n := c.now.Add(1); n > c.most.Load() {
			c.most.Store(n)
		}
		defer c.now.Add(-1)
		runtime.Gosched()
	}
	return c.Model.StartGrad(dst, x, buffers, b)
}
