package cudnn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/cudnn"
	"fspda/cuda/cudnn/fakecudnn"
	"fspda/cuda/driver"
)

// bench is a library with a graph API, whose engines take as long as a test says.
type bench struct {
	graph  fakecudnn.Graph
	handle *cudnn.Handle
	calls  func() []string
	takes  map[int64]float64 // ms of an engine; 0 is an algorithm
	ran    int64             // what ran last
	timed  map[int64]int     // turns
	alone  map[int64]bool    // cannot be sent with others
}

// engines are those of a test, in the order of the advice.
func engines(index ...int64) (all []fakecudnn.Engine) {
	for _, i := range index {
		all = append(all, fakecudnn.Engine{Engine: cudnn.Engine{Index: i, Knobs: []cudnn.Knob{{Type: 3, Value: 10 * i},
			{Type: 25, Value: 1}}}, Memory: 8})
	}
	return all
}

func newBench(t *testing.T, offered, fallback []fakecudnn.Engine) *bench {
	t.Helper()
	b := &bench{timed: map[int64]int{}, takes: map[int64]float64{0: 3}}
	b.graph.Offered = func(fakecudnn.Convolution) []fakecudnn.Engine { return offered }
	b.graph.Fallback = func(fakecudnn.Convolution) []fakecudnn.Engine { return fallback }
	b.graph.Compute = func(_ fakecudnn.Convolution, by fakecudnn.Engine, _, _, _, _ driver.Pointer) cudnn.Status {
		b.ran = by.Index
		return 0
	}
	api, calls := cudnn.Recorded()
	api.Backend, b.calls = b.graph.Backend(), calls
	var err error
	if b.handle, err = api.New(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := b.graph.Left(); n > 0 || len(b.graph.Faults) > 0 {
			t.Errorf("%d descriptors are left, and wrong was: %s", n, strings.Join(b.graph.Faults, "; "))
		}
	})
	return b
}

// time is the clock. Before anything is sent in one go it has run once.
func (b *bench) time(n, turns int, send func() error) (float64, error) {
	b.ran = 0
	for range max(n, 1) * turns {
		if err := send(); err != nil {
			return 0, err
		}
	}
	if b.timed[b.ran] == 0 != (n == 0) {
		return 0, errors.New("sent in one go before it ran")
	}
	if n > 0 && b.alone[b.ran] {
		return 0, fmt.Errorf("%w: %d", cudnn.ErrRefused, b.ran)
	}
	b.timed[b.ran] += turns
	return float64(max(n, 1)) * b.takes[b.ran], nil
}

func lend(bytes ...int) ([]driver.Pointer, func(), error) {
	return []driver.Pointer{1 << 8, 2 << 8, 3 << 8, 4 << 8}, func() {}, nil
}

var shape = cudnn.Shape{N: 2, H: 4, W: 4, C: 8, K: 16, R: 3, S: 3, Stride: 1, Pad: 1}

// conv chooses, runs twice and ends a forward convolution, and returns its route.
func (b *bench) conv(t *testing.T, m cudnn.Math, how cudnn.Choosing) string {
	t.Helper()
	c, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float32, m, how)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Run(1<<8, 2<<8, 3<<8, 4<<8); err != nil {
			t.Fatal(err)
		}
	}
	route := c.Route()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return route
}

// The fastest of engines and algorithms is taken. What is slower by far is measured less, and what
// cannot be made, does not run, cannot be part of a graph, or wants too much memory is no choice.
func TestFastestEngine(t *testing.T) {
	offered := engines(1, 2, 3, 4, 5, 6, 7, 8)
	offered[2].Unmade, offered[3].Refuses, offered[4].Memory = true, 3000, 101
	how := cudnn.Choosing{Most: 100, Memory: lend}
	for _, c := range []struct {
		takes map[int64]float64
		want  string
	}{
		{map[int64]float64{0: 3, 1: 2, 2: 1, 6: 9, 7: 99, 8: 0.1}, "graph, engine 2 3=20 25=1"},
		{map[int64]float64{0: 3, 1: 4, 2: 5, 6: 2.5, 7: 7}, "graph, engine 6 3=60 25=1"},
		// what is known to repeat its time is left only for what is better
		{map[int64]float64{0: 3, 1: 4, 2: 5, 6: 3, 7: 7}, "algorithm 7"},
	} {
		b := newBench(t, offered, nil)
		b.takes, how.Time, b.alone = c.takes, b.time, map[int64]bool{8: true}
		if got := b.conv(t, cudnn.TensorOp, how); got != c.want {
			t.Errorf("%v ms: %s, want %s", c.takes, got, c.want)
		}
		if c.takes[6] == 9 && (b.timed[6] != 2 || b.timed[2] != 5 || b.timed[7] != 1) {
			t.Errorf("timed %v, want 1 turn of a very slow engine, 2 of a slow one and 5 of a fast one", b.timed)
		}
	}
}

