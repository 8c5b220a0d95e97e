package train

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/device"
	"fspda/model"
)

// The tests train for real: a small MLP on the drawn digits, on the host.

// labSet is shared by all tests; it is immutable.
var labSet = func() *data.Set {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		panic(err)
	}
	return set
}()

// Small is a configuration that runs in milliseconds.
func small() Config {
	c := Default()
	c.DataTrain, c.DataTest, c.Hidden = 400, 100, Widths{6}
	c.Agents, c.Graph, c.Partition, c.Batch = 5, "ring", "sorted", 16
	c.Iterations, c.EvalPoints, c.Checkpoint = 60, 4, 0
	return c
}

// labModels has an engine for each network of the tests, which so compiles its plans once. An engine
// has no state that a run changes.
var labModels sync.Map

func labModel(tb testing.TB, c Config) *model.Engine {
	tb.Helper()
	of, err := c.Network()
	if err != nil {
		tb.Fatal(err)
	}
	opt := model.MLPOptions{Inputs: labSet.Features(), Classes: labSet.Classes, Hidden: c.Hidden,
		Activation: c.Activation, Dropout: c.Dropout, WeightDecay: of.L2()}
	key := fmt.Sprintf("%+v", opt)
	if m, ok := labModels.Load(key); ok {
		return m.(*model.Engine)
	}
	net, err := model.MLP(opt)
	if err != nil {
		tb.Fatal(err)
	}
	m, _ := labModels.LoadOrStore(key, model.NewEngine(net, cpuDevice))
	return m.(*model.Engine)
}

func resolve(tb testing.TB, c Config) (*Setup, *model.Engine) {
	tb.Helper()
	m := labModel(tb, c)
	s, err := c.Resolve(labSet, m)
	if err != nil {
		tb.Fatal(err)
	}
	return s, m
}

// play runs a configuration with nothing written, unless opt has a folder.
func play(tb testing.TB, c Config, opt Options) *Result {
	tb.Helper()
	res, err := try(tb, context.Background(), c, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

func try(tb testing.TB, ctx context.Context, c Config, opt Options) (*Result, error) {
	tb.Helper()
	s, m := resolve(tb, c)
	return with(ctx, s, m, opt)
}

// with runs what resolve returned.
func with(ctx context.Context, s *Setup, m *model.Engine, opt Options) (*Result, error) {
	opt.Device = cpuDevice
	if opt.Model == nil {
		opt.Model = m
	}
	return Run(ctx, s, opt)
}

// inFolder runs a configuration in a run folder, from its start or from where it stands.
func inFolder(tb testing.TB, ctx context.Context, c Config, dir string, opt Options) (*Result, error) {
	tb.Helper()
	s, m := resolve(tb, c)
	_, err := ReadConfig(dir)
	f, err := OpenFolder(dir, s, err == nil)
	if err != nil {
		return nil, err
	}
	opt.Folder, opt.NoReport = f, true
	return with(ctx, s, m, opt)
}

// trace is a run without its clock: rows as they are written, and the bits of every model.
func trace(tb testing.TB, r *Result) string {
	tb.Helper()
	var out []byte
	for _, row := range r.Rows {
		row.WallS = 0
		line, err := json.Marshal(row)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(append(out, line...), '\n')
	}
	for _, x := range r.Models {
		for _, v := range x {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return string(out)
}

func runFolder(tb testing.TB) string { return filepath.Join(tb.TempDir(), "run") }

// cpuDevice is shared by all tests, so that the vectors of many runs are cut from one slab.
var cpuDevice = device.Device(cpu.New())

// checkpointsOf lists the names of the checkpoints in a run folder, oldest first.
func checkpointsOf(dir string) (names []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "checkpoints", "iter-*"))
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names, err
}

// ended is the wait of a gradient that is finished.
func ended(loss float64, err error) func() (float64, error) {
	return func() (float64, error) { return loss, err }
}
