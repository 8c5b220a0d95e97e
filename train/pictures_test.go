package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fspda/data"
	"fspda/model"
)

// picturesRun trains an MLP on drawn pictures, decoded by so many workers and varied in every way, in
// a run folder.
func picturesRun(t *testing.T, ctx context.Context, workers int, jpeg data.Decoder, dir string, opt Options) (*Result,
	error) {
	t.Helper()
	c := small()
	c.Policy, c.Erase, c.Mixup, c.Cutmix = "randaugment", 0.25, 0.2, 1
	set, err := data.Open("synthetic-images", data.OpenOptions{TrainSize: 60, TestSize: 20, Seed: 2, Crop: 12,
		Workers: workers, JPEG: jpeg, Vary: data.Variation{Policy: c.Policy, Erase: c.Erase, Mixup: c.Mixup,
			Cutmix: c.Cutmix}})
	if err != nil {
		return nil, err
	}
	c.Data, c.DataTrain, c.DataTest, c.Crop, c.Batch, c.Agents, c.Iterations, c.Partition = "synthetic-images", 60, 20,
		12, 7, 3, 20, "shuffled"
	c.EvalPoints = 2
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden,
		Activation: c.Activation})
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.WithMixed(); err != nil {
		t.Fatal(err)
	}
	opt.Device = cpuDevice
	m := model.NewEngine(net, opt.Device)
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	opt.Model = m
	_, err = ReadConfig(dir)
	if opt.Folder, err = OpenFolder(dir, s, err == nil); err != nil {
		return nil, err
	}
	return Run(ctx, s, opt)
}

// A run on augmented pictures that is stopped in the middle of an epoch, and resumed with another
// number of workers, gives the bits of one that was not. With another decoder it is not resumed.
func TestResumeOnPictures(t *testing.T) {
	whole, part := runFolder(t), runFolder(t)
	want, err := picturesRun(t, context.Background(), 4, data.GoJPEG, whole, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	got, err := picturesRun(t, ctx, 1, data.GoJPEG, part, stopping(4, stop))
	if err != nil || got.Status != Stopped {
		t.Fatalf("status %v, error %v", got, err)
	}
	e := new(CheckpointError)
	if _, err := picturesRun(t, context.Background(), 1, data.LibJPEG, part, Options{}); !errors.As(err, &e) ||
		!strings.Contains(err.Error(), "--jpeg go") {
		t.Errorf("error %v, want one that names the decoder", err)
	}
	if got, err = picturesRun(t, context.Background(), 3, data.GoJPEG, part, Options{}); err != nil {
		t.Fatal(err)
	}
	if trace(t, got) != trace(t, want) {
		t.Error("stopped and resumed: another result")
	}
}
