package data

import (
	"fmt"

	"fspda/device"
	"fspda/internal/rng"
)

// Batch fills dst with the consecutive examples from, from+1, ... to-1, for evaluation. It reuses
// the memory of dst where that is large enough. It panics where 0 <= from <= to <= Len does not
// hold. A picture that cannot be read is an error.
func (s Split) Batch(dst *device.Batch, from, to int) error {
	if from < 0 || to < from || to > s.Len() {
		panic(fmt.Sprintf("data: batch of examples %d to %d of %d", from, to, s.Len()))
	}
	if s.pictures != nil {
		examples := make([]int32, 0, to-from)
		for e := from; e < to; e++ {
			examples = append(examples, int32(e))
		}
		return s.Gather(dst, examples)
	}
	if s.picks() {
		s.pick(dst, to-from)
		for row := range dst.Rows {
			dst.Rows[row] = int32(from + row)
		}
	} else {
		f := s.Features()
		resize(dst, to-from, f)
		s.norm.apply(dst.X, s.Pixels[from*f:to*f], nil)
	}
	copy(dst.Y, s.Labels[from:to])
	return nil
}

// examplesAhead is how many examples before its turn an example is asked for.
const examplesAhead = 4

// Gather fills dst with the examples of the given indices, in their order and as they are for
// evaluation. It reuses the memory of dst where that is large enough. It panics where an index is
// not in [0,Len). A picture that cannot be read is an error.
func (s Split) Gather(dst *device.Batch, examples []int32) error {
	if s.picks() {
		s.pick(dst, len(examples))
		labels, rows, classes := s.Labels, dst.Rows[:len(examples)], dst.Y[:len(examples)]
		for row, e := range examples {
			if uint(e) >= uint(len(labels)) {
				s.check(examples)
			}
			rows[row], classes[row] = e, labels[e]
		}
		return nil
	}
	s.claim(dst, examples)
	if s.pictures != nil {
		return s.pictures.gather(s, dst, examples, None, augmentKey{}, nil)
	}
	f := s.Features()
	for row, e := range examples {
		s.norm.apply(dst.X[row*f:(row+1)*f], s.pixels(e), s.pixels(examples[min(row+examplesAhead, len(examples)-1)]))
		dst.Y[row] = s.Labels[e]
	}
	return nil
}

// GatherVaried is Gather as training sees the examples: varied by chance, which is a function of
// seed, agent and step alone. Those of no agent, such as -1, share no chance with any Loader.
func (s Split) GatherVaried(dst *device.Batch, examples []int32, seed uint64, agent, step int) error {
	return s.gatherVaried(dst, examples, augmentKey{seed, agent, step}, new(worker), nil)
}

// gatherVaried is Gather as training sees the examples: varied by chance. It ends with ErrClosed
// where stop is closed meanwhile.
func (s Split) gatherVaried(dst *device.Batch, examples []int32, k augmentKey, w *worker, stop <-chan struct{}) error {
	switch {
	case s.pictures != nil:
		s.claim(dst, examples)
		return s.pictures.gather(s, dst, examples, s.varied, k, stop)
	case s.varied == None:
		return s.Gather(dst, examples)
	}
	s.claim(dst, examples)
	f := s.Features()
	for row, e := range examples {
		stream := k.stream(row)
		s.vary(w, e, &stream)
		s.norm.apply(dst.X[row*f:(row+1)*f], w.picture[:f], nil)
		dst.Y[row] = s.Labels[e]
	}
	return nil
}

// vary writes an example in memory, varied, to w.picture.
func (s Split) vary(w *worker, e int32, stream *rng.Stream) {
	picture, from := w.room(s.Features()), s.pixels(e)
	if s.varied == ImageNet {
		across, down := randomCrop(stream, s.shape[1], s.shape[0], s.shape[0])
		w.scale.run(w.picture, from, 3*s.shape[1], s.shape[1], s.shape[0], across, down)
		return
	}
	shifted(picture, from, s.shape, stream)
}

// claim gives dst room for examples that are there.
func (s Split) claim(dst *device.Batch, examples []int32) {
	s.check(examples)
	resize(dst, len(examples), s.Features())
}

// check panics where there is no such example.
func (s Split) check(examples []int32) {
	for _, e := range examples {
		if e < 0 || int(e) >= s.Len() {
			panic(fmt.Sprintf("data: example %d of %d", e, s.Len()))
		}
	}
}

// pixels is one example in memory.
func (s Split) pixels(e int32) []uint8 {
	f := s.Features()
	return s.Pixels[int(e)*f:][:f]
}

// resize gives dst room for n examples, and no more memory than that needs.
func resize(dst *device.Batch, n, features int) {
	if cap(dst.X) < n*features {
		dst.X = make([]float32, n*features)
	}
	if cap(dst.Y) < n {
		dst.Y = make([]int32, n)
	}
	dst.X, dst.Y = dst.X[:n*features], dst.Y[:n]
	dst.Bytes, dst.Rows, dst.Scale, dst.Shift, dst.CacheKey = nil, nil, nil, nil, nil
}

// picks says whether a batch names the examples where they lie: pixels with one normalisation,
// which devices read as they are.
func (s Split) picks() bool { return s.pictures == nil && len(s.norm.channels) == 1 }

// pick gives dst room for n examples that are rows of the set.
func (s Split) pick(dst *device.Batch, n int) {
	if cap(dst.Rows) < n || dst.Rows == nil {
		dst.Rows = make([]int32, n)
	}
	if cap(dst.Y) < n {
		dst.Y = make([]int32, n)
	}
	dst.Rows, dst.Y = dst.Rows[:n], dst.Y[:n]
	dst.X, dst.Bytes, dst.Scale, dst.Shift, dst.CacheKey = nil, s.Pixels, s.norm.scales, s.norm.shifts, s.store
}
