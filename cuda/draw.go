package cuda

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// drawing is what the owner keeps to draw coordinates with.
type drawScratch struct {
	bitmaps block // bitmaps, zero between two draws
	strata  block // a counter, and kernels.StratifiedScratch
}

var _ device.IndexSampler = (*Device)(nil)

// SampleIndexes draws coordinates on the GPU, up to kernels.MostEach indexes in a launch: see
// device.Drawer.
func (d *Device) SampleIndexes(dst []device.Index, law device.Sampling, counters []uint64) {
	if law.Count < 1 || law.Count > law.Dim || len(counters) != len(dst) {
		panic(fmt.Sprintf("cuda: SampleIndexes of %d from %d coordinates, %d indexes from %d streams: want as many of each, and some of the coordinates", law.Count, law.Dim, len(dst), len(counters)))
	}
	at, accesses := make([]kernels.Address, len(dst)), make([]access, len(dst))
	for i, old := range dst {
		x := d.reuseIndex("SampleIndexes", old, law.Count)
		x.n, x.last = law.Count, uint32(law.Dim-1)
		dst[i], at[i], accesses[i] = x, x.address(), writes(&x.dep)
	}
	if len(dst) == 0 || d.Err() != nil {
		return
	}
	ex, from := d.exec, append([]uint64(nil), counters...)
	ex.enqueue(func() error {
		if law.Stratified {
			return ex.drawStrata(at, law, from)
		}
		return ex.drawSubsets(at, law, from)
	}, accesses...)
}

// roomyIndex is old where it has room for n coordinates, or a new index.
func (d *Device) reuseIndex(op string, old device.Index, n int) *Index {
	x := d.index(op, old)
	if x == nil || x.block.size < 4*n {
		x = &Index{d: d}
		if n > 0 {
			d.allocIndex(x, n)
		}
	}
	return x
}

func (ex *executor) drawSubsets(at []kernels.Address, law device.Sampling, from []uint64) error {
	for len(at) > 0 {
		n := min(len(at), kernels.MostEach)
		if err := ex.ensureBitmaps(4 * kernels.SubsetsWords(law.Dim, n)); err != nil {
			return err
		}
		if err := ex.launch(kernels.Subsets(at[:n], law.Dim, law.Count, from[:n],
			ex.draw.bitmaps.address())); err != nil {
			return err
		}
		at, from = at[n:], from[n:]
	}
	return nil
}

// clearedWords has room for so many bytes of bitmaps.
func (ex *executor) ensureBitmaps(bytes int) (err error) {
	words := &ex.draw.bitmaps
	if bytes <= words.size {
		return nil
	}
	if words.size > 0 {
		ex.pool.put(*words) // who takes it next comes later on the stream
		*words = block{}
	}
	if *words, err = ex.alloc(bytes); err != nil {
		return fmt.Errorf("making room to draw coordinates: %w", err)
	}
	return ex.api.Check(ex.api.MemsetD8(words.at, 0, uintptr(words.size), ex.stream), "cuMemsetD8Async",
		"clearing %d bytes to draw coordinates with", words.size)
}

func (ex *executor) drawStrata(at []kernels.Address, law device.Sampling, from []uint64) error {
	if err := ex.ensureStrata(); err != nil {
		return err
	}
	counter := ex.draw.strata.address()
	for i := range at {
		if err := ex.launch(kernels.StratifiedFrom(at[i], law.Dim, law.Count, from[i], counter,
			counter+8)...); err != nil {
			return err
		}
	}
	return nil
}

// prepareStrata makes what kernels.Stratified works with.
func (ex *executor) ensureStrata() error {
	s := &ex.draw.strata
	if s.size > 0 {
		return nil
	}
	made, err := ex.alloc(16)
	if err != nil {
		return fmt.Errorf("making room to draw coordinates: %w", err)
	}
	for i, word := range kernels.StratifiedScratch { // each of four equal bytes
		err := ex.api.Check(ex.api.MemsetD8(made.at+8+4*driver.Pointer(i), uint8(word), 4, ex.stream), "cuMemsetD8Async",
			"setting what draws coordinates")
		if err != nil {
			return err
		}
	}
	*s = made
	return nil
}
