package data

import (
	"errors"
	"fmt"
	"sync"

	"fspda/data/images"
	"fspda/device"
	"fspda/internal/rng"
)

// ErrClosed is the error of [Loader.Next] after [Loader.Close].
var ErrClosed = errors.New("data: loader is closed")

// LoaderOptions configures the batches of a [Loader].
type LoaderOptions struct {
	Batch    int      // examples per batch; ignored if Sampling is Full
	Sampling Sampling // default: Epochs
	Seed     uint64   // the run's seed
	First    int      // the step of the first Next: 0, or the step of a resumed run
	// number of batches prepared in the background. With 0, or if a batch only refers to the set's
	// examples, Next prepares it synchronously
	Ahead int
}

// Loader yields an agent's batches of step First, First+1, ... in order, with the set's
// augmentation. With Ahead > 0 a goroutine prepares them while the agent computes. The batches
// depend only on the seed, the agent and the step, not on Ahead or First.
//
// Next, Release and Batch belong to one goroutine; Close may be called from any.
type Loader struct {
	split      Split
	seed       uint64
	foreground *batchMaker // makes batches for Batch, and for Next without background preparation
	background *batchMaker // makes batches in the goroutine

	step    int // the step of the next call of Next
	buffers int
	inline  bool  // no background preparation
	out     []any // the identities of the unreleased batches
	free    chan device.Batch
	ready   chan prepared
	err     error // the error that ended the loader
	stop    chan struct{}
	done    sync.WaitGroup
	close   sync.Once
}

type batchMaker struct {
	order   *Order
	idx     []int32
	scratch *imageScratch // made when images are decoded
}

// prepared is a finished batch, or its error.
type prepared struct {
	batch device.Batch
	err   error
}

// NewLoader returns a loader for one agent, whose shard is a list of examples of split. It keeps
// shard and does not change it. It returns the errors of [NewOrder], and an error for examples
// outside split. The caller must close it.
func NewLoader(split Split, shard []int32, agent int, o LoaderOptions) (*Loader, error) {
	order, err := NewOrder(shard, agent, o.Batch, o.Sampling, o.Seed)
	if err != nil {
		return nil, err
	}
	order.repeat = split.repeat
	if o.First < 0 || o.Ahead < 0 {
		return nil, fmt.Errorf("data: agent %d: first step %d and %d batches ahead, want 0 or more", agent, o.First,
			o.Ahead)
	}
	for i, e := range shard {
		if e < 0 || int(e) >= split.Len() {
			return nil, fmt.Errorf("data: agent %d: entry %d of its shard is example %d, want 0 to %d: was it "+
				"made for another set?", agent, i, e, split.Len()-1)
		}
	}
	other := *order // no permutation yet: the two share only the shard
	l := &Loader{split: split, seed: o.Seed, foreground: &batchMaker{order: order},
		background: &batchMaker{order: &other}, step: o.First, buffers: o.Ahead + 1, stop: make(chan struct{})}
	l.free = make(chan device.Batch, l.buffers)
	l.ready = make(chan prepared, l.buffers)
	l.inline = split.Refers() || o.Ahead == 0 // faster than waking a goroutine
	for range l.buffers {
		var b device.Batch
		split.reserveAny(&b, order.batch)
		l.free <- b
	}
	if !l.inline {
		l.done.Go(func() { l.prepare(o.First) })
	}
	return l, nil
}

// prepare fills free buffers until the loader is closed or an error occurs. ready has room for all
// buffers, so only free can block.
func (l *Loader) prepare(step int) {
	for ; ; step++ {
		select {
		case <-l.stop:
			return
		case b := <-l.free:
			err := l.fill(l.background, &b, step)
			l.ready <- prepared{b, err}
			if err != nil {
				return
			}
		}
	}
}

// fill makes the batch of a step, with a key of its own for random numbers such as dropout's.
func (l *Loader) fill(m *batchMaker, dst *device.Batch, step int) error {
	if err := l.fillExamples(m, dst, step); err != nil {
		return err
	}
	keys := rng.New(l.seed, "dropout", uint64(m.order.agent), uint64(step))
	dst.Key = max(1, keys.Uint64())
	return nil
}

func (l *Loader) fillExamples(m *batchMaker, dst *device.Batch, step int) error {
	if w := l.split.windows; w != nil && m.order.sampling == IID {
		s := m.order.stream(step)
		w.draw(dst, w.segment(m.order.shard[0]), m.order.batch, &s)
		return nil
	}
	m.idx = m.order.At(m.idx, step)
	if m.scratch == nil && !l.split.Refers() {
		m.scratch = new(imageScratch)
	}
	if err := l.split.gatherAugmented(dst, m.idx, m.order.shard, augmentKey{l.seed, m.order.agent, step}, m.scratch,
		l.stop); err != nil {
		if errors.Is(err, ErrClosed) {
			return err
		}
		hint := ""
		if errors.As(err, new(*images.PictureError)) {
			hint = ": repair or remove it, or leave such pictures out with on_bad skip"
			if l.split.images != nil && l.split.images.onBad == Skip {
				hint = ": the agent needs a picture that can be read"
			}
		}
		return fmt.Errorf("data: batch of agent %d at step %d: %w%s", m.order.agent, step, err, hint)
	}
	return nil
}

// Next returns the batch of the next step, read-only; return it with Release. It returns ErrClosed
// on a closed loader, and an error that names the image if one cannot be read, which ends the
// loader. It panics if the caller holds Ahead+1 batches already, since it would block forever.
func (l *Loader) Next() (device.Batch, error) {
	select {
	case <-l.stop:
		return device.Batch{}, ErrClosed
	default:
	}
	if l.err != nil {
		return device.Batch{}, l.err
	}
	if len(l.out) == l.buffers {
		panic(fmt.Sprintf("data: Next with all %d batches of the loader in use: Release one first", l.buffers))
	}
	b, err := l.take()
	if err != nil {
		return device.Batch{}, err
	}
	l.step++
	l.out = append(l.out, identity(b))
	return b, nil
}

// identity returns the address of memory that only this batch has.
func identity(b device.Batch) any {
	switch {
	case len(b.At) > 0:
		return &b.At[0]
	case len(b.Y) > 0:
		return &b.Y[0]
	}
	return nil
}

// take waits for the next batch, or makes it.
func (l *Loader) take() (device.Batch, error) {
	var m prepared
	if l.inline {
		m.batch = <-l.free
		m.err = l.fill(l.foreground, &m.batch, l.step)
	} else {
		select {
		case m = <-l.ready:
		case <-l.stop:
			return device.Batch{}, ErrClosed
		}
	}
	l.err = m.err
	return m.batch, m.err
}

// Release returns a batch of Next for reuse. It panics if the batch was already released.
func (l *Loader) Release(b device.Batch) {
	of := identity(b)
	for i, out := range l.out {
		if of != nil && out == of {
			l.out[i] = l.out[len(l.out)-1]
			l.out = l.out[:len(l.out)-1]
			l.free <- b
			return
		}
	}
	panic("data: Release of a batch that is not in use: released twice, or of another loader")
}

// Batch fills dst with the batch of any step, synchronously. It reuses the memory of dst and does
// not affect Next. It panics if step < 0. An image that cannot be read is an error.
func (l *Loader) Batch(dst *device.Batch, step int) error { return l.fill(l.foreground, dst, step) }

// Close stops the goroutine of the loader and waits for its end. Unreleased batches stay valid.
// Closing twice is allowed.
func (l *Loader) Close() {
	l.close.Do(func() { close(l.stop) })
	l.done.Wait()
}
