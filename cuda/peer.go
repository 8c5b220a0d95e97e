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
			d.owner.fail(fmt.Errorf("copying a vector of %d numbers from %s to %s: %w", to.n, from.d.name, d.name, err))
		}
	default:
		d.stage(to, from)
	}
	return true
}

// fetch copies by the copy engines. The copy waits for what was done with src before, and what is
// done with src later waits for the copy.
func (d *Device) fetch(to, from *Vector) error {
	its, mine := from.d.owner, d.owner
	var ready, done driver.Event
	err := its.sendNow(func() (err error) {
		if ready, err = its.event(); err != nil {
			return err
		}
		return its.record(ready, its.stream)
	}, reading(&from.hazard))
	if err != nil {
		return err
	}
	err = mine.sendNow(func() (err error) {
		if done, err = mine.event(); err != nil {
			return err
		}
		if err := mine.await(mine.stream, ready); err != nil {
			return err
		}
		r := mine.api.MemcpyPeer(to.block.at, mine.context, from.block.at, its.context, to.bytes(), mine.stream)
		if err := mine.api.Check(r, "cuMemcpyPeerAsync", "copying %d bytes from GPU to GPU", to.bytes()); err != nil {
			return err
		}
		return mine.record(done, mine.stream)
	}, writing(&to.hazard))
	its.send(func() error {
		its.events = append(its.events, ready)
		if done == 0 {
			return nil
		}
		defer mine.discardEvents(done)
		return its.await(its.stream, done)
	}, reading(&from.hazard))
	return err
}

// stage copies through the host, a chunk at a time.
func (d *Device) stage(to, from *Vector) {
	var before func()
	for at := 0; at < 4*to.n; at += chunk {
		bytes := min(chunk, 4*to.n-at)
		up := func(b *buffer) {
			d.upload(to.block.at+driver.Pointer(at), bytes, func(own *buffer) { copy(own.bytes[:bytes], b.bytes) },
				&to.hazard)
		}
		wait := from.d.download(from.block.at+driver.Pointer(at), bytes, up, &from.hazard)
		if before != nil {
			before()
		}
		before = wait
	}
	before()
	if err := from.d.Err(); err != nil {
		d.owner.fail(err)
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
	o := d.owner
	err := o.ask(func() error {
		var answer int32
		if err := o.api.Check(o.api.DeviceCanAccess(&answer, o.gpu, other.owner.gpu), "cuDeviceCanAccessPeer",
			"asking for a way from %s to %s", other.name, d.name); err != nil || answer == 0 {
			return err
		}
		r := o.api.CtxEnablePeer(other.owner.context, 0)
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
