package cuda

import (
	"runtime"
	"sync"
	"weak"

	"fspda/cuda/driver"
	"fspda/device"
)

// stores are the data sets that a GPU has a copy of, so that only the numbers of rows travel in an
// iteration.
type stores struct {
	mu  sync.Mutex
	all map[weak.Pointer[device.Store]]*store
}

// store is bytes of a data set on the GPU.
type store struct {
	block  block // none: there was no room
	hazard hazard
}

// shareOfStores is the part of a GPU's memory that one data set may take.
const shareOfStores = 8

// storeOf returns the copy of the set that a batch picks its rows of, which it makes when the set
// is first seen; nil where there is none.
func (d *Device) storeOf(b device.Batch) *store {
	if b.Store == nil || b.Rows == nil || len(b.Bytes) == 0 || len(b.Bytes) > int(d.properties.Memory)/shareOfStores {
		return nil
	}
	key := weak.Make(b.Store)
	d.stores.mu.Lock()
	defer d.stores.mu.Unlock()
	s := d.stores.all[key]
	if s == nil {
		s = d.newStore(b)
		if d.stores.all == nil {
			d.stores.all = map[weak.Pointer[device.Store]]*store{}
		}
		d.stores.all[key] = s
		runtime.AddCleanup(b.Store, d.dropStore, key)
	}
	if s.block.size == 0 {
		return nil
	}
	return s
}

func (d *Device) newStore(b device.Batch) *store {
	s := &store{}
	var err error
	if s.block, err = d.owner.get(len(b.Bytes)); err != nil {
		return s // batches go to the GPU one by one
	}
	for at := 0; at < len(b.Bytes); at += chunk {
		part := b.Bytes[at:min(at+chunk, len(b.Bytes))]
		d.upload(s.block.at+driver.Pointer(at), len(part), func(host *buffer) { copy(host.bytes, part) }, &s.hazard)
	}
	return s
}

// dropStore is for the collector: nobody has the set any more. What is still to be sent of it keeps
// the store.
func (d *Device) dropStore(key weak.Pointer[device.Store]) {
	d.stores.mu.Lock()
	s := d.stores.all[key]
	delete(d.stores.all, key)
	d.stores.mu.Unlock()
	if s != nil && s.block.size > 0 {
		runtime.AddCleanup(s, d.owner.discard, s.block)
	}
}
