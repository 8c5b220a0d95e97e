package cudnn_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/internal/testing/fakecudnn"
)

// fixture is a library with a graph API whose engines take the times that a test sets.
type fixture struct {
	graph        fakecudnn.Graph
	handle       *cudnn.Handle
	calls        func() []string
	times        map[int64]float64 // ms by engine; 0 is an algorithm
	ran          int64             // what ran last, as in times; -1: nothing
	timed        map[int64]int     // turns by engine
	uncapturable map[int64]bool    // engines that cannot be captured
}

// engines returns engines with these indices, in order of recommendation.
func engines(index ...int64) (all []fakecudnn.Engine) {
	for _, i := range index {
		all = append(all, fakecudnn.Engine{Engine: cudnn.Engine{Index: i, Knobs: []cudnn.Knob{{Type: 3, Value: 10 * i},
			{Type: 25, Value: 1}}}, Memory: 8})
	}
	return all
}

func newFixture(t *testing.T, offered, fallback []fakecudnn.Engine) *fixture {
	t.Helper()
	b := &fixture{timed: map[int64]int{}, times: map[int64]float64{0: 3}}
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
		if n := b.graph.Live(); n > 0 || len(b.graph.Faults) > 0 {
			t.Errorf("%d descriptors leaked; faults: %s", n, strings.Join(b.graph.Faults, "; "))
		}
	})
	return b
}

// measure is the clock. Everything must run once before it is captured.
func (b *fixture) measure(n, turns int, send func() error) (float64, error) {
	b.ran = -1
	b.calls()
	for range max(n, 1) * turns {
		if err := send(); err != nil {
			return 0, err
		}
	}
	if slices.Contains(b.calls(), "algorithm") {
		b.ran = 0
	}
	if n > 0 && b.timed[b.ran] == 0 {
		return 0, errors.New("captured before it ran")
	}
	if n > 0 && b.uncapturable[b.ran] {
		return 0, fmt.Errorf("%w: %d", cudnn.ErrRefused, b.ran)
	}
	b.timed[b.ran] += turns
	return float64(max(n, 1)) * b.times[b.ran], nil
}

func alloc(bytes ...int) ([]driver.Pointer, func(), error) {
	return []driver.Pointer{1 << 8, 2 << 8, 3 << 8, 4 << 8}, func() {}, nil
}

var shape = cudnn.Shape{N: 2, H: 4, W: 4, C: 8, K: 16, R: 3, S: 3, Stride: 1, Pad: 1}

// conv creates a forward convolution, runs it twice, closes it, and returns its route.
func (b *fixture) conv(t *testing.T, m cudnn.Math, how cudnn.Selection) string {
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

// The fastest of engines and algorithms is taken. Much slower ones are measured less. Engines that
// cannot be made, run or captured, or need too much memory, are skipped.
func TestFastestEngine(t *testing.T) {
	offered := engines(1, 2, 3, 4, 5, 6, 7, 8)
	offered[2].Unmade, offered[3].Refuses, offered[4].Memory = true, 3000, 101
	how := cudnn.Selection{MaxWorkspace: 100, Alloc: alloc}
	for _, c := range []struct {
		times map[int64]float64
		want  string
	}{
		{map[int64]float64{0: 3, 1: 2, 2: 1, 6: 9, 7: 99, 8: 0.1}, "graph, engine 2 3=20 25=1"},
		{map[int64]float64{0: 3, 1: 4, 2: 5, 6: 2.5, 7: 7}, "graph, engine 6 3=60 25=1"},
		// an engine must be strictly faster to replace the algorithm
		{map[int64]float64{0: 3, 1: 4, 2: 5, 6: 3, 7: 7}, "algorithm 7"},
	} {
		b := newFixture(t, offered, nil)
		b.times, how.Measure, b.uncapturable = c.times, b.measure, map[int64]bool{8: true}
		if got := b.conv(t, cudnn.TensorOp, how); got != c.want {
			t.Errorf("%v ms: %s, want %s", c.times, got, c.want)
		}
		if c.times[6] == 9 && (b.timed[6] != 2 || b.timed[2] != 5 || b.timed[7] != 1) {
			t.Errorf("timed %v, want 1 turn of a very slow engine, 2 of a slow one and 5 of a fast one", b.timed)
		}
	}
}

// Engines that round more than allowed are skipped, and in deterministic runs those that are not
// reproducible. Then the fallback heuristic is used, and then algorithms.
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
		b := newFixture(t, c.offered, c.fallback)
		if got := b.conv(t, c.m, cudnn.Selection{MaxWorkspace: 100,
			Deterministic: c.deterministic}); !strings.Contains(got+" ", c.want) {
			t.Errorf("math %d, deterministic %v: %s, want %s", c.m, c.deterministic, got, c.want)
		}
	}
}

