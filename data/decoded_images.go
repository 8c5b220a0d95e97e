package data

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"fspda/data/images"
	"fspda/device"
	"fspda/internal/rng"
)

// decodedImages are the examples of a [Split] that are decoded on demand. Loaders and evaluations
// share a pool of scratch memory, of which each decoding goroutine takes one: at most as many
// images as it holds are decoded at a time. Results do not depend on which of them an image takes.
type decodedImages struct {
	source  images.Source
	side    int // pixels of a side of the crop
	short   int // side of an image that evaluation crops
	onBad   OnBad
	decoder Decoder
	pool    chan *imageScratch
	bad     *badImages
}

// OnBad selects the handling of an image that cannot be read.
type OnBad string

const (
	Fail OnBad = "fail" // the batch is an error
	// the next good example of the batch replaces it, or, in a batch without one, the next of the
	// agent's shard or of the split
	Skip OnBad = "skip"
)

// badImages records the images that could not be read. It is safe for concurrent use.
type badImages struct {
	mu     sync.Mutex
	seen   map[badImage]error
	report func(error) // may be nil
}

type badImage struct {
	among  *decodedImages
	number int32
}

func (b *badImages) has(among *decodedImages, e int32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.seen[badImage{among, e}]
	return ok
}

// add records an image, and reports it if it is new.
func (b *badImages) add(among *decodedImages, e int32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := badImage{among, e}
	if _, ok := b.seen[key]; ok {
		return
	}
	b.seen[key] = err
	if b.report != nil {
		b.report(err)
	}
}

// imageScratch is the scratch memory of a goroutine that decodes images.
type imageScratch struct {
	norm    *normalizer // normalizer of the current split
	numbers []float32   // output: the values of one example

	pixels []uint8    // the network's input, in bytes
	spare  []uint8    // a copy for operations that need the picture unchanged
	last   []float32  // the last example of a batch, before it is mixed
	whole  images.RGB // decoded image
	file   []byte
	scale  resampler
	// decodes buf.file
	decoder images.Decoder
}

// newScratchPool returns a pool of scratch memory for n goroutines, which grows on demand.
func newScratchPool(n int) chan *imageScratch {
	c := make(chan *imageScratch, n)
	for range n {
		c <- new(imageScratch)
	}
	return c
}

// gather fills dst with examples, on as many goroutines as the pool has scratch memory for. It
// stops if stop is closed. Spare examples replace those of a batch that cannot be read at all; nil
// means the whole split.
func (p *decodedImages) gather(s Split, dst *device.Batch, examples, spare []int32, how variation, key augmentKey,
	stop <-chan struct{}) error {
	f := s.Features()
	numbers, labels := dst.X, dst.Y // dst itself would escape to the heap
	return parallel(cap(p.pool), len(examples), func(row int) error {
		select {
		case <-stop:
			return ErrClosed
		case buf := <-p.pool:
			defer func() { p.pool <- buf }()
			buf.norm, buf.numbers = s.norm, numbers[row*f:(row+1)*f]
			e, err := p.decodeRow(buf, examples, spare, row, how, key)
			if err == nil {
				labels[row] = s.Labels[e]
			}
			return err
		}
	})
}

// decodeRow decodes the image of a row or, if that is bad and OnBad is Skip, of the next row with a
// good one, or else of the next spare example. It returns the example used.
func (p *decodedImages) decodeRow(buf *imageScratch, examples, spare []int32, row int, how variation,
	key augmentKey) (int32, error) {
	var first error
	for k := 0; ; k++ {
		e, ok := p.candidate(examples, spare, row, k)
		if !ok {
			break
		}
		if first != nil && p.bad.has(p, e) {
			continue
		}
		stream := key.stream(row)
		err := p.decode(buf, int(e), how, &stream)
		if err == nil {
			return e, nil
		}
		if p.onBad != Skip {
			return e, err
		}
		p.bad.add(p, e, err)
		first = cmp.Or(first, err)
	}
	return 0, fmt.Errorf("no image of a batch of %d can be read, nor one in its place: %w", len(examples), first)
}

