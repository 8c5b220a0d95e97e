package data

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"fspda/data/images"
	"fspda/device"
	"fspda/internal/rng"
)

// pictures are the examples of a [Split] that are decoded on demand. Loaders and evaluations share
// its workers: each holds the scratch memory for one image, so at most that many images are decoded
// at a time. Results do not depend on which worker decodes an image.
type pictures struct {
	source  images.Source
	side    int // of the crop, in pixels
	short   int // side of a picture that evaluation crops
	onBad   OnBad
	decoder Decoder
	workers chan *worker
	bad     *badPictures
}

// OnBad selects the handling of an image that cannot be read.
type OnBad string

const (
	Fail OnBad = "fail" // the batch is an error
	Skip OnBad = "skip" // the next example of the batch replaces it
)

// badPictures records the images that could not be read. It is safe for concurrent use.
type badPictures struct {
	mu     sync.Mutex
	seen   map[badPicture]error
	report func(error) // may be nil
}

type badPicture struct {
	among  *pictures
	number int32
}

// add records an image, and reports it if it is new.
func (b *badPictures) add(among *pictures, e int32, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := badPicture{among, e}
	if _, ok := b.seen[key]; ok {
		return
	}
	if b.seen == nil {
		b.seen = map[badPicture]error{}
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

	picture []uint8    // the network's input, in bytes
	whole   images.RGB // decoded image
	file    []byte
	scale   resampler
	turbo   turboHandle
}

// scratch returns memory for n pixels with undefined contents.
func (w *worker) scratch(n int) []uint8 {
	w.picture = grown(w.picture, n)
	return w.picture
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
func (p *pictures) gather(s Split, dst *device.Batch, examples []int32, how Augment, key augmentKey,
	stop <-chan struct{}) error {
	f := s.Features()
	numbers, labels := dst.X, dst.Y // dst itself would escape to the heap
	errs := make([]error, len(examples))
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for {
			row := int(next.Add(1)) - 1
			if row >= len(examples) || failed.Load() {
				return
			}
			select {
			case <-stop:
				errs[row] = ErrClosed
			case w := <-p.workers:
				var e int32
				w.norm, w.numbers = s.norm, numbers[row*f:(row+1)*f]
				e, errs[row] = p.decodeRow(w, examples, row, how, key)
				if errs[row] == nil {
					labels[row] = s.Labels[e]
				}
				p.workers <- w
			}
			if errs[row] != nil {
				failed.Store(true)
			}
		}
	}
	var team sync.WaitGroup
	for range min(cap(p.workers), len(examples)) {
		team.Go(work)
	}
	team.Wait()
	for _, err := range errs { // the first in order
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeRow decodes the image of a row or, if that is bad and OnBad is Skip, of the next row with a
// good one. It returns the example used.
func (p *pictures) decodeRow(w *worker, examples []int32, row int, how Augment, key augmentKey) (int32, error) {
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
func (p *pictures) decode(w *worker, e int, how Augment, s *rng.Stream) error {
	dst := w.scratch(3 * p.side * p.side)
	v := view{p.side, p.short, how, s}
	if how != CIFAR {
		w.scale.norm, w.scale.numbers = w.norm, w.numbers
		defer func() { w.scale.norm = nil }()
		return p.scaled(w, e, v)
	}
	if err := p.scaled(w, e, v); err != nil {
		return err
	}
	w.whole.Pix = append(w.whole.Pix[:0], dst...)
	shifted(dst, w.whole.Pix, [3]int{p.side, p.side, 3}, s)
	w.norm.apply(w.numbers, dst, nil)
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

// scaled decodes image e to w.picture, by the fastest method that its source supports.
func (p *pictures) scaled(w *worker, e int, v view) error {
	if raw, ok := p.source.(images.Raw); ok {
		pix, width, height := raw.Pixels(e)
		if width <= 0 || height <= 0 || len(pix) < 3*width*height {
			return fmt.Errorf("data: picture %d: %d bytes for %d×%d pixels", e, len(pix), width, height)
		}
		across, down := v.windows(width, height)
		w.scale.run(w.picture, pix, 3*width, v.side, v.side, across, down)
		return nil
	}
	if p.decoder == Turbo {
		done, err := p.turbo(w, e, v)
		if done || err != nil {
			return err
		}
	}
	if err := p.source.Image(&w.whole, e); err != nil {
		return err
	}
	across, down := v.windows(w.whole.W, w.whole.H)
	w.scale.run(w.picture, w.whole.Pix, 3*w.whole.W, v.side, v.side, across, down)
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
	var all []error
	for _, err := range s.bad.seen {
		all = append(all, err)
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return all
}

// Close closes the files of a set, after its loaders are closed. Sets in memory have none.
func (s *Set) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