// Engines that round more than they may are out, and in deterministic runs those that do not
// repeat; what is left is the fallback, and then algorithms.
func TestRoundingEngines(t *testing.T) {
	offered := engines(1, 2, 3, 4, 5)
	for i, note := range []int32{cudnn.NoteDownConvert, cudnn.NoteReducedReduction, cudnn.NoteTensorCore,
		cudnn.NoteNondeterministic} {
		offered[i].Numerical = []int32{9, note}
	}
	for _, c := range []struct {
		offered, fallback []fakecudnn.Engine
		m                 cudnn.Math
		deterministic     bool
		want              string
	}{
		{offered, nil, cudnn.TensorOp, false, "engine 3 "},
		{offered, nil, cudnn.FMA, false, "engine 4 "},
		{offered, nil, cudnn.FMA, true, "engine 5 "},
		{offered[:4], engines(9), cudnn.FMA, true, "engine 9 "},
		{offered[:4], nil, cudnn.TensorOp, true, "engine 3 "},
		{offered[:2], nil, cudnn.TensorOp, true, "algorithm 6"},
	} {
		b := newBench(t, c.offered, c.fallback)
		if got := b.conv(t, c.m, cudnn.Choosing{Most: 100, Deterministic: c.deterministic}); !strings.Contains(got+" ",
			c.want) {
			t.Errorf("math %d, deterministic %v: %s, want %s", c.m, c.deterministic, got, c.want)
		}
	}
}

