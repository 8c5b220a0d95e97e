package cuda

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/data"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
	"fspda/train/memory"
	"fspda/train/runfolder"
)

// training is a small run.
type training struct {
	config train.Config
	set    *data.Set
	net    *model.Network
}

func newTraining(t *testing.T) training {
	t.Helper()
	set := smallDigits(t, 60, 20)
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden, c.Metrics = 60, 20, train.Widths{4}, "test"
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations, c.EvalPoints, c.Threads, c.Checkpoint = 3, "ring",
		"shuffled", 4, 30, 30, 1, 1e-3
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden})
	if err != nil {
		t.Fatal(err)
	}
	return training{c, set, net}
}

// smallDigits is data.Synthetic with every second pixel of each row and column: kernels in host
// memory then have a quarter of the work.
func smallDigits(t *testing.T, train, test int) *data.Set {
	t.Helper()
	set, err := data.Synthetic(data.SyntheticOptions{Train: train, Test: test, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	rows, columns := set.Shape[0], set.Shape[1]
	part := func(s data.Split) (e data.Examples) {
		for i := range s.Len() {
			for at := range rows * columns {
				if at/columns%2 == 0 && at%2 == 0 {
					e.Pixels = append(e.Pixels, s.Pixels[i*rows*columns+at])
				}
			}
		}
		e.Labels = s.Labels
		return e
	}
	small, err := data.New("small digits", []int{rows / 2, columns / 2}, set.Classes, set.Mean[0], set.Std[0],
		part(set.Train), part(set.Test))
	if err != nil {
		t.Fatal(err)
	}
	return small
}

// run trains in a folder, from the start or from the last checkpoint. onStep may be nil.
func (r training) run(t *testing.T, d device.Device, dir string, onStep func(int)) (*train.Result, error) {
	t.Helper()
	m := model.NewEngine(r.net, d)
	s, err := r.config.Resolve(r.set, m)
	if err != nil {
		t.Fatal(err)
	}
	_, err = train.ReadConfig(dir)
	folder, err := train.OpenFolder(dir, s, err == nil)
	if err != nil {
		t.Fatal(err)
	}
	return train.Run(context.Background(), s,
		train.Options{Device: d, Model: m, Folder: folder, NoReport: true, OnStep: onStep})
}

// openFaulty opens a fake GPU that the test breaks.
func openFaulty(t *testing.T, o fakegpu.Options) (*Device, *fakegpu.Machine) {
	t.Helper()
	m, p := fakeBackend(t, o)
	d, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // a lost GPU need not close
	return d, m
}

// A GPU that is lost in the middle of a run ends it with an error that says so; the last checkpoint
// stays, and the CPU goes on from there.
func TestGPUVanishes(t *testing.T) {
	r, dir := newTraining(t), filepath.Join(t.TempDir(), "run")
	r.config.Iterations = 600
	d, m := openFaulty(t, fakegpu.Options{})
	_, err := r.run(t, d, dir, func(at int) {
		switch {
		case at < 6:
		case runfolder.LatestIteration(dir) > 0:
			m.Lose(driver.LaunchFailed)
		default: // a checkpoint is due; it is written beside the iterations
			time.Sleep(10 * time.Millisecond)
		}
	})
	if !driver.Lost(err) || !strings.Contains(err.Error(), "a kernel failed") {
		t.Errorf("the run ends with %v", err)
	}
	res, err := r.run(t, cpu.New(), dir, nil)
	if err != nil || res.Status != train.Finished || res.First == 0 {
		t.Errorf("on the CPU: %+v, %v", res, err)
	}
}

// Whichever allocation fails, from the first vector to the last graph, the run ends with an error
// that says how much memory is lacking and gives advice.
func TestRunOutOfMemory(t *testing.T) {
	r := newTraining(t)
	r.config.Iterations, r.config.EvalPoints = 3, 1
	failed, finished := 0, 0
	for after := 0; finished == 0; after += 5 {
		d, m := openFaulty(t, fakegpu.Options{})
		m.FailFrom("MemAlloc", after, driver.OutOfMemory)
		res, err := r.run(t, d, filepath.Join(t.TempDir(), "run"), nil)
		if err == nil && res.Status == train.Finished {
			finished++
			continue
		}
		failed++
		if !driver.IsOutOfMemory(err) {
			t.Fatalf("allocation %d fails: %v", after, err)
		}
		for _, want := range []string{"taking", "in use", "free", "batches of", "recompute", "fewer agents"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("allocation %d fails: %q does not say %q", after, err, want)
			}
		}
	}
	if failed < 5 {
		t.Errorf("%d runs failed, want one for most allocations", failed)
	}
}

// A run that does not fit a GPU is refused with advice; one that fits takes no more than its
// forecast and not much less.
func TestMemoryCheck(t *testing.T) {
	r := newTraining(t)
	r.config.Agents, r.config.Batch = 3, 8
	for _, size := range []uintptr{1 << 30, blasWorkspace + executor.MediumBytes + 1<<16} {
		d, m := openFaulty(t, fakegpu.Options{Memory: size})
		engine := model.NewEngine(r.net, d)
		s, err := r.config.Resolve(r.set, engine)
		if err != nil {
			t.Fatal(err)
		}
		err = memory.Check(s, d)
		if size < 1<<30 {
			var ce *train.ConfigError
			if !errors.As(err, &ce) || ce.Key != "device" || !strings.Contains(err.Error(), "agents") {
				t.Errorf("a small GPU: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		forecasts, err := memory.Devices(s, d)
		if err != nil {
			t.Fatal(err)
		}
		before := m.Used()
		if _, err := r.run(t, d, filepath.Join(t.TempDir(), "run"), nil); err != nil {
			t.Fatal(err)
		}
		need := forecasts[0].Need
		for _, p := range forecasts[0].Parts {
			if strings.Contains(p.What, "libraries") { // a fake driver takes no memory
				need -= p.Bytes
			}
		}
		if took := uint64(m.Used() - before); took > need+1<<20 || took < need/4 {
			t.Errorf("the run took %d bytes of the GPU, the forecast is %d", took, need)
		}
	}
}
