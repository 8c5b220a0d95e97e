package selftest

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"fspda/device"
)

// leak is the number of bytes that may be missing at the end: the driver's own data grows a little.
const leak = 4 << 20

// memory opens the device repeatedly, works with it and closes it: all its memory must be freed. It
// also makes vectors that become unreachable, whose memory must be reused.
func (t Target) memory() []Check {
	guarded := func(run func() (string, error)) func(context.Context) (string, error) {
		return func(context.Context) (string, error) {
			if t.Again == nil || t.Free == nil {
				return "", SkipError("the device has no memory of its own")
			}
			return run()
		}
	}
	return []Check{{"memory/after closing", guarded(t.reopen)}, {"memory/of vectors", guarded(t.forget)}}
}

func (t Target) reopen() (string, error) {
	if err := t.workOnce(); err != nil { // on first use the driver allocates memory for itself
		return "", err
	}
	before, err := t.Free()
	if err != nil {
		return "", err
	}
	const times = 3
	for range times {
		if err := t.workOnce(); err != nil {
			return "", err
		}
	}
	after, err := t.Free()
	if err == nil && before-after > leak {
		err = fmt.Errorf("%d MB are missing after the device was opened and closed %d times", (before-after)>>20, times)
	}
	return fmt.Sprintf("%d MB free before, %d after %d times", before>>20, after>>20, times), err
}

// workOnce opens the device, computes a gradient and closes it.
func (t Target) workOnce() error {
	dev, end, err := t.Again()
	if err != nil {
		return err
	}
	net, b, err := t.examples()[0].open()
	if err == nil {
		_, _, err = gradient(net, dev, b)
	}
	return errors.Join(err, end())
}

// forget creates some GB of vectors and keeps none.
func (t Target) forget() (string, error) {
	n, times := 1<<24, 100
	if t.Small {
		n, times = 1<<16, 50
	}
	before, err := t.Free()
	if err != nil {
		return "", err
	}
	var last device.Vector
	for range times {
		last = t.Device.NewVector(n)
		runtime.GC()
	}
	one := t.Device.NewVector(1)
	t.Device.Gather(one, last, t.Device.NewIndex([]uint32{0}, nil))
	t.Device.Read(make([]float32, 1), one) // waits for all work
	after, err := t.Free()
	if took := before - after; err == nil && took > 4*n*times/4+leak {
		err = fmt.Errorf("%d unreachable vectors of %d MB occupy %d MB", times, 4*n>>20, took>>20)
	}
	return fmt.Sprintf("%d vectors of %.3g MB took %d MB", times, float64(4*n)/(1<<20), max(0, before-after)>>20), err
}
