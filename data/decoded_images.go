package data

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"fspda/data/images"
	"fspda/device"
	"fspda/internal/rng"
)

// decodedImages are the examples of a [Split] that are decoded on demand. Loaders and evaluations share
// its workers: each holds the scratch memory for one image, so at most that many images are decoded
// at a time. Results do not depend on which worker decodes an image.
type decodedImages struct {
	source  images.Source
	side    int // of the crop, in pixels
	short   int // side of an image that evaluation crops
	onBad   OnBad
	decoder Decoder
	workers chan *worker
	bad     *badImages
}

// OnBad selects the handling of an image that cannot be read.
type OnBad string

const (
	Fail OnBad = "fail" // the batch is an error
	Skip OnBad = "skip" // the next example of the batch replaces it
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

// worker is the scratch memory of one goroutine.
type worker struct {
	norm    *normalizer // of the current split
	numbers []float32   // output: the values of one example

	pixels []uint8    // the network's input, in bytes
	whole  images.RGB // decoded image
	file   []byte
	scale  resampler
	// decodes w.file
	decoder images.Decoder
}

// makeWorkers returns n workers, whose scratch memory grows on demand.
func makeWorkers(n int) chan *worker {
	c := make(chan *worker, n)
	for range n {
		c <- new(worker)
	}
	return c
}

// gather fills dst with examples, on as many goroutines as there are workers. It stops if stop is
// closed.
func (p *decodedImages) gather(s Split, dst *device.Batch, examples []int32, how Augment, key augmentKey,
	stop <-chan struct{}) error {
	f := s.Features()
	numbers, labels := dst.X, dst.Y // dst itself would escape to the heap
	return parallel(cap(p.workers), len(examples), func(row int) error {
		select {
		case <-stop:
			return ErrClosed
		case w := <-p.workers:
			defer func() { p.workers <- w }()
			w.norm, w.numbers = s.norm, numbers[row*f:(row+1)*f]
			e, err := p.decodeRow(w, examples, row, how, key)
			if err == nil {
				labels[row] = s.Labels[e]
			}
			return err
		}
	})
}

// decodeRow decodes the image of a row or, if that is bad and OnBad is Skip, of the next row with a
// good one. It returns the example used.
func (p *decodedImages) decodeRow(w *worker, examples []int32, row int, how Augment, key augmentKey) (int32, error) {
	var first error
	for k := range examples {
		e := examples[(row+k)%len(examples)]
		stream := key.stream(row)
		err := p.decode(w, int(e), how, &stream)
		if err == nil {
			return e, nil
		}
		if p.onBad != Skip {
			return e, err
		}
		p.bad.add(p, e, err)
		if first == nil {
			first = err
		}
	}
	return 0, fmt.Errorf("no image of a batch of %d can be read: %w", len(examples), first)
}

// decode writes the values of image e, for training or evaluation, to w.numbers.
func (p *decodedImages) decode(w *worker, e int, how Augment, s *rng.Stream) error {
	w.pixels = grown(w.pixels, 3*p.side*p.side)
	v := view{p.side, p.short, how, s}
	if how != CIFAR {
		w.scale.norm, w.scale.numbers = w.norm, w.numbers
		defer func() { w.scale.norm = nil }()
		return p.scaled(w, e, v)
	}
	if err := p.scaled(w, e, v); err != nil {
		return err
	}
	w.whole.Pix = append(w.whole.Pix[:0], w.pixels...)
	shifted(w.pixels, w.whole.Pix, [3]int{p.side, p.side, 3}, s)
	w.norm.apply(w.numbers, w.pixels, nil)
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

// scaled decodes image e to w.pixels, by the fastest method that its source supports.
func (p *decodedImages) scaled(w *worker, e int, v view) error {
	if raw, ok := p.source.(images.Raw); ok {
		pix, width, height := raw.Pixels(e)
		if width <= 0 || height <= 0 || len(pix) < 3*width*height {
			return fmt.Errorf("data: image %d: %d bytes for %d×%d pixels", e, len(pix), width, height)
		}
		w.decoded(pix, width, height, v)
		return nil
	}
	begin := *v.s // the same random numbers again if this fails
	if source, ok := p.source.(images.Encoded); ok {
		done, err := p.encoded(w, source, e, v)
		if done || err != nil {
			return err
		}
		*v.s = begin
	}
	if err := p.source.Image(&w.whole, e); err != nil {
		return err
	}
	w.decoded(w.whole.Pix, w.whole.W, w.whole.H, v)
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
