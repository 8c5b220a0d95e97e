//go:build linux

package cuda

import (
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/data"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// idleGPU is a fake GPU that computes nothing, so that only the work of the host is left. It may
// keep the host waiting as a real one does.
type idleGPU struct {
	callTime  time.Duration // each driver call takes as long
	graphTime time.Duration // a graph takes as long on the GPU

	freeAt     time.Time                  // when it has completed all that was sent
	eventTimes map[driver.Event]time.Time // when it reaches an event
	observation
}

func (y *idleGPU) called() driver.Result {
	y.calls++
	if y.callTime > 0 {
		for begin := time.Now(); time.Since(begin) < y.callTime; {
		}
	}
	return driver.Success
}

// open opens a device on it.
func (y *idleGPU) open(b *testing.B, options ...Option) *Device {
	b.Helper()
	_, p := fakeBackend(b, fakegpu.Options{})
	y.eventTimes = map[driver.Event]time.Time{}
	d, err := open(p, options...)
	if err != nil {
		b.Fatal(err)
	}
	if err := d.exec.Do(func() error { y.replace(p.api); return nil }); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() }) // its work was never computed
	y.watch(b, d)
	return d
}

// replace replaces the driver's functions by ones that compute nothing.
func (y *idleGPU) replace(a *driver.API) {
	context := a.CtxSetCurrent
	current := map[int]driver.Context{}
	a.CtxSetCurrent = func(c driver.Context) driver.Result { // the fake is slow
		if id := syscall.Gettid(); current[id] != c {
			current[id] = c
			return context(c)
		}
		return driver.Success
	}
	a.LaunchKernel = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream,
		[]unsafe.Pointer) driver.Result {
		return y.called()
	}
	a.MemcpyHtoD = func(driver.Pointer, unsafe.Pointer, uintptr, driver.Stream) driver.Result { return y.called() }
	a.MemcpyDtoH = func(dst unsafe.Pointer, _ driver.Pointer, n uintptr, _ driver.Stream) driver.Result {
		clear(unsafe.Slice((*byte)(dst), n))
		return y.called()
	}
	a.MemcpyDtoD = func(driver.Pointer, driver.Pointer, uintptr, driver.Stream) driver.Result { return y.called() }
	a.MemsetD8 = func(driver.Pointer, uint8, uintptr, driver.Stream) driver.Result { return y.called() }
	a.StreamWaitEvent = func(driver.Stream, driver.Event, uint32) driver.Result { return y.called() }
	busy := func() driver.Result {
		if now := time.Now(); now.After(y.freeAt) {
			y.freeAt = now
		}
		y.freeAt = y.freeAt.Add(y.graphTime)
		return y.called()
	}
	a.GraphLaunch = func(driver.GraphExec, driver.Stream) driver.Result { return busy() }
	a.LaunchCooperative = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream,
		[]unsafe.Pointer) driver.Result {
		return busy()
	}
	a.EventRecord = func(e driver.Event, _ driver.Stream) driver.Result {
		y.eventTimes[e] = y.freeAt
		return y.called()
	}
	a.EventQuery = func(e driver.Event) driver.Result {
		if y.graphTime > 0 && time.Now().Before(y.eventTimes[e]) {
			return driver.NotReady
		}
		return y.called()
	}
}

// hostCost is the cost of iterations so far: processor time of all threads and of the executor, and
// driver calls.
type hostCost struct {
	at            time.Time
	all, executor time.Duration
	calls         int
}

