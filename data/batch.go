package data

import (
	"fmt"
	"image"

	"fspda/device"
	"fspda/internal/rng"
)

// Batch fills dst with the consecutive examples from to to-1, for evaluation. It reuses the memory
// of dst if it is large enough. It panics unless 0 <= from <= to <= Len. An image that cannot be
// read is an error.
func (s Split) Batch(dst *device.Batch, from, to int) error {
	if from < 0 || to < from || to > s.Len() {
		panic(fmt.Sprintf("data: batch of examples %d to %d of %d", from, to, s.Len()))
	}
	if s.windows != nil {
		s.windows.batch(dst, from, to)
		return nil
	}
	if s.images != nil {
		examples := make([]int32, 0, to-from)
		for e := from; e < to; e++ {
			examples = append(examples, int32(e))
		}
		return s.Gather(dst, examples)
	}
	if s.indexed() {
		s.reserveRows(dst, to-from)
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

// examplesAhead is the prefetch distance in examples.
const examplesAhead = 4

// Gather fills dst with the examples of the given indices, in their order and without augmentation.
// It reuses the memory of dst if it is large enough. It panics if an index is not in [0,Len). An
// image that cannot be read is an error.
func (s Split) Gather(dst *device.Batch, examples []int32) error {
	if s.windows != nil {
		s.check(examples)
		s.windows.gather(dst, examples)
		return nil
	}
	if s.indexed() {
		s.reserveRows(dst, len(examples))
		labels, rows, classes := s.Labels, dst.Rows[:len(examples)], dst.Y[:len(examples)]
		for row, e := range examples {
			if uint(e) >= uint(len(labels)) {
				s.check(examples)
			}
			rows[row], classes[row] = e, labels[e]
		}
		return nil
	}
	s.reserve(dst, examples)
	if s.images != nil {
		return s.images.gather(s, dst, examples, nil, variation{augment: None}, augmentKey{}, nil)
	}
	f := s.Features()
	for row, e := range examples {
		s.norm.apply(dst.X[row*f:(row+1)*f], s.pixels(e), s.pixels(examples[min(row+examplesAhead, len(examples)-1)]))
		dst.Y[row] = s.Labels[e]
	}
	return nil
}

// GatherAugmented is Gather with crop and mirror of training, but without its other variations: the
// statistics of batch norm are measured on whole images. Its random choices are a function of seed,
// agent and step. An agent that has no Loader, such as -1, shares no random choices with any.
func (s Split) GatherAugmented(dst *device.Batch, examples []int32, seed uint64, agent, step int) error {
	s.variation = variation{augment: s.augment}
	return s.gatherAugmented(dst, examples, nil, augmentKey{seed, agent, step}, new(imageScratch), nil)
}

// gatherAugmented is Gather with the variation of training, see [decodedImages.gather] for spare.
// It returns ErrClosed if stop is closed meanwhile.
func (s Split) gatherAugmented(dst *device.Batch, examples, spare []int32, k augmentKey, buf *imageScratch,
	stop <-chan struct{}) error {
	if s.images == nil && !s.changes() {
		return s.Gather(dst, examples)
	}
	s.reserve(dst, examples)
	if s.images != nil {
		if err := s.images.gather(s, dst, examples, spare, s.variation, k, stop); err != nil {
			return err
		}
	} else {
		f := s.Features()
		for row, e := range examples {
			stream := k.stream(row)
			s.augmented(buf, e, &stream)
			s.policy.run(buf.pixels[:f], s.shape, buf, &stream)
			s.norm.apply(dst.X[row*f:(row+1)*f], buf.pixels[:f], nil)
			eraseRandomly(dst.X[row*f:(row+1)*f], s.shape, s.erase, &stream)
			dst.Y[row] = s.Labels[e]
		}
	}
	stream := k.stream(mixPosition)
	s.mixing.run(dst, s.shape, buf, &stream)
	return nil
}

// augmented writes the augmented example, which is in memory, to buf.pixels.
func (s Split) augmented(buf *imageScratch, e int32, stream *rng.Stream) {
	from := s.pixels(e)
	buf.pixels = grown(buf.pixels, s.Features())
	switch s.augment {
	case None:
		copy(buf.pixels, from)
	case ImageNet:
		across, down := randomCrop(stream, s.shape[1], s.shape[0], s.shape[0])
		buf.scale.set(s.shape[1], s.shape[0], across, down)
		buf.scale.run(buf.pixels, from, 3*s.shape[1], image.Point{})
	default:
		shifted(buf.pixels, from, s.shape, stream)
	}
}

// reserve sizes dst for the examples and sets their labels.
func (s Split) reserve(dst *device.Batch, examples []int32) {
	s.check(examples)
	resize(dst, len(examples), s.Features())
}

// check panics if an example does not exist.
func (s Split) check(examples []int32) {
	for _, e := range examples {
		if e < 0 || int(e) >= s.Len() {
			panic(fmt.Sprintf("data: example %d of %d", e, s.Len()))
		}
	}
}

func (s Split) pixels(e int32) []uint8 {
	f := s.Features()
	return s.Pixels[int(e)*f:][:f]
}

// resize sizes dst for n examples and allocates no more memory than that needs.
func resize(dst *device.Batch, n, features int) {
	dst.X, dst.Y = grown(dst.X, n*features), grown(dst.Y, n)
	dst.Bytes, dst.Rows, dst.Scale, dst.Shift, dst.CacheKey, dst.Mix = nil, nil, nil, nil, nil, nil
}

// indexed reports whether a batch refers to the examples in the set's memory by index: pixels with
// one normalization, which devices decode themselves.
func (s Split) indexed() bool {
	return s.images == nil && s.windows == nil && len(s.norm.channels) == 1
}

// Refers reports whether a batch of training only refers to the set's memory.
func (s Split) Refers() bool {
	return (s.indexed() || s.windows != nil) && !s.changes()
}

// reserveAny sizes dst for n examples of whatever kind.
func (s Split) reserveAny(dst *device.Batch, n int) {
	switch {
	case s.windows != nil:
		s.windows.reserve(dst, n)
	case s.Refers():
		s.reserveRows(dst, n)
	default:
		resize(dst, n, s.Features())
	}
}

// reserveRows sizes dst for n examples that are rows of the set.
func (s Split) reserveRows(dst *device.Batch, n int) {
	if dst.Rows = grown(dst.Rows, n); dst.Rows == nil {
		dst.Rows = []int32{} // a batch without examples: nil stands for values
	}
	dst.Y = grown(dst.Y, n)
	dst.X, dst.Mix = nil, nil
	dst.Bytes, dst.Scale, dst.Shift, dst.CacheKey = s.Pixels, s.norm.scales, s.norm.shifts, s.store
}
