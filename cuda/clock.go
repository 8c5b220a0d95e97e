package cuda

import (
	"errors"
	"fmt"
	"math"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// time is the clock of cudnn.Selection. Several runs go to the GPU as a graph, as they do later:
// else what is over sooner than the host can send it would look slower than it is. What cannot be
// part of a graph is so found too.
func (ex *executor) timeWork(n, turns int, send func() error) (fastest float64, err error) {
	if n == 0 {
		return ex.elapsed(send)
	}
	exec, err := ex.capture("what is timed", func() error {
		for range n {
			if err := send(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%w: %w", cudnn.ErrRefused, err)
	}
	fastest = math.Inf(1)
	for range turns {
		ms, err := ex.elapsed(func() error {
			return ex.api.Check(ex.api.GraphLaunch(exec, ex.stream), "cuGraphLaunch", "launching what is timed")
		})
		if err != nil {
			return 0, errors.Join(err, ex.destroyTimed(exec))
		}
		fastest = min(fastest, ms)
	}
	return fastest, ex.destroyTimed(exec)
}

func (ex *executor) destroyTimed(exec driver.GraphExec) error {
	return ex.api.Check(ex.api.GraphExecDestroy(exec), "cuGraphExecDestroy", "giving back the graph of what was timed")
}

// between is what the GPU takes from before to after something is sent to the stream, in ms. Others
// than the owner use Bare.Time.
func (ex *executor) elapsed(send func() error) (ms float64, err error) {
	var at [2]driver.Event
	for i := range at {
		if err := ex.api.Check(ex.api.EventCreate(&at[i], 0), "cuEventCreate", "making an event"); err != nil {
			return 0, errors.Join(err, ex.destroyEvents(at[:i]...))
		}
	}
	defer func() { err = errors.Join(err, ex.destroyEvents(at[:]...)) }()
	if err := ex.record(at[0], ex.stream); err != nil {
		return 0, err
	}
	if err := send(); err != nil {
		return 0, err
	}
	if err := ex.record(at[1], ex.stream); err != nil {
		return 0, err
	}
	if err := ex.api.Check(ex.api.EventSynchronize(at[1]), "cuEventSynchronize", "waiting for the GPU"); err != nil {
		return 0, err
	}
	var took float32
	err = ex.api.Check(ex.api.EventElapsedTime(&took, at[0], at[1]), "cuEventElapsedTime", "reading the GPU's clock")
	return float64(took), err
}