// candidate returns choice k of the examples that a row may be made of; false if there are no more.
func (p *decodedImages) candidate(examples, spare []int32, row, k int) (e int32, ok bool) {
	if k < len(examples) {
		return examples[(row+k)%len(examples)], true
	}
	n := p.source.Len()
	if spare != nil {
		n = len(spare)
	}
	if k -= len(examples); k >= n {
		return 0, false
	}
	k = (int(examples[row]) + 1 + k) % n
	if spare != nil {
		return spare[k], true
	}
	return int32(k), true
}

// decode writes the values of image e, for training or evaluation, to buf.numbers.
func (p *decodedImages) decode(buf *imageScratch, e int, how variation, s *rng.Stream) error {
	buf.pixels = grown(buf.pixels, 3*p.side*p.side)
	v, shape := view{p.side, p.short, how.augment, s}, [3]int{p.side, p.side, 3}
	if how.augment != CIFAR && how.policy.ops == 0 {
		buf.scale.norm, buf.scale.numbers = buf.norm, buf.numbers
		defer func() { buf.scale.norm = nil }()
		if err := p.scaled(buf, e, v); err != nil {
			return err
		}
		eraseRandomly(buf.numbers, shape, how.erase, s)
		return nil
	}
	if err := p.scaled(buf, e, v); err != nil {
		return err
	}
	if how.augment == CIFAR {
		buf.whole.Pix = append(buf.whole.Pix[:0], buf.pixels...)
		shifted(buf.pixels, buf.whole.Pix, shape, s)
	}
	how.policy.run(buf.pixels, shape, buf, s)
	buf.norm.apply(buf.numbers, buf.pixels, nil)
	eraseRandomly(buf.numbers, shape, how.erase, s)
	return nil
}

// view describes the crop of an image.
type view struct {
	side, short int
	how         Augment
	s           *rng.Stream
}

// windows returns the crop of an image of w×h pixels. It draws from the stream.
func (v view) windows(w, h int) (across, down window) {
	if v.how == ImageNet {
		return randomCrop(v.s, w, h, v.side)
	}
	return centreCrop(w, h, v.short, v.side)
}

// raw returns the source if it stores decoded images, else nil.
func (p *decodedImages) raw() images.Raw {
	raw, _ := p.source.(images.Raw)
	return raw
}

// scaled decodes image e to buf.pixels, by the fastest method that its source supports.
func (p *decodedImages) scaled(buf *imageScratch, e int, v view) error {
	if raw := p.raw(); raw != nil {
		pix, width, height := raw.Pixels(e)
		if width <= 0 || height <= 0 || len(pix) < 3*width*height {
			return fmt.Errorf("data: image %d: %d bytes for %d×%d pixels", e, len(pix), width, height)
		}
		buf.decoded(pix, width, height, v)
		return nil
	}
	begin := *v.s // the same random numbers again if this fails
	if source, ok := p.source.(images.Encoded); ok {
		done, err := p.encoded(buf, source, e, v)
		if done || err != nil {
			return err
		}
		*v.s = begin
	}
	if err := p.source.Image(&buf.whole, e); err != nil {
		return err
	}
	buf.decoded(buf.whole.Pix, buf.whole.W, buf.whole.H, v)
	return nil
}

// OnSkip sets the function that is called once for each skipped image. Calls of f are serialized.
func (s *Set) OnSkip(f func(error)) {
	if s.bad != nil {
		s.bad.mu.Lock()
		defer s.bad.mu.Unlock()
		s.bad.report = f
	}
}

// Bad reports whether an example was found to be an image that cannot be read. Another one stands
// in its place in a batch.
func (s Split) Bad(example int) bool {
	return s.images != nil && s.images.bad.has(s.images, int32(example))
}

// Bad lists the errors of the images skipped so far, each once, sorted by message.
func (s *Set) Bad() []error {
	if s.bad == nil {
		return nil
	}
	s.bad.mu.Lock()
	defer s.bad.mu.Unlock()
	byMessage := func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }
	return slices.SortedFunc(maps.Values(s.bad.seen), byMessage)
}

// Close closes the files of a set, after its loaders are closed. Sets in memory have none.
func (s *Set) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
