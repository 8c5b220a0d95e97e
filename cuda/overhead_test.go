package cuda

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/cuda/driver"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
	"fspda/train/memory"
)

// loading is a folder of measured memory, and a GPU whose driver and libraries take memory besides
// blocks.
type loading struct {
	dir     string
	version int // the driver's version
	bytes   atomic.Int64
}

// open opens a device of a new process.
func (l *loading) open(t *testing.T, options ...Option) *Device {
	t.Helper()
	l.bytes.Store(0)
	_, p := fakeBackend(t, fakegpu.Options{Memory: 4 << 30})
	free, libs := p.api.MemGetInfo, p.libraries
	p.version = l.version
	p.api.MemGetInfo = func(n, total *uintptr) driver.Result {
		r := free(n, total)
		*n -= uintptr(l.bytes.Load())
		return r
	}
	p.libraries = func(g driver.Properties) (libraries, error) {
		found, err := libs(g)
		found.memoryDir = l.dir
		return found, err
	}
	d, err := open(p, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// train trains in a new process whose libraries take `takes` bytes, and returns the part of its
// forecast that was measured or estimated, and the warnings.
func (l *loading) train(t *testing.T, r training, takes int64) (part memory.Part, warnings []string) {
	t.Helper()
	d := l.open(t)
	m := model.NewEngine(r.net, d)
	s, err := r.config.Resolve(r.set, m)
	if err != nil {
		t.Fatal(err)
	}
	core, lines := observer.New(zapcore.WarnLevel)
	res, err := train.Run(context.Background(), s, train.Options{Device: d, Model: m, Log: zap.New(core),
		OnStep: func(int) { l.bytes.Store(takes) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines.All() {
		warnings = append(warnings, line.Message)
	}
	if len(res.Memory) != 1 {
		t.Fatalf("compared: %+v", res.Memory)
	}
	all := res.Memory[0].Parts
	return all[len(all)-1], warnings
}

// The first run of a process that times no candidates stores the memory that it takes besides
// blocks. The next run of the same work has it in its forecast, and a larger forecast is refused. A
// short run stores nothing. Damage is ignored with a warning, and mended.
func TestOverheadIsMeasured(t *testing.T) {
	const took, estimated, measured = 40 << 20, "graphs, libraries' kernels (estimate)",
		"graphs, libraries' kernels (measured)"
	l, r := &loading{dir: t.TempDir(), version: 13000}, newTraining(t)
	r.config.EvalPoints, r.config.Checkpoint, r.config.Agents, r.config.Graph, r.config.Batch = 1, 0, 2, "complete", 1
	const short, long = 4, 32
	r.config.Iterations = short
	if got, _ := l.train(t, r, took); got.What != estimated || got.Bytes < libraryBytes {
		t.Errorf("the first run: %+v", got)
	}
	r.config.Iterations = long
	if got, warned := l.train(t, r, took); got.What != estimated || len(warned) > 0 {
		t.Errorf("the first long run: %+v, %q", got, warned)
	}
	files, err := filepath.Glob(filepath.Join(l.dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(text), `[41`, `[91`, 1)
	if err := os.WriteFile(files[0], []byte(damaged), 0o644); err != nil || damaged == string(text) {
		t.Fatal(err, string(text))
	}
	if got, warned := l.train(t, r, took); got.What != estimated || len(warned) != 1 ||
		!strings.Contains(warned[0], "is estimated") {
		t.Errorf("with a damaged file: %+v, %q", got, warned)
	}
	r.config.Iterations = short
	if got, warned := l.train(t, r, took); got != (memory.Part{What: measured, Bytes: took}) || len(warned) > 0 {
		t.Errorf("after damage: %+v, %q", got, warned)
	}
	d := l.open(t)
	s, err := r.config.Resolve(r.set, model.NewEngine(r.net, d))
	if err != nil {
		t.Fatal(err)
	}
	f, err := memory.Devices(s, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []uint64{f[0].Need - took/2, f[0].Need} { // other processes leave as many bytes
		l.bytes.Store(int64(f[0].Free - left))
		if err := memory.Check(s, d); (err != nil) != (left < f[0].Need) {
			t.Errorf("need %d bytes, of which %d are measured; %d are free: %v", f[0].Need, took, left, err)
		}
	}
}

// convolutionOf1x1 is code with one convolution, whose implementations are timed when it is loaded.
func convolutionOf1x1() *device.Code {
	const n, h, c, k = 2, 4, 16, 8
	x, w, y := n*h*h*c, k*c, n*h*h*k
	return &device.Code{Name: "convolution", Batch: 1, Features: 1, Dim: x + w, Arena: y, Calls: []device.Call{{
		Kernel: device.Conv, Dims: []int{n, h, h, c, k, 1, 1, 1, 0},
		In:  []device.Ref{{Space: device.Params, Len: x}, {Space: device.Params, Off: x, Len: w}},
		Out: []device.Ref{{Space: device.Arena, Len: y}}}}}
}

// A stored value holds for the same work, GPU, driver and settings only. A process that timed
// candidates stores nothing, and a device stores one value. Impossible values are left out. Of
// several values that are stored the median counts.
func TestOverheadKeys(t *testing.T) {
	const work, sets = "a network", 6
	l := &loading{dir: t.TempDir(), version: 13000}
	check := func(what string, d *Device, work string, sets int, want uint64) {
		t.Helper()
		bytes, measured, err := d.Overhead(work, sets)
		if err != nil || measured != (want > 0) || measured && bytes != want || !measured && bytes != estimate(sets) {
			t.Errorf("%s: %d bytes, measured %t, %v; want %d", what, bytes, measured, err, want)
		}
	}
	keep := func(d *Device, takes int64) {
		t.Helper()
		l.bytes.Store(takes)
		if err := d.KeepOverhead(work, sets); err != nil {
			t.Error(err)
		}
	}
	reader := l.open(t)
	tuned := l.open(t)
	if _, err := tuned.Load(convolutionOf1x1()); err != nil {
		t.Fatal(err)
	}
	keep(tuned, 300<<20)
	check("after a process that timed candidates", reader, work, sets, 0)
	for _, absurd := range []int64{-1 << 20, 0, mostEstimates*libraryBytes + 64<<20} {
		keep(l.open(t), absurd)
		check("after an impossible value", reader, work, sets, 0)
	}
	d := l.open(t)
	block, err := d.exec.TakeBlock(8 << 20) // no overhead
	if err != nil {
		t.Fatal(err)
	}
	keep(d, 50<<20)
	keep(d, 90<<20) // later runs of a process do not count
	d.exec.PutBlock(block)
	check("the same work", reader, work, sets, 50<<20)
	check("other work", reader, "another network", sets, 0)
	check("other vectors", reader, work, sets+1, 0)
	check("another precision", l.open(t, WithPrecision(BF16)), work, sets, 0)
	check("deterministic", l.open(t, Deterministic(true)), work, sets, 0)
	other := &loading{dir: l.dir, version: 13010}
	check("another driver", other.open(t), work, sets, 0)
	for _, v := range []struct{ takes, want int64 }{{70, 50}, {60, 60}, {500, 60}, {61, 61}, {62, 62}, {63, 62}} {
		keep(l.open(t), v.takes<<20)
		check("the median", reader, work, sets, uint64(v.want<<20))
	}
	l.dir = ""
	keep(l.open(t), 50<<20)
	check("without a folder", l.open(t), work, sets, 0)
}
