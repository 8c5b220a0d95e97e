package cuda

import (
	"runtime"
	"sync"
	"weak"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/device"
)

// datasets is the data sets of which a GPU has a copy. Batches of these are only row numbers.
type datasets struct {
	mu  sync.Mutex
	all map[weak.Pointer[device.CacheKey]]*dataset
}

// dataset is the bytes of a data set on the GPU.
type dataset struct {
	block executor.Block // empty: there was no memory for it
	dep   executor.Dependency
}

// datasetShare is the part 1/datasetShare of a GPU's memory that one data set may take.
const datasetShare = 8

// datasetOf returns the copy of a batch's data set, which it makes when the set is first seen. It
// is nil where there is none.
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
		return s // batches are copied one by one
	}
	for at := 0; at < len(b.Bytes); at += executor.ChunkBytes {
		part := b.Bytes[at:min(at+executor.ChunkBytes, len(b.Bytes))]
		d.upload(s.block.At+driver.Pointer(at), len(part), func(host *executor.Buffer) { copy(host.Bytes, part) },
			&s.dep)
	}
	return s
}

// dropDataset drops the copy of a set that is no longer reachable. It is for a finaliser.
// Operations that are not sent yet keep the copy.
func (d *Device) dropDataset(key weak.Pointer[device.CacheKey]) {
	d.datasets.mu.Lock()
	s := d.datasets.all[key]
	delete(d.datasets.all, key)
	d.datasets.mu.Unlock()
	if s != nil && s.block.Size > 0 {
		runtime.AddCleanup(s, d.exec.Discard, s.block)
	}
}
