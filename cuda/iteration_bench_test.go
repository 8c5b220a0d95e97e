package cuda

import (
	"testing"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/driver/drivertest"
	"fspda/data"
	"fspda/model"
	"fspda/train"
)

// idle is an imaginary GPU that does nothing, at once: what is left is the work of the host.
func idle(b *testing.B) *Device {
	b.Helper()
	_, p := imaginaryParts(b, drivertest.Options{})
	a := p.api
	a.LaunchKernel = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream, []unsafe.Pointer) driver.Result {
		return driver.Success
	}
	a.MemcpyHtoD = func(driver.Pointer, unsafe.Pointer, uintptr, driver.Stream) driver.Result { return driver.Success }
	a.MemcpyDtoH = func(dst unsafe.Pointer, _ driver.Pointer, n uintptr, _ driver.Stream) driver.Result {
		clear(unsafe.Slice((*byte)(dst), n))
		return driver.Success
	}
	a.MemcpyDtoD = func(driver.Pointer, driver.Pointer, uintptr, driver.Stream) driver.Result { return driver.Success }
	a.MemsetD8 = func(driver.Pointer, uint8, uintptr, driver.Stream) driver.Result { return driver.Success }
	a.EventRecord = func(driver.Event, driver.Stream) driver.Result { return driver.Success }
	a.EventQuery = func(driver.Event) driver.Result { return driver.Success }
	a.StreamWaitEvent = func(driver.Stream, driver.Event, uint32) driver.Result { return driver.Success }
	a.GraphLaunch = func(driver.GraphExec, driver.Stream) driver.Result { return driver.Success }
	d, err := open(p)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() }) // its work was never done
	return d
}

// What the host does for an iteration of figure 1's FSPDA-SA: ten agents with batches of 256 digits, one random edge, a tenth of the coordinates.
func BenchmarkHostIteration(b *testing.B) {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 10240, Test: 20, Seed: 3})
	if err != nil {
		b.Fatal(err)
	}
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden, c.Metrics = 10240, 20, train.Widths{100}, "test"
	c.Agents, c.Graph, c.Batch, c.Iterations, c.EvalPoints = 10, "complete", 256, max(b.N, 10), 1
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden})
	if err != nil {
		b.Fatal(err)
	}
	d := idle(b)
	m := model.NewEngine(net, d)
	s, err := c.Resolve(set, m)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var begin, end time.Time
	onStep := func(t int) {
		switch t {
		case 1:
			begin = time.Now()
			b.ResetTimer()
		case c.Iterations - 1:
			end = time.Now()
			b.StopTimer()
		}
	}
	if _, err := train.Run(b.Context(), s, train.Options{Device: d, Model: m, OnStep: onStep}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(end.Sub(begin).Seconds()*1e6/float64(c.Iterations-2), "µs/iteration")
}
