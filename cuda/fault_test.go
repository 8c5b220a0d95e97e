package cuda

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
)

// doubling is code that reads the batch and the parameters. It has two calls, so that its second
// run is a graph.
func doubling(n int) *device.Code {
	at := func(s device.Space, off, n int) device.Ref { return device.Ref{Space: s, Off: off, Len: n} }
	return &device.Code{Name: "doubling", Batch: 1, Features: n, Dim: n, Arena: 2 * n, Gradient: true,
		Calls: []device.Call{
			{Kernel: device.Add, In: []device.Ref{at(device.Params, 0, n), at(device.Input, 0, n)},
				Out: []device.Ref{at(device.Arena, 0, n)}, Dims: []int{n}},
			{Kernel: device.Scale, In: []device.Ref{at(device.Arena, 0, n)}, Out: []device.Ref{at(device.Grads, 0, n)},
				Dims: []int{n}, Attr: 2},
		},
		Results: []device.Result{{Name: "first", Ref: at(device.Arena, 0, 1)}},
	}
}

// A program's first run sends its kernels; later runs launch a graph for each pair of vectors.
// Every run computes with its own batch.
func TestGraphs(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{}, false)
	const n = 5
	p, err := d.Load(doubling(n))
	if err != nil {
		t.Fatal(err)
	}
	x, g, other := d.NewVector(n), d.NewVector(n), d.NewVector(n)
	d.Write(x, []float32{1, 2, 3, 4, 5})
	out, got := make([]float64, 1), make([]float32, n)
	for run := range 6 {
		to := g
		if run >= 3 {
			to = other
		}
		v := float32(run)
		if err := p.Run(x, to, device.Batch{X: []float32{v, v, v, v, v}, Y: []int32{0}}, out); err != nil {
			t.Fatal(err)
		}
		d.Read(got, to)
		if want := []float32{2 + 2*v, 4 + 2*v, 6 + 2*v, 8 + 2*v, 10 + 2*v}; !slices.Equal(got, want) ||
			out[0] != float64(1+v) {
			t.Errorf("run %d: %v and %v, want %v and %v", run, got, out, want, 1+v)
		}
	}
	if captured, launched := m.Count("StreamBeginCapture"), m.Count("GraphLaunch"); captured != 2 || launched != 5 {
		t.Errorf("%d captures and %d launches of graphs, want 2 and 5", captured, launched)
	}
}

// After a loss of the GPU every run returns an error, and Read returns NaN.
func TestLost(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{}, false)
	p, err := d.Load(doubling(3))
	if err != nil {
		t.Fatal(err)
	}
	x, g, b, out := d.NewVector(3), d.NewVector(3), device.Batch{X: make([]float32, 3), Y: []int32{0}}, make([]float64,
		1)
	if err := p.Run(x, g, b, out); err != nil {
		t.Fatal(err)
	}
	m.Lose(driver.LaunchFailed)
	err = p.Run(x, g, b, out)
	if !driver.Lost(err) || !strings.Contains(err.Error(), "run doubling") {
		t.Errorf("a run on a lost GPU: %v", err)
	}
	v := []float32{1, 2, 3}
	d.Write(x, v)
	d.Do(device.Combine(x, device.Term{A: 1, V: g}))
	d.Read(v, x)
	if sum := device.InnerProduct(d, x, g); v[0] == v[0] || !math.IsNaN(sum) {
		t.Errorf("read %v, scalar product %v of a lost GPU", v, sum)
	}
	if _, err := d.Load(doubling(3)); !driver.Lost(err) || !driver.Lost(d.Err()) {
		t.Errorf("loading on a lost GPU: %v", err)
	}
}

// With launches that wait, programs have neither graphs nor cooperative launches, and the error of
// a kernel names it with its geometry and arguments. Else the error says how to get there.
func TestLaunchBlocking(t *testing.T) {
	run := func() (*fakegpu.Machine, error) {
		d, m := openFake(t, fakegpu.Options{}, false)
		p, err := d.Load(doubling(3))
		if err != nil {
			t.Fatal(err)
		}
		x, g, b := d.NewVector(3), d.NewVector(3), device.Batch{X: make([]float32, 3), Y: []int32{0}}
		for range 3 {
			if err := p.Run(x, g, b, make([]float64, 1)); err != nil {
				t.Fatal(err)
			}
		}
		m.Fail("StreamSynchronize", 0, driver.IllegalAddress)
		m.Fail("EventQuery", 0, driver.IllegalAddress)
		return m, p.Run(x, g, b, make([]float64, 1))
	}
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "CUDA_LAUNCH_BLOCKING=1 names the kernel") {
		t.Errorf("%v", err)
	}
	t.Setenv(driver.LaunchBlockingVariable, "1")
	m, err := run()
	if captured, whole := m.Count("StreamBeginCapture"), m.Count("LaunchCooperative"); captured > 0 || whole > 0 {
		t.Errorf("%d captures and %d cooperative launches, want none", captured, whole)
	}
	const want = "launching add on a grid [1 1 1] of blocks [256 1 1] with 0 bytes of shared memory: y 0x"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), " n 3: cuLaunchKernel") {
		t.Errorf("%v, want %s…", err, want)
	}
}

