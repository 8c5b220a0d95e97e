package cuda

import (
	"runtime"
	"sync"
	"weak"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/device"
)

// stores are the data sets that a GPU has a copy of, so that only the numbers of rows travel in an
// iteration.
type datasets struct {
	mu  sync.Mutex
	all map[weak.Pointer[device.CacheKey]]*dataset
}

// store is bytes of a data set on the GPU.
type dataset struct {
	block executor.Block // none: there was no room
	dep   executor.Dependency
}

// shareOfStores is the part of a GPU's memory that one data set may take.
const datasetShare = 8

// storeOf returns the copy of the set that a batch picks its rows of, which it makes when the set
// is first seen; nil where there is none.
func (d *Device) datasetOf(b device.Batch) *dataset {
	if b.CacheKey == nil || b.Rows == nil || len(b.Bytes) == 0 || len(b.Bytes) > int(d.properties.Memory)/datasetShare {
		return nil
	}
	key := weak.Make(b.CacheKey)
	d.datasets.mu.Lock()
	defer d.datasets.mu.Unlock()
	s := d.datasets.all[key]
	if s == nil {
		s = d.uploadDataset(b)
		if d.datasets.all == nil {
			d.datasets.all = map[weak.Pointer[device.CacheKey]]*dataset{}
		}
		d.datasets.all[key] = s
		runtime.AddCleanup(b.CacheKey, d.dropDataset, key)
	}
	if s.block.Size == 0 {
		return nil
	}
	return s
}

func (d *Device) uploadDataset(b device.Batch) *dataset {
	s := &dataset{}
	var err error
	if s.block, err = d.exec.TakeBlock(len(b.Bytes)); err != nil {
		return s // batches go to the GPU one by one
	}
	for at := 0; at < len(b.Bytes); at += executor.ChunkBytes {
		part := b.Bytes[at:min(at+executor.ChunkBytes, len(b.Bytes))]
		d.upload(s.block.At+driver.Pointer(at), len(part), func(host *executor.Buffer) { copy(host.Bytes, part) }, &s.dep)
	}
	return s
}

// dropStore is for the collector: nobody has the set any more. What is still to be sent of it keeps
// the store.
func (d *Device) dropDataset(key weak.Pointer[device.CacheKey]) {
	d.datasets.mu.Lock()
	s := d.datasets.all[key]
	delete(d.datasets.all, key)
	d.datasets.mu.Unlock()
	if s != nil && s.block.Size > 0 {
		runtime.AddCleanup(s, d.exec.Discard, s.block)
	}
}