func hostCostOf(b *testing.B, d *Device, o *observation) hostCost {
	b.Helper()
	e := hostCost{at: time.Now(), all: processorTime(b)}
	if err := d.exec.Do(func() error {
		e.executor, e.calls = o.worked+o.sinceBegin(b), o.calls
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return e
}

// observation is the measurements of an executor.
type observation struct {
	calls  int           // driver calls
	worked time.Duration // processor time until it last slept
	begun  time.Duration // thread time when it got its thread
}

// watch begins the measurement of d's executor.
func (o *observation) watch(b *testing.B, d *Device) {
	if err := d.exec.Do(func() error {
		o.begun = threadTime(b)
		d.exec.OnThread = func(now bool) {
			if now {
				o.begun = threadTime(b)
			} else {
				o.worked += o.sinceBegin(b)
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
}

func (o *observation) sinceBegin(b *testing.B) time.Duration { return threadTime(b) - o.begun }

// processorTime returns the processor time of all threads.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// threadTime returns the processor time of this thread, to the nanosecond.
func threadTime(b *testing.B) time.Duration {
	const thread = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, thread, uintptr(unsafe.Pointer(&t)), 0); e != 0 {
		b.Fatal(e)
	}
	return time.Duration(t.Nano())
}

var digits = sync.OnceValues(func() (*data.Set, error) {
	return data.Synthetic(data.SyntheticOptions{Train: 10240, Test: 20, Seed: 3})
})

// BenchmarkHostIteration measures the host's work for an iteration of figure 1: ten agents with
// batches of 256 digits. The first row is FSPDA-SA with one random edge and a tenth of the
// coordinates. all-µs is the processor time of all threads, owner-µs the time of the executor's
// goroutine. The last rows have a GPU that takes 20 µs for the gradients of a group, and a driver
// whose calls take 2 µs.
func BenchmarkHostIteration(b *testing.B) {
	for _, row := range []struct {
		name string
		gpu  idleGPU
		set  func(c *train.Config)
		with []Option
	}{
		{"fspda-sa", idleGPU{}, func(*train.Config) {}, nil},
		{"fspda-sa-launches", idleGPU{}, func(*train.Config) {}, []Option{SeparateLaunches(true)}},
		{"fspda-sa-sparse", idleGPU{}, func(c *train.Config) { c.Density = 0.01 }, nil},
		{"fspda-sa-whole", idleGPU{}, func(c *train.Config) { c.Density = 1 }, nil},
		{"fspda-sa-ring", idleGPU{}, func(c *train.Config) { c.Graph, c.Edges = "ring", "full" }, nil},
		{"fspda-storm", idleGPU{}, func(c *train.Config) { c.Algo = "fspda-storm" }, nil},
		{"dsgd", idleGPU{}, func(c *train.Config) { c.Algo, c.Edges = "dsgd", "full" }, nil},
		{"choco", idleGPU{}, func(c *train.Config) { c.Algo = "choco" }, nil},
		{"sgd", idleGPU{}, func(c *train.Config) { c.Algo = "sgd" }, nil},
		{"fspda-sa-busy", idleGPU{callTime: 2 * time.Microsecond, graphTime: 20 * time.Microsecond},
			func(*train.Config) {}, nil},
		{"fspda-sa-busy-launches", idleGPU{callTime: 2 * time.Microsecond, graphTime: 20 * time.Microsecond},
			func(*train.Config) {}, []Option{SeparateLaunches(true)}},
	} {
		b.Run(row.name, func(b *testing.B) {
			gpu := row.gpu // a new one for each b.N
			hostIterations(b, &gpu, row.set, row.with...)
		})
	}
}

func hostIterations(b *testing.B, gpu *idleGPU, change func(c *train.Config), options ...Option) {
	set, err := digits()
	if err != nil {
		b.Fatal(err)
	}
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden, c.Metrics = 10240, 20, train.Widths{100}, "test"
	c.Agents, c.Graph, c.Batch, c.Iterations, c.EvalPoints = 10, "complete", 256, max(b.N, 10), 1
	change(&c)
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden})
	if err != nil {
		b.Fatal(err)
	}
	d := gpu.open(b, options...)
	m := model.NewEngine(net, d)
	s, err := c.Resolve(set, m)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var begin, end hostCost
	onStep := func(t int) {
		switch t {
		case 1:
			b.ResetTimer()
			begin = hostCostOf(b, d, &gpu.observation)
		case c.Iterations - 1:
			end = hostCostOf(b, d, &gpu.observation)
			b.StopTimer()
		}
	}
	res, err := train.Run(b.Context(), s, train.Options{Device: d, Model: m, OnStep: onStep})
	if err != nil || res.Status != train.Finished {
		b.Fatalf("the run is %s, %v", res.Status, err)
	}
	each := func(v float64) float64 { return v / float64(c.Iterations-2) }
	b.ReportMetric(each(end.at.Sub(begin.at).Seconds()*1e6), "µs/iteration")
	b.ReportMetric(each((end.all-begin.all).Seconds()*1e6), "all-µs")
	b.ReportMetric(each((end.executor-begin.executor).Seconds()*1e6), "owner-µs")
	b.ReportMetric(each(float64(end.calls-begin.calls)), "driver-calls")
	b.ReportMetric(0, "ns/op")
}
