package cuda

import (
	"fmt"
	"sync"

	"fspda/cuda/driver"
	"fspda/device"
)

// peers are the GPUs of the process whose memory a GPU reads by itself.
type peers struct {
	mu    sync.Mutex
	known map[*Device]bool
}

// Fetch copies src, a vector of another GPU of this process, to dst: from GPU to GPU where there is
// a way, else through pinned memory of the host. It is false where src is of no GPU. When it
// returns, what is done next with either vector comes after the copy.
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
		d.Gather(dst, src, nil)
	case d.reaches(from.d):
		if err := d.fetch(to, from); err != nil {
			d.exec.fail(fmt.Errorf("copying a vector of %d numbers from %s to %s: %w", to.n, from.d.name, d.name, err))
		}
	default:
		d.stage(to, from)
	}
	return true
}

// fetch copies by the copy engines. The copy waits for what was done with src before, and what is
// done with src later waits for the copy.
func (d *Device) fetch(to, from *Vector) error {
	srcExec, dstExec := from.d.exec, d.exec
	var ready, done driver.Event
	err := srcExec.runOp(func() (err error) {
		if ready, err = srcExec.takeEvent(); err != nil {
			return err
		}
		return srcExec.record(ready, srcExec.stream)
	}, reads(&from.dep))
	if err != nil {
		return err
	}
	err = dstExec.runOp(func() (err error) {
		if done, err = dstExec.takeEvent(); err != nil {
			return err
		}
		if err := dstExec.waitEvent(dstExec.stream, ready); err != nil {
			return err
		}
		r := dstExec.api.MemcpyPeer(to.block.at, dstExec.context, from.block.at, srcExec.context, to.bytes(), dstExec.stream)
		if err := dstExec.api.Check(r, "cuMemcpyPeerAsync", "copying %d bytes from GPU to GPU", to.bytes()); err != nil {
			return err
		}
		return dstExec.record(done, dstExec.stream)
	}, writes(&to.dep))
	srcExec.enqueue(func() error {
		srcExec.idleEvents = append(srcExec.idleEvents, ready)
		if done == 0 {
			return nil
		}
		defer dstExec.discardEvents(done)
		return srcExec.waitEvent(srcExec.stream, done)
	}, reads(&from.dep))
	return err
}

// stage copies through the host, a chunk at a time.
func (d *Device) stage(to, from *Vector) {
	var before func()
	for at := 0; at < 4*to.n; at += chunkBytes {
		bytes := min(chunkBytes, 4*to.n-at)
		up := func(b *buffer) {
			d.upload(to.block.at+driver.Pointer(at), bytes, func(own *buffer) { copy(own.bytes[:bytes], b.bytes) },
				&to.dep)
		}
		wait := from.d.download(from.block.at+driver.Pointer(at), bytes, up, &from.dep)
		if before != nil {
			before()
		}
		before = wait
	}
	before()
	if err := from.d.Err(); err != nil {
		d.exec.fail(err)
	}
}

// reaches tells whether the GPU can read the memory of another. The first time it opens the way.
func (d *Device) reaches(other *Device) bool {
	d.peers.mu.Lock()
	defer d.peers.mu.Unlock()
	can, asked := d.peers.known[other]
	if asked {
		return can
	}
	ex := d.exec
	err := ex.do(func() error {
		var answer int32
		if err := ex.api.Check(ex.api.DeviceCanAccess(&answer, ex.gpu, other.exec.gpu), "cuDeviceCanAccessPeer",
			"asking for a way from %s to %s", other.name, d.name); err != nil || answer == 0 {
			return err
		}
		r := ex.api.CtxEnablePeer(other.exec.context, 0)
		can = r == driver.Success || r == driver.PeerAlreadyEnabled
		return nil // without a way there is the host
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
