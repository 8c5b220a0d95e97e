package train

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"fspda/device"
	"fspda/train/runfolder"
)

// slow is a model whose scores hang, where asked to, until the run is told to stop: as those of a
// large test set take long.
type slow struct {
	normed
	hang    atomic.Bool
	hung    func()          // called when the first score hangs
	stopped <-chan struct{} // closed when the run has heard that it is to stop
}

func (m *slow) ScoreWith(x, buffers device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	if m.hang.CompareAndSwap(true, false) {
		m.hung()
		<-m.stopped
	}
	return m.normed.ScoreWith(x, buffers, b)
}

// A run that is stopped in the midst of an evaluation gives it up and leaves the checkpoint of its
// iteration. Resumed, it ends with the rows, models and batch norm of a run that was never stopped:
// in the middle and in the last evaluation, also with an algorithm that keeps memory for its edges.
func TestStopInAnEvaluation(t *testing.T) {
	c := withNorm()
	c.Iterations, c.EvalPoints, c.Threads = 24, 3, 1 // models are scored one after the other
	relay := c
	relay.Algo, relay.Graph, relay.Mask, relay.Density = "relaysgd", "path", "auto", Default().Density
	gossip := relay
	gossip.Algo = "powergossip"
	for _, c := range []Config{c, relay, gossip} {
		plain := newNormed(c.WeightDecay)
		_, want := playNormed(t, c, plain, Options{})
		for _, at := range []int{8, 24} {
			stopInEvaluation(t, c, plain, at, want)
		}
	}
}

// stopInEvaluation stops a run of 24 iterations in the evaluation of an iteration, resumes it, and
// compares it with want.
func stopInEvaluation(t *testing.T, c Config, plain normed, at int, want *Result) {
	t.Helper()
	dir := runFolder(t)
	ctx, stop := context.WithCancel(context.Background())
	heard := make(chan struct{})
	m := &slow{normed: plain, hung: stop, stopped: heard}
	rows := 0
	opt := Options{grace: -1, Log: hearing(func() { close(heard) }), OnRow: func(r Row) {
		rows++
		m.hang.Store(r.Iteration == at-8)
	}}
	first := runIn(t, ctx, c, dir, m, opt)
	stop()
	if first.Status != Stopped || first.Iteration != at || rows != at/8 || runfolder.LatestIteration(dir) != at {
		t.Fatalf("%s, at %d: status %s at iteration %d after %d rows, checkpoint %d", c.Algo, at, first.Status,
			first.Iteration, rows, runfolder.LatestIteration(dir))
	}
	got := runIn(t, context.Background(), c, dir, m, Options{})
	if got.Status != Finished || got.First != at || trace(t, got) != trace(t, want) ||
		!slices.Equal(got.MeanBuffers, want.MeanBuffers) {
		t.Errorf("%s, at %d: the resumed run differs (status %s, from %d)", c.Algo, at, got.Status, got.First)
	}
	saved, err := OpenSaved(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, b, err := saved.Mean(plain.Describe().Buffers); err != nil || !slices.Equal(b, want.MeanBuffers) {
		t.Errorf("%s, at %d: the batch norm of the mean model in the checkpoint differs, %v", c.Algo, at, err)
	}
	if err := saved.Close(); err != nil {
		t.Error(err)
	}
}

// runIn starts or resumes a run with a model in a folder.
func runIn(t *testing.T, ctx context.Context, c Config, dir string, m Model, opt Options) *Result {
	t.Helper()
	s, err := c.Resolve(labSet, m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReadConfig(dir)
	if opt.Folder, err = OpenFolder(dir, s, err == nil); err != nil {
		t.Fatal(err)
	}
	opt.Device, opt.Model = cpuDevice, m
	r, err := Run(ctx, s, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A checkpoint that is asked for while another is being written comes when that is done: neither
// lost nor in its way.
func TestCheckpointAskedWhileUnderWay(t *testing.T) {
	c, dir := small(), runFolder(t)
	c.Iterations, c.EvalPoints, c.Keep = 100000, 1, 100
	s, m := resolve(t, c)
	f, err := OpenFolder(dir, s, false)
	if err != nil {
		t.Fatal(err)
	}
	d := &gated{Disk: runfolder.OSDisk{}, open: make(chan struct{})}
	f.Disk = d
	ctl, w := NewControl(), NewLiveState(c.Agents)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() {
		_, err := Run(ctx, s, Options{Device: cpuDevice, Model: m, Folder: f, NoReport: true, Control: ctl, Live: w})
		ended <- err
	}()
	until(t, "the run moves", func() bool { return w.Agents(nil)[0].Iteration > 3 })
	ctl.Checkpoint()
	until(t, "the first is being written", d.begun.Load)
	ctl.Checkpoint()
	at := w.Agents(nil)[0].Iteration
	until(t, "the agents go on", func() bool { return w.Agents(nil)[0].Iteration > at+200 })
	close(d.open)
	until(t, "both are there", func() bool {
		names, err := checkpointsOf(dir)
		return err == nil && len(names) == 2
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
