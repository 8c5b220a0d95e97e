package cuda

import (
	"runtime"
	"time"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// Bare is memory and kernels of a Device without vectors and programs around them, for tests and
// measurements.
type RawAccess struct{ d *Device }

// Bare returns the bare device.
func (d *Device) Raw() RawAccess { return RawAccess{d} }

// Alloc returns where so many bytes of the device lie, which hold anything. [Bare.Free] gives them
// back.
func (r RawAccess) Alloc(bytes int) (kernels.Address, error) {
	got, err := r.d.exec.TakeBlock(max(bytes, 1))
	return got.Address(), err
}

// Free gives back what Alloc returned. Work that was sent before may still use it.
func (r RawAccess) Free(at kernels.Address) {
	ex := r.d.exec
	_ = ex.Do(func() error { // after a loss there is nothing to give back
		if b, ok := ex.BlockAt(driver.Pointer(at)); ok {
			ex.PutBlock(b)
		}
		return nil
	})
}

// Run copies every region to the device, runs the calls one after the other, copies all regions
// back, and waits for all of it.
func (r RawAccess) Run(regions []kernels.Region, calls ...kernels.Call) error {
	ex := r.d.exec
	return ex.DoInOrder(func() error {
		room, err := ex.AllocBuffer(executor.ChunkBytes) // the largest
		if err != nil {
			return err
		}
		defer ex.PutBuffer(room)
		for _, s := range regions {
			if err := ex.CopyIn(s, room); err != nil {
				return err
			}
		}
		if err := ex.Launch(calls...); err != nil {
			return err
		}
		for _, s := range regions {
			if err := ex.CopyOut(s, room); err != nil {
				return err
			}
		}
		return ex.Synchronize()
	})
}

// Launch sends calls to the device without waiting for them.
func (r RawAccess) Launch(calls ...kernels.Call) error {
	ex := r.d.exec
	return ex.DoInOrder(func() error { return ex.Launch(calls...) })
}

// Copy sends a copy of bytes within the device: the yardstick of all that goes through its memory.
func (r RawAccess) Copy(dst, src kernels.Address, bytes int) error {
	ex := r.d.exec
	return ex.DoInOrder(func() error {
		return ex.CopyWithin(driver.Pointer(dst), driver.Pointer(src), bytes)
	})
}

// Time is what the GPU takes from before to after work, on its own clock, the times included in
// which it has nothing to do. work may use the device in any way.
func (r RawAccess) Time(work func() error) (time.Duration, error) {
	from, err := r.recordTime()
	if err != nil {
		return 0, err
	}
	worked := work()
	to, err := r.recordTime()
	if err != nil {
		return 0, err
	}
	ex, ms := r.d.exec, float32(0)
	err = ex.Do(func() error {
		if err := ex.API.Check(ex.API.EventSynchronize(to), "cuEventSynchronize", "waiting for the GPU"); err != nil {
			return err
		}
		if err := ex.API.Check(ex.API.EventElapsedTime(&ms, from, to), "cuEventElapsedTime",
			"reading the GPU's clock"); err != nil {
			return err
		}
		return ex.DestroyEvents(from, to)
	})
	if worked != nil {
		return 0, worked
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// stamp records the GPU's clock behind all that was sent.
func (r RawAccess) recordTime() (e driver.Event, err error) {
	ex := r.d.exec
	err = ex.DoInOrder(func() error {
		if err := ex.API.Check(ex.API.EventCreate(&e, 0), "cuEventCreate", "making an event"); err != nil {
			return err
		}
		return ex.API.Check(ex.API.EventRecord(e, ex.Stream), "cuEventRecord", "recording an event")
	})
	return e, err
}

// FreeMemory is how many bytes of the GPU nobody has, in this process or another. What the device
// keeps to use again counts as had, once vectors that nobody reaches have been looked for.
func (r RawAccess) FreeMemory() (free int, err error) {
	runtime.GC()
	ex := r.d.exec
	err = ex.Do(func() error {
		var left, total uintptr
		if err := ex.API.Check(ex.API.MemGetInfo(&left, &total), "cuMemGetInfo",
			"asking for the free memory"); err != nil {
			return err
		}
		free = int(left)
		return nil
	})
	return free, err
}

// CopyRate is the bandwidth of a copy within the memory of the device, GB/s, of so many bytes read
// and written together, in the fastest of some turns.
func (r RawAccess) CopyRate(bytes int) (best float64, err error) {
	n := max(bytes/2, 1)
	from, err := r.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer r.Free(from)
	to, err := r.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer r.Free(to)
	times := max(5, 1<<24/n) // a copy of little memory is over before the clock notices
	for range 4 {
		took, err := r.Time(func() error {
			for range times {
				if err := r.Copy(to, from, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		best = max(best, 2*float64(n)*float64(times)/float64(max(took, 1)))
	}
	return best, nil
}
