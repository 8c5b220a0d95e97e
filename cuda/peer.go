package cuda

import (
	"fmt"
	"sync"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/device"
)

// peers is the GPUs of the process, and whether a GPU can read their memory.
type peers struct {
	mu    sync.Mutex
	known map[*Device]bool
}

// Fetch copies src, a vector of another GPU of this process, to dst: from GPU to GPU where the
// driver can, else through pinned host memory. It is false where src is of no GPU. Later operations
// on either vector come after the copy.
func (d *Device) Fetch(dst, src device.Vector) bool {
	to := d.vector("Fetch", dst)
	from, ok := src.(*Vector)
	if !ok {
		return false
	}
	checkLen("Fetch", "src", from.n, to.n)
	switch {
	case to.n == 0:
	case from.d == d:
		d.Do(device.Gather(dst, src, nil))
	case d.reaches(from.d):
		if err := d.fetch(to, from); err != nil {
			d.exec.Fail(fmt.Errorf("copying a vector of %d numbers from %s to %s: %w", to.n, from.d.name, d.name, err))
		}
	default:
		d.stage(to, from)
	}
	return true
}

// fetch copies by the copy engines. The copy waits for earlier operations on src, and later ones on
// src wait for the copy.
func (d *Device) fetch(to, from *Vector) error {
	srcExec, dstExec := from.d.exec, d.exec
	var ready, done driver.Event
	err := srcExec.RunOp(func() (err error) {
		if ready, err = srcExec.TakeEvent(); err != nil {
			return err
		}
		return srcExec.Record(ready, srcExec.Stream)
	}, executor.Reads(&from.dep))
	if err != nil {
		return err
	}
	err = dstExec.RunOp(func() (err error) {
		if done, err = dstExec.TakeEvent(); err != nil {
			return err
		}
		if err := dstExec.WaitEvent(dstExec.Stream, ready); err != nil {
			return err
		}
		r := dstExec.API.MemcpyPeer(to.block.At, dstExec.Context, from.block.At, srcExec.Context, uintptr(to.bytes()),
			dstExec.Stream)
		if err := dstExec.API.Check(r, "cuMemcpyPeerAsync", "copying %d bytes from GPU to GPU",
			to.bytes()); err != nil {
			return err
		}
		return dstExec.Record(done, dstExec.Stream)
	}, executor.Writes(&to.dep))
	srcExec.Enqueue(func() error {
		srcExec.PutEvent(ready)
		if done == 0 {
			return nil
		}
		defer dstExec.DiscardEvents(done)
		return srcExec.WaitEvent(srcExec.Stream, done)
	}, executor.Reads(&from.dep))
	return err
}

// stage copies through the host, a chunk at a time.
func (d *Device) stage(to, from *Vector) {
	var before func()
	for at := 0; at < 4*to.n; at += executor.ChunkBytes {
		bytes := min(executor.ChunkBytes, 4*to.n-at)
		up := func(b *executor.Buffer) {
			d.upload(to.block.At+driver.Pointer(at), bytes, func(own *executor.Buffer) {
				copy(own.Bytes[:bytes], b.Bytes)
			}, &to.dep)
		}
		wait := from.d.download(from.block.At+driver.Pointer(at), bytes, up, &from.dep)
		if before != nil {
			before()
		}
		before = wait
	}
	before()
	if err := from.d.Err(); err != nil {
		d.exec.Fail(err)
	}
}

// reaches reports whether the GPU can read the memory of another, for which it enables access at
// the first call.
func (d *Device) reaches(other *Device) bool {
	d.peers.mu.Lock()
	defer d.peers.mu.Unlock()
	can, asked := d.peers.known[other]
	if asked {
		return can
	}
	ex := d.exec
	err := ex.Do(func() error {
		var answer int32
		if err := ex.API.Check(ex.API.DeviceCanAccess(&answer, ex.GPU, other.exec.GPU), "cuDeviceCanAccessPeer",
			"asking for peer access from %s to %s", other.name, d.name); err != nil || answer == 0 {
			return err
		}
		r := ex.API.CtxEnablePeer(other.exec.Context, 0)
		can = r == driver.Success || r == driver.PeerAlreadyEnabled
		return nil // where access is impossible, copies go through the host
	})
	if err != nil {
		can = false
	}
	if d.peers.known == nil {
		d.peers.known = map[*Device]bool{}
	}
	d.peers.known[other] = can
	return can
}
