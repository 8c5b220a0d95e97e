package cuda

import (
	"errors"

	"fspda/cuda/driver"
)

// time sends something n times to the stream, and returns what the GPU takes from the first to the last, in ms. Others than the owner use Bare.Time.
func (o *owner) time(n int, send func() error) (ms float64, err error) {
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
	for range n {
		if err := send(); err != nil {
			return 0, err
		}
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