// A recommended engine whose first run fails is replaced by an algorithm; one that has run once is
// not.
func TestEngineRefuses(t *testing.T) {
	offered := engines(1)
	offered[0].Refuses = 3000
	b := newFixture(t, offered, nil)
	if got := b.conv(t, cudnn.TensorOp, cudnn.Selection{MaxWorkspace: 100, Deterministic: true}); got != "algorithm 6" {
		t.Errorf("%s, want an algorithm", got)
	}
	b = newFixture(t, engines(1), nil)
	c, err := b.handle.NewConv(shape, cudnn.GradX, cudnn.Float32, cudnn.TensorOp,
		cudnn.Selection{MaxWorkspace: 100, Deterministic: true})
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
		t.Errorf("a misaligned operand: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// Engines that compile a kernel are tried last.
func TestCompiledEngines(t *testing.T) {
	offered := engines(1, 2, 3)
	offered[0].Behaviour = []int32{cudnn.NoteCompiles}
	b := newFixture(t, offered, nil)
	var order []int64
	b.graph.Compute = func(_ fakecudnn.Convolution, by fakecudnn.Engine, _, _, _, _ driver.Pointer) cudnn.Status {
		if b.ran = by.Index; !slices.Contains(order, b.ran) {
			order = append(order, b.ran)
		}
		return 0
	}
	b.times = map[int64]float64{0: 3, 1: 1, 2: 2, 3: 2}
	if got := b.conv(t, cudnn.TensorOp, cudnn.Selection{MaxWorkspace: 100, Alloc: alloc,
		Measure: b.measure}); got != "graph, engine 1 3=10 25=1" || !slices.Equal(order, []int64{2, 3, 1}) {
		t.Errorf("%s after %v", got, order)
	}
	if got := b.conv(t, cudnn.TensorOp,
		cudnn.Selection{MaxWorkspace: 100, Deterministic: true}); got != "graph, engine 1 3=10 25=1" {
		t.Errorf("deterministic: %s", got)
	}
}

// An error of the clock is returned, and nothing leaks.
func TestClockStops(t *testing.T) {
	b := newFixture(t, engines(1), nil)
	stopped := errors.New("the GPU is lost")
	_, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float32, cudnn.TensorOp,
		cudnn.Selection{MaxWorkspace: 100, Alloc: alloc,
			Measure: func(_, _ int, send func() error) (float64, error) { return 0, errors.Join(send(), stopped) }})
	if !errors.Is(err, stopped) {
		t.Errorf("error %v, want that of the clock", err)
	}
}

// What loses the GPU is not run again by later programs, which take the fastest of the rest.
func TestLostCandidates(t *testing.T) {
	const product = 100
	for _, c := range []struct {
		what   string
		fatal  int64        // which candidate loses the GPU
		status cudnn.Status // what the library says of an engine that does
		named  string       // in the error
		after  string       // the next program's choice
	}{
		{"engine", 2, 0, "engine 2 3=20 25=1", "graph, engine 1 3=10 25=1"},
		{"engine that returns an error", 2, 3000, "engine 2 3=20 25=1", "graph, engine 1 3=10 25=1"},
		{"algorithm", 0, 0, "algorithm 7", "graph, engine 2 3=20 25=1"},
		{"product", product, 0, "matrix product", "graph, engine 2 3=20 25=1"},
	} {
		dir, crashes := t.TempDir(), 0
		open := func() (route string, err error) {
			b, lost := newFixture(t, engines(1, 2), nil), error(nil)
			b.times = map[int64]float64{0: 3, 1: 2, 2: 1, product: 9}
			b.graph.Compute = func(_ fakecudnn.Convolution, by fakecudnn.Engine, _, _, _,
				_ driver.Pointer) cudnn.Status {
				if b.ran = by.Index; b.ran == c.fatal {
					return c.status
				}
				return 0
			}
			how := cudnn.Selection{MaxWorkspace: 100, Alloc: alloc,
				Cache:   &cudnn.ChoiceCache{Dir: dir, GPU: "fake", Version: 92600},
				Product: func(_, _, _ driver.Pointer) error { b.ran = product; return nil },
				Measure: func(n, turns int, send func() error) (float64, error) {
					ms, err := b.measure(n, turns, send)
					if b.ran == c.fatal {
						crashes++
						lost = &driver.Error{Result: driver.LaunchFailed}
					}
					return ms, cmp.Or(err, lost)
				}}
			made, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float32, cudnn.TensorOp, how)
			if err != nil {
				return "", err
			}
			return made.Route(), made.Close()
		}
		if _, err := open(); crashes != 1 || !driver.Lost(err) || !strings.Contains(err.Error(), c.named) {
			t.Errorf("%s: %d losses, %v; want one, and an error that names %s", c.what, crashes, err, c.named)
		}
		if route, err := open(); err != nil || crashes != 1 || route != c.after {
			t.Errorf("%s: then %s, %v after %d losses; want %s", c.what, route, err, crashes, c.after)
		}
	}
}