// An engine that was advised and does not run gives way to an algorithm; one that has run once does
// not.
func TestEngineRefuses(t *testing.T) {
	offered := engines(1)
	offered[0].Refuses = 3000
	b := newBench(t, offered, nil)
	if got := b.conv(t, cudnn.TensorOp, cudnn.Choosing{Most: 100, Deterministic: true}); got != "algorithm 6" {
		t.Errorf("%s, want an algorithm", got)
	}
	b = newBench(t, engines(1), nil)
	c, err := b.handle.NewConv(shape, cudnn.GradX, cudnn.Float32, cudnn.TensorOp,
		cudnn.Choosing{Most: 100, Deterministic: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(1<<8, 2<<8, 3<<8, 4<<8); err != nil {
		t.Fatal(err)
	}
	b.graph.Compute = func(fakecudnn.Convolution, fakecudnn.Engine, driver.Pointer, driver.Pointer, driver.Pointer,
		driver.Pointer) cudnn.Status {
		return 5000
	}
	err = c.Run(1<<8, 2<<8, 3<<8, 4<<8)
	var refused *cudnn.Error
	if !errors.As(err, &refused) || refused.Status != 5000 || !strings.Contains(err.Error(), "engine 1") {
		t.Errorf("error %v, want that of the engine", err)
	}
	if err := c.Run(1<<8+4, 2<<8, 3<<8, 4<<8); err == nil || !strings.Contains(err.Error(), "multiple of 16") {
		t.Errorf("an operand that lies badly: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Engines that are compiled first are tried last.
func TestCompiledEngines(t *testing.T) {
	offered := engines(1, 2, 3)
	offered[0].Behaviour = []int32{cudnn.NoteCompiles}
	b := newBench(t, offered, nil)
	var order []int64
	b.graph.Compute = func(_ fakecudnn.Convolution, by fakecudnn.Engine, _, _, _, _ driver.Pointer) cudnn.Status {
		if b.ran = by.Index; !slices.Contains(order, b.ran) {
			order = append(order, b.ran)
		}
		return 0
	}
	b.takes = map[int64]float64{0: 3, 1: 1, 2: 2, 3: 2}
	if got := b.conv(t, cudnn.TensorOp, cudnn.Choosing{Most: 100, Memory: lend,
		Time: b.time}); got != "graph, engine 1 3=10 25=1" || !slices.Equal(order, []int64{2, 3, 1}) {
		t.Errorf("%s after %v", got, order)
	}
	if got := b.conv(t, cudnn.TensorOp,
		cudnn.Choosing{Most: 100, Deterministic: true}); got != "graph, engine 1 3=10 25=1" {
		t.Errorf("deterministic: %s", got)
	}
}

// A clock that stops is an error, and nothing is left.
func TestClockStops(t *testing.T) {
	b := newBench(t, engines(1), nil)
	stopped := errors.New("the GPU is lost")
	_, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float32, cudnn.TensorOp,
		cudnn.Choosing{Most: 100, Memory: lend,
			Time: func(_, _ int, send func() error) (float64, error) { return 0, errors.Join(send(), stopped) }})
	if !errors.Is(err, stopped) {
		t.Errorf("error %v, want that of the clock", err)
	}
}

// A choice is kept with its settings, and found again without a run. One that the library does not
// make any more is chosen anew.
func TestEngineIsKept(t *testing.T) {
	dir := t.TempDir()
	how := cudnn.Choosing{Most: 100, Memory: lend}
	open := func(offered ...int64) (*bench, string) {
		b := newBench(t, engines(offered...), nil)
		b.takes = map[int64]float64{0: 3, 1: 2, 2: 1}
		how.Choices, how.Time = &cudnn.Choices{Dir: dir, GPU: "imaginary", Version: 92600}, b.time
		return b, b.conv(t, cudnn.TensorOp, how)
	}
	if b, got := open(1, 2); got != "graph, engine 2 3=20 25=1" || len(b.timed) == 0 {
		t.Errorf("%s after %v", got, b.timed)
	}
	if b, got := open(1, 2); got != "graph, engine 2 3=20 25=1" || len(b.timed) > 0 || len(b.calls()) > 0 {
		t.Errorf("kept: %s after %v", got, b.timed)
	}
	if b, got := open(1); got != "graph, engine 1 3=10 25=1" || len(b.timed) == 0 {
		t.Errorf("the engine is gone: %s after %v", got, b.timed)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{`"index":1`, `"index":-1`}, {`"index":1`, `"index":2`},
		{`"value":10`, `"value":20`}} {
		if err := os.WriteFile(files[0], []byte(strings.Replace(string(text), change[0], change[1], 1)),
			0o644); err != nil {
			t.Fatal(err)
		}
		if b, got := open(1, 2); got != "graph, engine 2 3=20 25=1" || len(b.timed) == 0 {
			t.Errorf("%q spoilt: %s after %v", change[0], got, b.timed)
		}
	}
}

// Addresses are told once, as long as there are not too many.
func TestPacks(t *testing.T) {
	b := newBench(t, engines(1), nil)
	c, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float16, cudnn.TensorOp,
		cudnn.Choosing{Most: 100, Deterministic: true})
	if err != nil {
		t.Fatal(err)
	}
	before := b.graph.Left()
	for range 3 {
		for i := range driver.Pointer(10) {
			if err := c.Run(i<<8, 2<<8, 3<<8, 4<<8); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := b.graph.Left() - before; n != 10 {
		t.Errorf("%d packs of 10 addresses", n)
	}
	for i := range driver.Pointer(1000) {
		if err := c.Run(i<<8, 2<<8, 3<<8, 4<<8); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.graph.Left() - before; n > 32 {
		t.Errorf("%d packs are kept of 1000", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A product of matrices is taken where it is faster than all else, and remembered; not where bits
// are to repeat, and not if it fails.
func TestProduct(t *testing.T) {
	how := cudnn.Choosing{Most: 100, Memory: lend, Choices: &cudnn.Choices{Dir: t.TempDir(), GPU: "imaginary"}}
	products := 0
	open := func(takes float64, fails error) string {
		b := newBench(t, engines(1), nil)
		b.takes = map[int64]float64{0: 3, 1: 2, 100: takes}
		how.Time = b.time
		how.Product = func(x, w, y driver.Pointer) error {
			if x != 1<<8 || w != 2<<8 || y != 3<<8 {
				t.Errorf("operands at %d, %d, %d", x, w, y)
			}
			products++
			b.ran = 100
			return fails
		}
		return b.conv(t, cudnn.TensorOp, how)
	}
	if got := open(1, nil); got != "product of matrices" || products < 5 {
		t.Errorf("%s after %d products", got, products)
	}
	products = 0
	if got := open(9, nil); got != "product of matrices" || products != 2 {
		t.Errorf("kept: %s after %d products, want 2", got, products)
	}
	for what, change := range map[string]func(){
		"slower": func() {}, "deterministic": func() { how.Deterministic = true },
	} {
		how.Choices, how.Deterministic = nil, false
		change()
		if got := open(9, nil); got != "graph, engine 1 3=10 25=1" {
			t.Errorf("%s: %s", what, got)
		}
	}
	how.Deterministic = false
	if got := open(1, cudnn.ErrRefused); got != "graph, engine 1 3=10 25=1" {
		t.Errorf("refused: %s", got)
	}
}
