package bench

import (
	"math"
	"time"

	"fspda/device"
)

// kernelRepeats is how often a run on a card runs a kernel, so that what the host does for a run is
// small beside it.
const kernelRepeats = 20

// onCard is what runs a kernel on the card, made ready when it first runs.
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

// timed is the time of one run of a kernel.
func (m *meter) timed(run func() error) (time.Duration, error) {
	if m.o.Card == nil {
		return timed(run)
	}
	if err := repeat(run, 2); err != nil { // the second records what later ones play
		return 0, err
	}
	took, err := m.o.Card.Time(func() error { return repeat(run, runsPerTurn) })
	return max(1, took/time.Duration(runsPerTurn*m.times)), err
}

// copyOnCard returns what measures a copy within the card's memory of as many bytes, read and
// written together. What it cannot measure is no limit.
func (m *meter) copyOnCard(bytes int) func(time.Duration) float64 {
	return func(time.Duration) float64 {
		rate, err := m.o.Card.Copy(max(1<<16, min(bytes, copyBytes)))
		if err != nil || math.IsInf(rate, 0) {
			return 0
		}
		return rate
	}
}