// A choice is stored with its settings and used again without measuring. If the library can no
// longer make it, it is measured again.
func TestEngineIsCached(t *testing.T) {
	dir := t.TempDir()
	how := cudnn.Selection{MaxWorkspace: 100, Alloc: alloc}
	open := func(offered ...int64) (*fixture, string) {
		b := newFixture(t, engines(offered...), nil)
		b.times = map[int64]float64{0: 3, 1: 2, 2: 1}
		how.Cache, how.Measure = &cudnn.ChoiceCache{Dir: dir, GPU: "fake", Version: 92600}, b.measure
		return b, b.conv(t, cudnn.TensorOp, how)
	}
	if b, got := open(1, 2); got != "graph, engine 2 3=20 25=1" || len(b.timed) == 0 {
		t.Errorf("%s after %v", got, b.timed)
	}
	if b, got := open(1, 2); got != "graph, engine 2 3=20 25=1" || len(b.timed) > 0 || len(b.calls()) > 0 {
		t.Errorf("cached: %s after %v", got, b.timed)
	}
	if b, got := open(1); got != "graph, engine 1 3=10 25=1" || len(b.timed) == 0 {
		t.Errorf("the engine is gone: %s after %v", got, b.timed)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
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
			t.Errorf("%q damaged: %s after %v", change[0], got, b.timed)
		}
	}
}

// After candidates were timed, only the descriptors of the chosen one are left, as many as without
// timing, and their operands and workspace are given back.
func TestTriedEnginesAreReleased(t *testing.T) {
	dir, borrowed := t.TempDir(), 0
	var live []int
	for _, timed := range []bool{true, false} {
		b := newFixture(t, engines(1, 2, 3), nil)
		b.times = map[int64]float64{0: 3, 1: 2, 2: 1, 3: 2}
		how := cudnn.Selection{MaxWorkspace: 100, Measure: b.measure, Cache: &cudnn.ChoiceCache{Dir: dir}}
		how.Alloc = func(bytes ...int) ([]driver.Pointer, func(), error) {
			at, _, err := alloc(bytes...)
			borrowed += len(at)
			return at, func() { borrowed -= len(at) }, err
		}
		c, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float32, cudnn.TensorOp, how)
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, b.graph.Live())
		if how.Cache.Timed() != timed || (len(b.timed) > 0) != timed || borrowed != 0 {
			t.Errorf("timed %t, engines %v, %d blocks are borrowed", how.Cache.Timed(), b.timed, borrowed)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if live[0] != live[1] || live[0] == 0 {
		t.Errorf("%d descriptors after timing, %d without", live[0], live[1])
	}
}

