package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"fspda/bench/measure"
	"fspda/data"
	"fspda/device"
	"fspda/internal/cgroup"
	"fspda/train"
	"fspda/train/runfolder"
)

// Calibration measures the speed of training on this machine: a fraction of a second for each kind
// of run, on synthetic data of the same shape. Measurements are cached in a file, by machine,
// program version and kind of run.
type Calibration struct {
	Path    string // path of the cache file
	Open    func(train.Config) (*train.Setup, train.Model, device.Device, error)
	Threads int
	Version string
}

// cost is a measurement, in seconds.
type cost struct {
	Iteration float64 `json:"iteration_s"`
	Example   float64 `json:"example_s"` // time of an evaluation of one model at one example
}

// Sizes of a calibration. The shards of a run with full gradients are cut to calibrationShard
// examples, and the measured time is scaled up.
const (
	calibrationTime  = 400 * time.Millisecond
	calibrationShard = 600
	calibrationBatch = 8 // batch for image networks, which take a second per batch
	mnistTrain       = 60000
	mnistTest        = 10000
	imagenetTest     = 50000
)

// Forecast returns the time of all jobs, run one after the other, in seconds: iterations and
// evaluations.
func (k *Calibration) Forecast(ctx context.Context, jobs []Job) (float64, error) {
	threads := cmp.Or(k.Threads, cgroup.Processors())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	known, err := k.read()
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, j := range jobs {
		c := k.measuredConfig(j.Config, threads)
		key := runfolder.Machine() + " " + k.Version + " " + c.Fingerprint()
		got, ok := known[key]
		if !ok {
			if got, err = k.measure(ctx, c); err != nil {
				return 0, err
			}
			known[key] = got
			if err := k.write(known); err != nil {
				return 0, err
			}
		}
		total += got.total(j.Config, threads)
	}
	return total, nil
}

// measuredConfig returns the configuration that is measured for c. It shuffles the shards, which
// changes no time.
func (k *Calibration) measuredConfig(c train.Config, threads int) train.Config {
	shard := max(c.Batch, calibrationShard)
	c.Data, c.DataDir, c.DataTrain, c.DataTest, c.Partition = "synthetic", "", shard*c.Agents, 100, "shuffled"
	c.EvalPoints, c.Checkpoint, c.Threads, c.Seed = 1, 0, threads, 1
	if c.Model != "mlp" {
		c.Data, c.DataTrain, c.Batch = "synthetic-images", calibrationBatch*c.Agents, calibrationBatch
	}
	c.Iterations = 1_000_000_000
	if c.Algo == "led" || c.Algo == "kgt" {
		c.Iterations = c.LocalSteps * (c.Iterations / c.LocalSteps)
	}
	return c
}

func (k *Calibration) measure(ctx context.Context, c train.Config) (cost, error) {
	s, m, dev, err := k.Open(c)
	if err != nil {
		return cost{}, err
	}
	if c.Model != "mlp" { // measuring iterations would be too slow, and gradients dominate
		example, err := exampleTime(s, m, dev, s.Config.Batch, 1)
		return cost{Example: example}, err
	}
	var got cost
	got.Iteration, err = measure.Iteration(ctx,
		measure.StepOptions{Setup: s, Model: m, Device: dev, Each: calibrationTime})
	if errors.Is(err, context.Canceled) {
		return cost{}, context.Canceled
	}
	if err != nil {
		return cost{}, err
	}
	if c.Sampling == string(data.Full) {
		got.Iteration *= float64(mnistTrain) / float64(c.DataTrain)
	}
	got.Example, err = exampleTime(s, m, dev, 250, 3)
	return got, err
}

// exampleTime returns the time of an evaluation per example, after warm gradients to warm up.
func exampleTime(s *train.Setup, m train.Model, dev device.Device, chunk, warm int) (float64, error) {
	x, g := dev.NewVector(s.Dim), dev.NewVector(s.Dim)
	var b device.Batch
	if err := s.Set.Train.Gather(&b, s.Shards[0][:min(chunk, len(s.Shards[0]))]); err != nil {
		return 0, err
	}
	var begin time.Time
	for n := 0; ; n++ {
		if n == warm {
			begin = time.Now()
		}
		if n > warm && time.Since(begin) > calibrationTime/4 {
			return time.Since(begin).Seconds() / float64(n-warm) / float64(b.N()), nil
		}
		if _, err := m.Grad(g, x, b); err != nil {
			return 0, err
		}
	}
}

// total returns the time of a run. An evaluation passes all examples through every model and the
// mean, on all threads. Test examples take a forward pass only, a third of the work.
func (k cost) total(c train.Config, threads int) float64 {
	if c.Model != "mlp" { // evaluations use the test set only
		once := k.Example / float64(min(threads, c.Agents))
		iterations := float64(c.Iterations) * float64(c.Agents*c.Batch) * once
		return iterations + float64(c.EvalPoints+1)*float64(c.Agents+1)*imagenetTest/3*once
	}
	examples, test := float64(mnistTrain), float64(mnistTest)
	if c.Data == "synthetic" {
		examples, test = float64(c.DataTrain), float64(c.DataTest)
	}
	evaluation := float64(c.Agents+1) * (examples + test/3) * k.Example / float64(min(threads, c.Agents+1))
	return float64(c.Iterations)*k.Iteration + float64(c.EvalPoints+1)*evaluation
}

func (k *Calibration) read() (map[string]cost, error) {
	known := map[string]cost{}
	text, err := os.ReadFile(k.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, &train.FolderError{Path: filepath.Dir(k.Path), Got: filepath.Base(k.Path) + " cannot be read",
			Err: err, Hint: "remove the file: the times will be measured again"}
	}
	return known, nil
}

func (k *Calibration) write(known map[string]cost) error {
	text, err := json.MarshalIndent(known, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(k.Path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(k.Path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return &train.FolderError{Path: filepath.Dir(k.Path), Got: filepath.Base(k.Path) + " cannot be written",
			Err: err, Hint: "free disk space, or skip the forecast with --no-time"}
	}
	return nil
}
