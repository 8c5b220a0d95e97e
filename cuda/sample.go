package cuda

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// sampler draws coordinates on the GPU. The executor uses it.
type sampler struct {
	bitmaps executor.Block // zero between two draws
	strata  executor.Block // a counter, and kernels.StratifiedScratch
}

// SampleIndexes draws coordinates on the GPU, up to kernels.MostEach indexes in a launch: see
// device.IndexSampler.
func (d *Device) SampleIndexes(dst []device.Index, s device.Sampling, counters []uint64) {
	if s.Count < 1 || s.Count > s.Dim || len(counters) != len(dst) {
		panic(fmt.Sprintf("cuda: SampleIndexes: %d of %d coordinates, %d indexes, %d counters: "+
			"want 1 ≤ count ≤ dim and a counter for each index", s.Count, s.Dim, len(dst), len(counters)))
	}
	at, accesses := make([]kernels.Address, len(dst)), make([]executor.Access, len(dst))
	for i, old := range dst {
		x := d.reuseIndex("SampleIndexes", old, s.Count)
		x.n, x.last = s.Count, uint32(s.Dim-1)
		dst[i], at[i], accesses[i] = x, x.address(), executor.Writes(&x.dep)
	}
	if len(dst) == 0 || d.Err() != nil {
		return
	}
	from := append([]uint64(nil), counters...)
	d.exec.Enqueue(func() error {
		if s.Stratified {
			return d.sampler.stratified(d.exec, at, s, from)
		}
		return d.sampler.subsets(d.exec, at, s, from)
	}, accesses...)
}

// reuseIndex returns old where it has memory for n coordinates, or a new index.
func (d *Device) reuseIndex(op string, old device.Index, n int) *Index {
	x := d.index(op, old)
	if x == nil || x.block.Size < 4*n {
		x = &Index{d: d}
		if n > 0 {
			d.allocIndex(x, n)
		}
	}
	return x
}

func (m *sampler) subsets(ex *executor.Executor, at []kernels.Address, s device.Sampling, from []uint64) error {
	for len(at) > 0 {
		n := min(len(at), kernels.MostEach)
		if err := m.ensureBitmaps(ex, 4*kernels.SubsetsWords(s.Dim, n)); err != nil {
			return err
		}
		if err := ex.Launch(kernels.Subsets(at[:n], s.Dim, s.Count, from[:n], m.bitmaps.Address())); err != nil {
			return err
		}
		at, from = at[n:], from[n:]
	}
	return nil
}

// ensureBitmaps makes zeroed bitmaps of at least `bytes` bytes.
func (m *sampler) ensureBitmaps(ex *executor.Executor, bytes int) (err error) {
	if bytes <= m.bitmaps.Size {
		return nil
	}
	if m.bitmaps.Size > 0 {
		ex.PutBlock(m.bitmaps) // its next use comes later on the stream
		m.bitmaps = executor.Block{}
	}
	if m.bitmaps, err = ex.Alloc(bytes); err != nil {
		return fmt.Errorf("allocating scratch for drawing coordinates: %w", err)
	}
	return ex.SetBytes(m.bitmaps.At, 0, m.bitmaps.Size)
}

func (m *sampler) stratified(ex *executor.Executor, at []kernels.Address, s device.Sampling, from []uint64) error {
	if err := m.ensureStrata(ex); err != nil {
		return err
	}
	counter := m.strata.Address()
	for i := range at {
		if err := ex.Launch(kernels.StratifiedFrom(at[i], s.Dim, s.Count, from[i], counter, counter+8)...); err != nil {
			return err
		}
	}
	return nil
}

// ensureStrata makes the scratch of kernels.StratifiedFrom.
func (m *sampler) ensureStrata(ex *executor.Executor) error {
	if m.strata.Size > 0 {
		return nil
	}
	made, err := ex.Alloc(16)
	if err != nil {
		return fmt.Errorf("allocating scratch for drawing coordinates: %w", err)
	}
	for i, word := range kernels.StratifiedScratch { // each of four equal bytes
		if err := ex.SetBytes(made.At+8+4*driver.Pointer(i), uint8(word), 4); err != nil {
			return err
		}
	}
	m.strata = made
	return nil
}