// Packs of addresses are reused, up to a limit.
func TestPacks(t *testing.T) {
	b := newFixture(t, engines(1), nil)
	c, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float16, cudnn.TensorOp,
		cudnn.Selection{MaxWorkspace: 100, Deterministic: true})
	if err != nil {
		t.Fatal(err)
	}
	before := b.graph.Live()
	for range 3 {
		for i := range driver.Pointer(10) {
			if err := c.Run(i<<8, 2<<8, 3<<8, 4<<8); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := b.graph.Live() - before; n != 10 {
		t.Errorf("%d packs of 10 addresses", n)
	}
	for i := range driver.Pointer(1000) {
		if err := c.Run(i<<8, 2<<8, 3<<8, 4<<8); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.graph.Live() - before; n > 32 {
		t.Errorf("%d packs are kept after 1000 addresses", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A matrix product is taken if it is the fastest, and the choice is stored; not in deterministic
// runs, and not if it fails.
func TestProduct(t *testing.T) {
	how := cudnn.Selection{MaxWorkspace: 100, Alloc: alloc, Cache: &cudnn.ChoiceCache{Dir: t.TempDir(), GPU: "fake"}}
	products := 0
	open := func(times float64, fails error) string {
		b := newFixture(t, engines(1), nil)
		b.times = map[int64]float64{0: 3, 1: 2, 100: times}
		how.Measure = b.measure
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
	if got := open(1, nil); got != "matrix product" || products < 5 {
		t.Errorf("%s after %d products", got, products)
	}
	products = 0
	if got := open(9, nil); got != "matrix product" || products != 2 {
		t.Errorf("cached: %s after %d products, want 2", got, products)
	}
	for what, change := range map[string]func(){
		"slower": func() {}, "deterministic": func() { how.Deterministic = true },
	} {
		how.Cache, how.Deterministic = nil, false
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

// Operands of measurements are aligned as in use and no better, so that what needs more is not
// chosen for its speed. The choice depends on that.
func TestMeasuredAlignment(t *testing.T) {
	cache := &cudnn.ChoiceCache{Dir: t.TempDir(), GPU: "fake"}
	for i, c := range []struct{ alignment, want [3]int }{
		{[3]int{}, [3]int{}},
		{[3]int{16, 16, 16}, [3]int{}}, // which is the same
		{[3]int{16, 4, 8}, [3]int{0, 4, 8}},
		{[3]int{8, 4, 16}, [3]int{8, 4, 0}},
	} {
		const size, filters, output = 4 * 2 * 4 * 4 * 8, 4 * 16 * 3 * 3 * 8, 4 * 2 * 4 * 4 * 16
		b, runs := newFixture(t, engines(1), nil), 0
		see := func(x, w, y driver.Pointer) {
			for j, at := range []driver.Pointer{x, w, y} {
				if want := driver.Pointer(j+1)<<12 + driver.Pointer(c.want[j]); at != want {
					t.Errorf("aligned to %v: operand %d is at %#x, want %#x", c.alignment, j, at, want)
				}
			}
			runs++
		}
		b.graph.Compute = func(_ fakecudnn.Convolution, by fakecudnn.Engine, x, w, y, _ driver.Pointer) cudnn.Status {
			b.ran = by.Index
			see(x, w, y)
			return 0
		}
		how := cudnn.Selection{MaxWorkspace: 100, Cache: cache, Measure: b.measure, Alignment: c.alignment}
		how.Product = func(x, w, y driver.Pointer) error { see(x, w, y); return cudnn.ErrRefused }
		how.Alloc = func(bytes ...int) ([]driver.Pointer, func(), error) {
			want := []int{size + c.want[0], filters + c.want[1], output + c.want[2], 100}
			if !slices.Equal(bytes, want) {
				t.Errorf("aligned to %v: blocks of %d bytes, want %d", c.alignment, bytes, want)
			}
			return []driver.Pointer{1 << 12, 2 << 12, 3 << 12, 4 << 12}, func() {}, nil
		}
		made, err := b.handle.NewConv(shape, cudnn.Forward, cudnn.Float32, cudnn.TensorOp, how)
		if err != nil {
			t.Fatal(err)
		}
		if measured := i != 1; (runs > 1) != measured {
			t.Errorf("aligned to %v: %d runs", c.alignment, runs)
		}
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Of many engines the first ten are tried, and fewer where they take long; the first one is tried
// anyway.
func TestTuningIsLimited(t *testing.T) {
	offered := engines(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	how := cudnn.Selection{MaxWorkspace: 100, Alloc: alloc}
	b := newFixture(t, offered, nil)
	b.times, how.Measure = map[int64]float64{0: 3, 10: 1, 11: 0.1}, b.measure
	for _, e := range offered[:9] {
		b.times[e.Index] = 2
	}
	if got := b.conv(t, cudnn.TensorOp, how); got != "graph, engine 10 3=100 25=1" || b.timed[11] > 0 {
		t.Errorf("%s after %v, want the fastest of the first ten", got, b.timed)
	}
	slow := newFixture(t, offered, nil)
	slow.times, how.Measure = b.times, func(n, turns int, send func() error) (float64, error) {
		time.Sleep(90 * time.Millisecond)
		return slow.measure(n, turns, send)
	}
	if slow.conv(t, cudnn.TensorOp, how); slow.timed[1] == 0 || slow.timed[3] > 0 {
		t.Errorf("timed %v, want engine 1, and no third one after half a second", slow.timed)
	}
}
