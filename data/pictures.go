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

// pictures are the examples of a [Split] that are decoded when they are wanted. Loaders and
// evaluations share its workers: each has the scratch space for one picture, and whoever holds it
// may work, so there are never more pictures in the making than workers. Which worker makes which
// picture does not matter.
type pictures struct {
	source  images.Source
	side    int // of the crop, in pixels
	short   int // side of a picture that evaluation crops
	onBad   OnBad
	decoder Decoder
	workers chan *worker
	bad     *badPictures
}

// OnBad says what becomes of a picture that cannot be read.
type OnBad string

const (
	Fail OnBad = "fail" // the batch is an error
	Skip OnBad = "skip" // the next example of the batch takes its place
)

// badPictures remembers which pictures could not be read. It is safe for concurrent use.
type badPictures struct {
	mu     sync.Mutex
	seen   map[badPicture]error
	report func(error) // may be nil
}

type badPicture struct {
	among  *pictures
	number int32
}

// add remembers a picture, and reports it where it is new.
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

// worker is the scratch space of one goroutine.
type worker struct {
	norm    *normalizer // of the split at hand
	numbers []float32   // what it works on: the numbers of one example

	picture []uint8    // as the network sees it, in bytes
	whole   images.RGB // decoded
	file    []byte
	scale   resampler
	turbo   turboHandle
}

// room is memory for n pixels, of any content.
func (w *worker) room(n int) []uint8 {
	w.picture = grown(w.picture, n)
	return w.picture
}

// makeWorkers returns n workers, whose scratch space grows as they need it.
func makeWorkers(n int) chan *worker {
	c := make(chan *worker, n)
	for range n {
		c <- new(worker)
	}
	return c
}

// gather fills dst with examples, on as many goroutines as there are workers. It gives up where
// stop is closed.
func (p *pictures) gather(s Split, dst *device.Batch, examples []int32, how Augment, key augmentKey,
	stop <-chan struct{}) error {
	f := s.Features()
	numbers, labels := dst.X, dst.Y // not dst, which the goroutines would take to the heap
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
				e, errs[row] = p.place(w, examples, row, how, key)
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

// place makes the picture of a row, or where that is bad and shall be skipped, of the next row that
// has a good one. It returns which example it took.
func (p *pictures) place(w *worker, examples []int32, row int, how Augment, key augmentKey) (int32, error) {
	var first error
	for k := range examples {
		e := examples[(row+k)%len(examples)]
		stream := key.stream(row)
		err := p.make(w, int(e), how, &stream)
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
	return 0, fmt.Errorf("none of the %d pictures of a batch can be read: %w", len(examples), first)
}

// make writes the numbers of picture e, as training or evaluation sees it, to w.numbers.
func (p *pictures) make(w *worker, e int, how Augment, s *rng.Stream) error {
	dst := w.room(3 * p.side * p.side)
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

// view is how a picture is looked at.
type view struct {
	side, short int
	how         Augment
	s           *rng.Stream
}

// windows are what is taken of a picture of w×h pixels. It draws from the stream.
func (v view) windows(w, h int) (across, down window) {
	if v.how == ImageNet {
		return randomCrop(v.s, w, h, v.side)
	}
	return centreCrop(w, h, v.short, v.side)
}

// scaled brings picture e into w.picture, by the shortest way that its source offers.
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

// OnSkip has f told of each picture that is skipped from now on, once. f is called by one goroutine
// at a time.
func (s *Set) OnSkip(f func(error)) {
	if s.bad != nil {
		s.bad.mu.Lock()
		defer s.bad.mu.Unlock()
		s.bad.report = f
	}
}

// Bad lists what was wrong with the pictures that were skipped so far, each once, in the order of
// their messages.
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

// Close gives back the files behind a set, once its loaders are closed. A set in memory has none.
func (s *Set) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
