package cuda

import (
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/driver/drivertest"
	"fspda/data"
	"fspda/model"
	"fspda/train"
)

// idle is an imaginary GPU that does nothing, at once: what is left is the work of the host. calls counts what the owner asks of the driver.
func idle(b *testing.B, calls *int, options ...Option) *Device {
	b.Helper()
	_, p := imaginaryParts(b, drivertest.Options{})
	d, err := open(p, options...)
	if err != nil {
		b.Fatal(err)
	}
	if err := d.owner.ask(func() error { silence(p.api, calls); return nil }); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() }) // its work was never done
	return d
}

// silence has the driver do nothing from now on.
func silence(a *driver.API, calls *int) {
	done := func() driver.Result { *calls++; return driver.Success }
	a.LaunchKernel = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream, []unsafe.Pointer) driver.Result {
		return done()
	}
	a.LaunchTogether = a.LaunchKernel
	a.MemcpyHtoD = func(driver.Pointer, unsafe.Pointer, uintptr, driver.Stream) driver.Result { return done() }
	a.MemcpyDtoH = func(dst unsafe.Pointer, _ driver.Pointer, n uintptr, _ driver.Stream) driver.Result {
		clear(unsafe.Slice((*byte)(dst), n))
		return done()
	}
	a.MemcpyDtoD = func(driver.Pointer, driver.Pointer, uintptr, driver.Stream) driver.Result { return done() }
	a.MemsetD8 = func(driver.Pointer, uint8, uintptr, driver.Stream) driver.Result { return done() }
	a.EventRecord = func(driver.Event, driver.Stream) driver.Result { return done() }
	a.EventQuery = func(driver.Event) driver.Result { return done() }
	a.StreamWaitEvent = func(driver.Stream, driver.Event, uint32) driver.Result { return done() }
	a.GraphLaunch = func(driver.GraphExec, driver.Stream) driver.Result { return done() }
}

// effort is what an iteration cost so far: processor time of all threads and of the owner's, and calls of the driver.
type effort struct {
	at         time.Time
	all, owner time.Duration
	calls      int
}

func effortOf(b *testing.B, d *Device, calls *int) effort {
	b.Helper()
	const thread = 1 // RUSAGE_THREAD of Linux
	e := effort{at: time.Now(), all: processorTime(b, syscall.RUSAGE_SELF)}
	if err := d.owner.ask(func() error {
		e.owner, e.calls = processorTime(b, thread), *calls
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	return e
}

func processorTime(b *testing.B, of int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(of, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var digits = sync.OnceValues(func() (*data.Set, error) {
	return data.Synthetic(data.SyntheticOptions{Train: 10240, Test: 20, Seed: 3})
})

// What the host does for an iteration of figure 1: ten agents with batches of 256 digits. The first row is FSPDA-SA with one random edge and a
// tenth of the coordinates. all is the processor time of all threads, owner that of the one which all agents share.
func BenchmarkHostIteration(b *testing.B) {
	for _, row := range []struct {
		name string
		set  func(c *train.Config)
		with []Option
	}{
		{"fspda-sa", func(*train.Config) {}, nil},
		{"fspda-sa-launches", func(*train.Config) {}, []Option{Launches(true)}},
		{"fspda-sa-sparse", func(c *train.Config) { c.Density = 0.01 }, nil},
		{"fspda-sa-whole", func(c *train.Config) { c.Density = 1 }, nil},
		{"fspda-sa-ring", func(c *train.Config) { c.Graph, c.Edges = "ring", "full" }, nil},
		{"fspda-storm", func(c *train.Config) { c.Algo = "fspda-storm" }, nil},
		{"dsgd", func(c *train.Config) { c.Algo, c.Edges = "dsgd", "full" }, nil},
		{"choco", func(c *train.Config) { c.Algo, c.Eta = "choco", train.AutoFloat{Auto: true} }, nil},
		{"sgd", func(c *train.Config) { c.Algo = "sgd" }, nil},
	} {
		b.Run(row.name, func(b *testing.B) { hostIterations(b, row.set, row.with...) })
	}
}

func hostIterations(b *testing.B, change func(c *train.Config), options ...Option) {
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
	calls := 0
	d := idle(b, &calls, options...)
	m := model.NewEngine(net, d)
	s, err := c.Resolve(set, m)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var begin, end effort
	onStep := func(t int) {
		switch t {
		case 1:
			b.ResetTimer()
			begin = effortOf(b, d, &calls)
		case c.Iterations - 1:
			end = effortOf(b, d, &calls)
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
	b.ReportMetric(each((end.owner-begin.owner).Seconds()*1e6), "owner-µs")
	b.ReportMetric(each(float64(end.calls-begin.calls)), "driver-calls")
	b.ReportMetric(0, "ns/op")
}
