package measure

import (
	"math"
	"time"

	"fspda/device"
)

// kernelRepeats is the number of times that one run repeats a kernel, so that the overhead of the
// host is small.
const kernelRepeats = 20

// onCard returns a function that runs a kernel on the device. Its first call prepares the kernel.
func (m *meter) onCard(c *device.Call, in, out [][]float32) func() error {
	m.times = kernelRepeats
	var run func() error
	return func() error {
		if run == nil {
			bound, err := m.o.Card.Bind(c, in, out, kernelRepeats)
			if err != nil {
				return err
			}
			run, m.route = bound.Run, bound.Route
		}
		return run()
	}
}

// queue returns a function that runs an operation on vectors. On a Card it repeats the operation, so
// that the time from the start of the clock to the first of them is small beside them.
func (m *meter) queue(run func()) func() error {
	if m.o.Card != nil {
		m.times = kernelRepeats
	}
	return func() error {
		for range m.times {
			run()
		}
		return nil
	}
}

// timed returns the time of one run of a kernel.
func (m *meter) timed(run func() error) (time.Duration, error) {
	if m.o.Card == nil {
		return timed(run)
	}
	if err := repeat(run, 2); err != nil { // the second run captures the graph that later ones replay
		return 0, err
	}
	took, err := m.o.Card.Time(func() error { return repeat(run, runsPerTurn) })
	return max(1, took/time.Duration(runsPerTurn*m.times)), err
}

// copyOnCard returns a function that measures the bandwidth of a copy in device memory that moves
// as many bytes, reads plus writes. It returns 0, no limit, if the measurement fails.
func (m *meter) copyOnCard(bytes int) func(time.Duration) float64 {
	return func(time.Duration) float64 {
		rate, err := m.o.Card.Copy(max(1<<16, min(bytes, copyBytes)))
		if err != nil || math.IsInf(rate, 0) {
			return 0
		}
		return rate
	}
}
