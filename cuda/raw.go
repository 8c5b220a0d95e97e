package cuda

import (
	"errors"
	"runtime"
	"time"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// RawAccess is direct access to the memory and kernels of a Device, for tests and benchmarks.
type RawAccess struct{ d *Device }

func (d *Device) Raw() RawAccess { return RawAccess{d} }

// Alloc returns the address of device memory with any content. [RawAccess.Free] frees it.
func (r RawAccess) Alloc(bytes int) (kernels.Address, error) {
	got, err := r.d.exec.TakeBlock(max(bytes, 1))
	return got.Address(), err
}

// Free frees memory that Alloc returned. Work that was sent before may still use it.
func (r RawAccess) Free(at kernels.Address) {
	ex := r.d.exec
	_ = ex.Do(func() error { // if the GPU is lost, nothing needs to be freed
		if b, ok := ex.BlockAt(driver.Pointer(at)); ok {
			ex.PutBlock(b)
		}
		return nil
	})
}

// Run copies every region to the device, runs the calls one after the other, copies all regions
// back, and waits.
func (r RawAccess) Run(regions []kernels.Region, calls ...kernels.Call) error {
	ex := r.d.exec
	return ex.DoInOrder(func() error {
		through, err := ex.AllocBuffer(executor.ChunkBytes)
		if err != nil {
			return err
		}
		defer ex.PutBuffer(through)
		for _, s := range regions {
			if err := ex.CopyIn(s, through); err != nil {
				return err
			}
		}
		if err := ex.Launch(calls...); err != nil {
			return err
		}
		for _, s := range regions {
			if err := ex.CopyOut(s, through); err != nil {
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

// Copy sends a copy of bytes within the device.
func (r RawAccess) Copy(dst, src kernels.Address, bytes int) error {
	ex := r.d.exec
	return ex.DoInOrder(func() error {
		return ex.CopyWithin(driver.Pointer(dst), driver.Pointer(src), bytes)
	})
}

// Time returns the GPU's time from before to after work, idle times included. work may use the
// device in any way.
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
	ex, ms := r.d.exec, 0.0
	err = ex.Do(func() (err error) {
		ms, err = ex.Between(from, to)
		return errors.Join(err, ex.DestroyEvents(from, to))
	})
	if worked != nil {
		return 0, worked
	}
	return time.Duration(ms * float64(time.Millisecond)), err
}

// recordTime records the GPU's clock after all that was sent.
func (r RawAccess) recordTime() (e driver.Event, err error) {
	ex := r.d.exec
	err = ex.DoInOrder(func() error {
		if err := ex.TimedEvent(&e); err != nil {
			return err
		}
		return ex.Record(e, ex.Stream)
	})
	return e, err
}

// FreeMemory returns how many bytes of the GPU are free, by the driver's count, after memory of
// unreachable vectors has been collected. Memory that the device keeps for reuse is not free.
func (r RawAccess) FreeMemory() (free int, err error) {
	runtime.GC()
	ex := r.d.exec
	err = ex.Do(func() error {
		left, _, err := ex.FreeMemory()
		free = int(left)
		return err
	})
	return free, err
}

// CopyRate returns the bandwidth of a copy within device memory, in GB/s, of bytes read and written
// together: the best of some turns.
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
	// The time from the start of the clock to the first copy is to be small beside all copies.
	times := max(5, min(1<<31/n, 512))
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
