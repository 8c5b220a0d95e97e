package cuda

import (
	"fmt"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// drawing is what the owner keeps to draw coordinates with.
type drawing struct {
	words  block // bitmaps, zero between two draws
	strata block // a counter, and kernels.StratifiedScratch
}

var _ device.Drawer = (*Device)(nil)

// DrawIndexes draws coordinates on the GPU, up to kernels.MostEach indexes in a launch: see
// device.Drawer.
func (d *Device) DrawIndexes(dst []device.Index, law device.Law, counters []uint64) {
	if law.Count < 1 || law.Count > law.Dim || len(counters) != len(dst) {
		panic(fmt.Sprintf("cuda: DrawIndexes of %d from %d coordinates, %d indexes from %d streams: want as many of each, and some of the coordinates", law.Count, law.Dim, len(dst), len(counters)))
	}
	at, touches := make([]kernels.Address, len(dst)), make([]touch, len(dst))
	for i, old := range dst {
		x := d.roomyIndex("DrawIndexes", old, law.Count)
		x.n, x.last = law.Count, uint32(law.Dim-1)
		dst[i], at[i], touches[i] = x, x.address(), writing(&x.hazard)
	}
	if len(dst) == 0 || d.Err() != nil {
		return
	}
	o, from := d.owner, append([]uint64(nil), counters...)
	o.send(func() error {
		if law.Strata {
			return o.drawStrata(at, law, from)
		}
		return o.drawSubsets(at, law, from)
	}, touches...)
}

// roomyIndex is old where it has room for n coordinates, or a new index.
func (d *Device) roomyIndex(op string, old device.Index, n int) *Index {
	x := d.index(op, old)
	if x == nil || x.block.size < 4*n {
		x = &Index{d: d}
		if n > 0 {
			d.allocIndex(x, n)
		}
	}
	return x
}

func (o *owner) drawSubsets(at []kernels.Address, law device.Law, from []uint64) error {
	for len(at) > 0 {
		n := min(len(at), kernels.MostEach)
		if err := o.clearedWords(4 * kernels.SubsetsWords(law.Dim, n)); err != nil {
			return err
		}
		if err := o.launch(kernels.Subsets(at[:n], law.Dim, law.Count, from[:n],
			o.drawing.words.address())); err != nil {
			return err
		}
		at, from = at[n:], from[n:]
	}
	return nil
}

// clearedWords has room for so many bytes of bitmaps.
func (o *owner) clearedWords(bytes int) (err error) {
	words := &o.drawing.words
	if bytes <= words.size {
		return nil
	}
	if words.size > 0 {
		o.pool.give(*words) // who takes it next comes later on the stream
		*words = block{}
	}
	if *words, err = o.alloc(bytes); err != nil {
		return fmt.Errorf("making room to draw coordinates: %w", err)
	}
	return o.api.Check(o.api.MemsetD8(words.at, 0, uintptr(words.size), o.stream), "cuMemsetD8Async",
		"clearing %d bytes to draw coordinates with", words.size)
}

func (o *owner) drawStrata(at []kernels.Address, law device.Law, from []uint64) error {
	if err := o.prepareStrata(); err != nil {
		return err
	}
	counter := o.drawing.strata.address()
	for i := range at {
		if err := o.launch(kernels.StratifiedFrom(at[i], law.Dim, law.Count, from[i], counter,
			counter+8)...); err != nil {
			return err
		}
	}
	return nil
}

// prepareStrata makes what kernels.Stratified works with.
func (o *owner) prepareStrata() error {
	s := &o.drawing.strata
	if s.size > 0 {
		return nil
	}
	made, err := o.alloc(16)
	if err != nil {
		return fmt.Errorf("making room to draw coordinates: %w", err)
	}
	for i, word := range kernels.StratifiedScratch { // each of four equal bytes
		err := o.api.Check(o.api.MemsetD8(made.at+8+4*driver.Pointer(i), uint8(word), 4, o.stream), "cuMemsetD8Async",
			"setting what draws coordinates")
		if err != nil {
			return err
		}
	}
	*s = made
	return nil
}
