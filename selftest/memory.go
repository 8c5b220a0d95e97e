package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"fspda/device"
)

// leak is the number of bytes that may be missing at the end: the driver's own data grows a little.
const leak = 4 << 20

// lostEach is the least number of bytes that a leak costs each time: the driver hands out 2 MB.
const lostEach = 1 << 20

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

// reopen counts the memory that each of several rounds costs. The driver and the libraries load
// kernels at first use, now and then many MB, and keep them while the process has the GPU, and
// other processes on the GPU take memory too; a leak comes back in every round. If each of the
// first rounds costs memory, more are made.
func (t Target) reopen() (string, error) {
	if err := t.workOnce(); err != nil {
		return "", err
	}
	first, err := t.Free()
	if err != nil {
		return "", err
	}
	const least, most = 4, 16
	before, lost, times := first, math.MaxInt, 0
	for times < least || lost >= lostEach && times < most {
		if err := t.workOnce(); err != nil {
			return "", err
		}
		free, err := t.Free()
		if err != nil {
			return "", err
		}
		before, lost, times = free, min(lost, before-free), times+1
	}
	saw := fmt.Sprintf("%d MB free before, %d after %d times", first>>20, before>>20, times)
	if lost >= lostEach {
		return saw, fmt.Errorf("each time that the device was opened and closed cost memory, %d MB at least: %d MB "+
			"are missing after %d times", lost>>20, (first-before)>>20, times)
	}
	return saw, nil
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

// forget creates some GB of vectors and keeps none. It does so again if they seem to occupy memory,
// since other processes on the GPU may have taken it.
func (t Target) forget() (string, error) {
	saw, err := t.forgetOnce()
	for again := 0; err != nil && again < 2; again++ {
		saw, err = t.forgetOnce()
	}
	return saw, err
}

func (t Target) forgetOnce() (string, error) {
	n, times, every := 1<<24, 100, 1
	if t.Small {
		n, times, every = 1<<16, 50, 5
	}
	before, err := t.Free()
	if err != nil {
		return "", err
	}
	var last device.Vector
	for i := range times {
		last = t.Device.NewVector(n)
		if i%every == 0 {
			runtime.GC()
		}
	}
	one := t.Device.NewVector(1)
	t.Device.Do(device.Gather(one, last, t.Device.NewIndex([]uint32{0}, nil)))
	t.Device.Read(make([]float32, 1), one) // waits for all work
	after, err := t.Free()
	if took := before - after; err == nil && took > 4*n*times/4+leak {
		err = fmt.Errorf("%d unreachable vectors of %d MB occupy %d MB", times, 4*n>>20, took>>20)
	}
	return fmt.Sprintf("%d vectors of %.3g MB took %d MB", times, float64(4*n)/(1<<20), max(0, before-after)>>20), err
}
