package cuda

import (
	"errors"
	"fmt"
	"math"

	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
)

// time is the clock of cudnn.Choosing. Several runs go to the GPU as a graph, as they do later:
// else what is over sooner than the host can send it would look slower than it is. What cannot be
// part of a graph is so found too.
func (o *owner) time(n, turns int, send func() error) (fastest float64, err error) {
	if n == 0 {
		return o.between(send)
	}
	exec, err := o.capture("what is timed", func() error {
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
		ms, err := o.between(func() error {
			return o.api.Check(o.api.GraphLaunch(exec, o.stream), "cuGraphLaunch", "launching what is timed")
		})
		if err != nil {
			return 0, errors.Join(err, o.dropTimed(exec))
		}
		fastest = min(fastest, ms)
	}
	return fastest, o.dropTimed(exec)
}

func (o *owner) dropTimed(exec driver.GraphExec) error {
	return o.api.Check(o.api.GraphExecDestroy(exec), "cuGraphExecDestroy", "giving back the graph of what was timed")
}

// between is what the GPU takes from before to after something is sent to the stream, in ms. Others
// than the owner use Bare.Time.
func (o *owner) between(send func() error) (ms float64, err error) {
	var at [2]driver.Event
	for i := range at {
		if err := o.api.Check(o.api.EventCreate(&at[i], 0), "cuEventCreate", "making an event"); err != nil {
			return 0, errors.Join(err, o.destroy(at[:i]...))
		}
	}
	defer func() { err = errors.Join(err, o.destroy(at[:]...)) }()
	if err := o.record(at[0], o.stream); err != nil {
		return 0, err
	}
	if err := send(); err != nil {
		return 0, err
	}
	if err := o.record(at[1], o.stream); err != nil {
		return 0, err
	}
	if err := o.api.Check(o.api.EventSynchronize(at[1]), "cuEventSynchronize", "waiting for the GPU"); err != nil {
		return 0, err
	}
	var took float32
	err = o.api.Check(o.api.EventElapsedTime(&took, at[0], at[1]), "cuEventElapsedTime", "reading the GPU's clock")
	return float64(took), err
}
