package cuda

import (
	"runtime"
	"time"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
)

// Bare is memory and kernels of a Device without vectors and programs around them, for tests and
// measurements.
type Bare struct{ d *Device }

// Bare returns the bare device.
func (d *Device) Bare() Bare { return Bare{d} }

// Alloc returns where so many bytes of the device lie, which hold anything. [Bare.Free] gives them
// back.
func (b Bare) Alloc(bytes int) (kernels.Address, error) {
	got, err := b.d.owner.get(max(bytes, 1))
	return got.address(), err
}

// Free gives back what Alloc returned. Work that was sent before may still use it.
func (b Bare) Free(at kernels.Address) {
	o := b.d.owner
	_ = o.ask(func() error { // after a loss there is nothing to give back
		if size, ok := o.pool.all[driver.Pointer(at)]; ok {
			o.pool.give(block{driver.Pointer(at), size})
		}
		return nil
	})
}

// Run copies every region to the device, runs the calls one after the other, copies all regions
// back, and waits for all of it.
func (b Bare) Run(regions []kernels.Region, calls ...kernels.Call) error {
	o := b.d.owner
	return o.askBehind(func() error {
		room, err := o.newBuffer(len(o.pinned.free) - 1) // the largest
		if err != nil {
			return err
		}
		defer o.pinned.give(room)
		for _, s := range regions {
			if err := o.bring(s, room); err != nil {
				return err
			}
		}
		if err := o.launch(calls...); err != nil {
			return err
		}
		for _, s := range regions {
			if err := o.fetch(s, room); err != nil {
				return err
			}
		}
		return o.synchronize()
	})
}

// askBehind is ask for work that comes behind all that waits in the window.
func (o *owner) askBehind(task func() error) error {
	return o.ask(func() error {
		o.flush()
		return task()
	})
}

// bring copies a region to the device, through a pinned buffer.
func (o *owner) bring(s kernels.Region, room *buffer) error {
	for at := 0; at < len(s.Bytes); at += len(room.bytes) {
		n := copy(room.bytes, s.Bytes[at:])
		r := o.api.MemcpyHtoD(driver.Pointer(s.At)+driver.Pointer(at), room.pointer(), uintptr(n), o.stream)
		if err := o.api.Check(r, "cuMemcpyHtoDAsync", "copying %d bytes to the GPU", n); err != nil {
			return err
		}
		if err := o.synchronize(); err != nil { // the buffer is used again
			return err
		}
	}
	return nil
}

// fetch copies a region from the device.
func (o *owner) fetch(s kernels.Region, room *buffer) error {
	for at := 0; at < len(s.Bytes); at += len(room.bytes) {
		n := min(len(room.bytes), len(s.Bytes)-at)
		r := o.api.MemcpyDtoH(room.pointer(), driver.Pointer(s.At)+driver.Pointer(at), uintptr(n), o.stream)
		if err := o.api.Check(r, "cuMemcpyDtoHAsync", "copying %d bytes from the GPU", n); err != nil {
			return err
		}
		if err := o.synchronize(); err != nil {
			return err
		}
		copy(s.Bytes[at:], room.bytes[:n])
	}
	return nil
}

func (o *owner) synchronize() error {
	return o.api.Check(o.api.StreamSynchronize(o.stream), "cuStreamSynchronize", "waiting for the GPU")
}

// Launch sends calls to the device without waiting for them.
func (b Bare) Launch(calls ...kernels.Call) error {
	o := b.d.owner
	return o.askBehind(func() error { return o.launch(calls...) })
}

// Copy sends a copy of bytes within the device: the yardstick of all that goes through its memory.
func (b Bare) Copy(dst, src kernels.Address, bytes int) error {
	o := b.d.owner
	return o.askBehind(func() error {
		r := o.api.MemcpyDtoD(driver.Pointer(dst), driver.Pointer(src), uintptr(bytes), o.stream)
		return o.api.Check(r, "cuMemcpyDtoDAsync", "copying %d bytes within the GPU", bytes)
	})
}

// Time is what the GPU takes from before to after work, on its own clock, the times included in
// which it has nothing to do. work may use the device in any way.
func (b Bare) Time(work func() error) (time.Duration, error) {
	from, err := b.stamp()
	if err != nil {
		return 0, err
	}
	worked := work()
	to, err := b.stamp()
	if err != nil {
		return 0, err
	}
	o, ms := b.d.owner, float32(0)
	err = o.ask(func() error {
		if err := o.api.Check(o.api.EventSynchronize(to), "cuEventSynchronize", "waiting for the GPU"); err != nil {
			return err
		}
		if err := o.api.Check(o.api.EventElapsedTime(&ms, from, to), "cuEventElapsedTime",
			"reading the GPU's clock"); err != nil {
			return err
		}
		return o.destroy(from, to)
	})
	if worked != nil {
		return 0, worked
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// stamp records the GPU's clock behind all that was sent.
func (b Bare) stamp() (e driver.Event, err error) {
	o := b.d.owner
	err = o.askBehind(func() error {
		if err := o.api.Check(o.api.EventCreate(&e, 0), "cuEventCreate", "making an event"); err != nil {
			return err
		}
		return o.api.Check(o.api.EventRecord(e, o.stream), "cuEventRecord", "recording an event")
	})
	return e, err
}

func (o *owner) destroy(all ...driver.Event) error {
	for _, e := range all {
		if err := o.api.Check(o.api.EventDestroy(e), "cuEventDestroy", "giving back an event"); err != nil {
			return err
		}
	}
	return nil
}

// FreeMemory is how many bytes of the GPU nobody has, in this process or another. What the device
// keeps to use again counts as had, once vectors that nobody reaches have been looked for.
func (b Bare) FreeMemory() (free int, err error) {
	runtime.GC()
	o := b.d.owner
	err = o.ask(func() error {
		var left, total uintptr
		if err := o.api.Check(o.api.MemGetInfo(&left, &total), "cuMemGetInfo",
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
func (b Bare) CopyRate(bytes int) (best float64, err error) {
	n := max(bytes/2, 1)
	from, err := b.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer b.Free(from)
	to, err := b.Alloc(n)
	if err != nil {
		return 0, err
	}
	defer b.Free(to)
	times := max(5, 1<<24/n) // a copy of little memory is over before the clock notices
	for range 4 {
		took, err := b.Time(func() error {
			for range times {
				if err := b.Copy(to, from, n); err != nil {
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
