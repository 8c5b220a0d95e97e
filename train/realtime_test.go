package train

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/dist"
	"fspda/internal/testing/disttest"
	"fspda/train/config"
)

// realTimeConfig is a small run in real time.
func realTimeConfig() Config {
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Algo = 4, 120, 4, "fspda-async"
	c.Clock, c.GradientTime = config.ClockReal, 0.004
	return c
}

// checkRealTimeEnd checks the end of a run in real time: all rows, duals that sum to zero, and a
// better model.
func checkRealTimeEnd(t *testing.T, r *Result, c Config) {
	t.Helper()
	if r.Status != Finished || len(r.Rows) != c.EvalPoints+1 {
		t.Fatalf("%s after %d rows, want finished after %d", r.Status, len(r.Rows), c.EvalPoints+1)
	}
	first, last := r.Rows[0], r.Rows[len(r.Rows)-1]
	if !(last.DualSum < 1e-4) {
		t.Errorf("the duals sum to %g", float64(last.DualSum))
	}
	if !(last.TrainLossAvg < first.TrainLossAvg) {
		t.Errorf("loss %g, it was %g", float64(last.TrainLossAvg), float64(first.TrainLossAvg))
	}
	if last.BitsSharedSeed == 0 {
		t.Error("there was no exchange")
	}
}

func TestRealTime(t *testing.T) {
	c := realTimeConfig()
	r := (&processes{t: t, c: c, name: "live"}).run(nil)
	checkRealTimeEnd(t, r, c)
}

// Values of half the bits take half the bytes, and the duals still sum to zero, since both ends
// compare the rounded values.
func TestRealTimeWire(t *testing.T) {
	c := realTimeConfig()
	bits := func(wire string) float64 {
		c.Wire = wire
		r := (&processes{t: t, c: c, name: "live-" + wire}).run(nil)
		checkRealTimeEnd(t, r, c)
		return float64(r.Rows[len(r.Rows)-1].BitsSharedSeed)
	}
	if full, half := bits("fp32"), bits("bf16"); half >= 0.75*full { // the number of exchanges is about the same
		t.Errorf("%g bits, with fp32 %g", half, full)
	}
}

// Agents that are stopped at different times resume from their own checkpoints, and the duals still
// sum to zero.
func TestRealTimeResume(t *testing.T) {
	c := realTimeConfig()
	c.Iterations, c.Checkpoint = 500, 0.002
	w := &processes{t: t, c: c, name: "live-again", dir: filepath.Join(t.TempDir(), "many")}
	var r *Result
	for try := 0; ; try++ {
		r = w.run(func(rank int) context.Context {
			ctx, cancel := context.WithCancel(context.Background())
			if try < 2 {
				time.AfterFunc(time.Duration(700+90*rank)*time.Millisecond, cancel)
			} else {
				t.Cleanup(cancel)
			}
			return ctx
		})
		if r.Status == Finished {
			break
		}
		if try > 5 {
			t.Fatal("the run does not end")
		}
	}
	checkRealTimeEnd(t, r, c)
}

// Gradients that are discarded, which are computed again with the same batch, leave no trace in the
// buffers of batch norm.
func TestRealTimeDiscardsBuffers(t *testing.T) {
	c := withNorm()
	c.Agents, c.Algo, c.Clock = 2, "fspda-async", config.ClockReal
	m := newNormed(c.WeightDecay)
	s, err := c.Resolve(labSet, m)
	if err != nil {
		t.Fatal(err)
	}
	net := struct {
		dist.Transport
		dist.SessionOpener
	}{dist.NewLocal(c.Agents), disttest.NewNetwork(c.Agents, 1, 0).Start(0)}
	r := newRun(s, Options{Device: cpuDevice, Model: m, Transport: net})
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.agents {
		defer a.gradients.loader.Close()
	}
	l := r.driver.(*realTime).agents[0]
	const steps = 3
	for range steps {
		for range 3 {
			if err := l.Gradient(t.Context(), l.state.Gradient(), l.state.X); err != nil {
				t.Fatal(err)
			}
		}
		l.Applied()
	}
	if want := walkBuffers(t, s, m, 0, steps); !slices.Equal(onHost(l.applied), want) {
		t.Errorf("the buffers are %v, want %v", onHost(l.applied), want)
	}
}

// Settings of real time are refused for other runs.
func TestRealTimeRefusals(t *testing.T) {
	for key, edit := range map[string]func(*Config){
		"clock":      func(c *Config) { c.Clock = config.ClockReal },
		"drop_after": func(c *Config) { c.DropAfter = 5 },
		"give_up":    func(c *Config) { c.GiveUp = 0 },
	} {
		c := small()
		edit(&c)
		if _, err := c.Resolve(labSet, labModel(t, c)); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	c := realTimeConfig()
	if _, err := try(t, context.Background(), c, Options{}); err == nil || !strings.Contains(err.Error(), "fspda up") {
		t.Errorf("in one process: %v", err)
	}
}