// Without memory for a network the error says how much it takes and gives advice; the device goes
// on.
func TestOutOfMemory(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{Memory: 64 << 20}, false)
	const n = 4 << 20
	p, err := d.Load(doubling(n))
	if err == nil {
		b := device.Batch{X: make([]float32, n), Y: []int32{0}}
		err = p.Run(d.NewVector(n), d.NewVector(n), b, make([]float64, 1))
	}
	if !driver.IsOutOfMemory(err) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"taking", "in use", "free"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not contain %q", err, want)
		}
	}
}

// Memory of unreachable vectors is used again.
func TestMemoryIsUsedAgain(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{Memory: 40 << 20}, true)
	for range 24 {
		d.NewVector(1 << 18)
	}
	collectAll()
	d.NewVector(1)
	if err := d.Err(); err != nil || m.Used() > 40<<20 {
		t.Errorf("%v; %d bytes in use", err, m.Used())
	}
}

// Open returns every failure, and leaves nothing allocated.
func TestOpenFails(t *testing.T) {
	for _, c := range []struct {
		call   string
		result driver.Result
		want   string
	}{
		{"DeviceGetCount", driver.Unknown, "counting GPUs"},
		{"PrimaryCtxRetain", driver.OutOfMemory, "taking the context of GPU 0"},
		{"StreamCreate", driver.OutOfMemory, "making a stream"},
		{"ModuleLoadData", driver.NoBinary, "no kernel image"},
		{"ModuleGetFunction", driver.NotFound, "looking for kernel"},
	} {
		m, p := fakeBackend(t, fakegpu.Options{})
		m.Fail(c.call, 0, c.result)
		_, err := open(p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s fails: %v, want it to say %q", c.call, err, c.want)
		}
		if c.result != driver.Unknown && c.call != "PrimaryCtxRetain" {
			m.CheckLeaks(t)
		}
	}
	m, p := fakeBackend(t, fakegpu.Options{})
	p.index = 3
	if _, err := open(p); err == nil || !strings.Contains(err.Error(), "there is no GPU 3") {
		t.Errorf("GPU 3 of 1: %v", err)
	}
	m.CheckLeaks(t)
}

// The report names everything that a machine lacks: no driver, an old one, no GPU, no libraries for
// the GPU.
func TestReport(t *testing.T) {
	nothing := dynlib.None()
	missing := errors.New("the NVIDIA driver is not found")
	r := findOn(nothing, func(*dynlib.Finder) (*driver.API, string, int, error) { return nil, "", 0, missing })
	if name, why := r.Engine(); name != "cpu" || why != missing.Error() || len(r.GPUs) != 0 {
		t.Errorf("without a driver: %s, %s", name, why)
	}
	for _, c := range []struct {
		o    fakegpu.Options
		want string
	}{
		{fakegpu.Options{GPUs: -1}, "finds no GPU"},
		{fakegpu.Options{Version: 11080}, "want 12.0 or newer"},
		{fakegpu.Options{GPUs: 2}, "libraries of CUDA 13 are missing"},
		{fakegpu.Options{CC: 70}, "libraries of CUDA 12 are missing"},
	} {
		api := fakegpu.New(c.o).API()
		r := findOn(nothing, func(*dynlib.Finder) (*driver.API, string, int, error) {
			v, err := api.Start()
			return api, "libcuda.so.1", v, err
		})
		name, why := r.Engine()
		if name != "cpu" || !strings.Contains(why, c.want) {
			t.Errorf("%+v: engine %s because %q, want it to say %q\n%s", c.o, name, why, c.want, r)
		}
		if c.o.GPUs == 2 && strings.Count(r.String(), "Fake GPU") != 2 {
			t.Errorf("the report does not list both GPUs:\n%s", r)
		}
		for _, g := range r.GPUs {
			old := c.o.CC == 70
			if _, has := g.Lacks["bf16"]; has != old || g.Lacks["fp16"] != "" || (g.Lacks["tf32"] != "") != old {
				t.Errorf("%+v lacks %q", c.o, g.Lacks)
			}
		}
	}
}
