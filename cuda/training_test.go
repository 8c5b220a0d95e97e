package cuda

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fspda/data"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// A training in fp16 whose gradients sometimes exceed fp16 counts these, keeps the sum of the duals
// at zero, and has the same bits when it is stopped and resumed, loss scales included. Whether
// gradients are waited for changes no bit.
func TestTrainHalf(t *testing.T) {
	c := train.Default()
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations, c.EvalPoints, c.Alpha, c.Precision = 2, "complete",
		"shuffled", 1, 60, 3, 3, "fp16"
	c.DataTrain, c.DataTest, c.Checkpoint, c.Metrics = 60, 20, 0, "test"
	set, err := data.Synthetic(data.SyntheticOptions{Train: 60, Test: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: []int{5}})
	if err != nil {
		t.Fatal(err)
	}
	options := []Option{WithPrecision(FP16)}
	if os.Getenv("FSPDA_LONG") == "" {
		options = append(options, withoutGroups) // tensor cores in host memory are slow
	}
	run := func(dir string, stopAt int, resume bool) *train.Result {
		d, _ := openFake(t, fakegpu.Options{}, false, options...)
		engine := model.NewEngine(net, d)
		setup, err := c.Resolve(set, engine)
		if err != nil {
			t.Fatal(err)
		}
		folder, err := train.OpenFolder(dir, setup, resume)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		o := train.Options{Device: d, Model: engine, Folder: folder, NoReport: true}
		o.OnStep = func(i int) {
			if i == stopAt {
				stop()
			}
		}
		res, err := train.Run(ctx, setup, o)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	complete := run(filepath.Join(t.TempDir(), "whole"), -1, false)
	last := complete.Rows[len(complete.Rows)-1]
	if complete.Status != train.Finished || last.Skipped == 0 || last.LossScale <= 0 || last.LossScale > firstScale ||
		!(last.DualSum <= 1e-4) {
		t.Errorf("%s with %d gradients skipped, loss scale %v, sum of duals %v", complete.Status, last.Skipped,
			last.LossScale, last.DualSum)
	}
	c.ClipNorm = 1e30 // waits for every gradient, and clips none
	if waiting := run(filepath.Join(t.TempDir(), "patient"), -1, false); !slices.Equal(waiting.Mean, complete.Mean) ||
		waiting.Rows[len(waiting.Rows)-1].Skipped != last.Skipped {
		t.Errorf("waiting for gradients changes the model, or skips %v of them, want %v",
			waiting.Rows[len(waiting.Rows)-1].Skipped, last.Skipped)
	}
	c.ClipNorm = 0
	dir := filepath.Join(t.TempDir(), "part")
	if first := run(dir, 35, false); first.Status == train.Finished {
		t.Fatal("the run did not stop")
	}
	rest := run(dir, -1, true)
	again := rest.Rows[len(rest.Rows)-1]
	again.WallS = last.WallS
	same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }
	if !slices.EqualFunc(again.Values(), last.Values(), same) || !slices.Equal(rest.Mean, complete.Mean) {
		t.Errorf("after a stop the last row is %+v, want %+v", again, last)
	}
}
