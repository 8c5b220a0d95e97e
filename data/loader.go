package data

import (
	"errors"
	"fmt"
	"sync"

	"fspda/device"
)

// ErrClosed is what [Loader.Next] returns after [Loader.Close].
var ErrClosed = errors.New("data: loader is closed")

// LoaderOptions say what batches a [Loader] makes and when.
type LoaderOptions struct {
	Batch    int      // examples per batch; not looked at where Sampling is Full
	Sampling Sampling // empty: Epochs
	Seed     uint64   // of the run
	First    int      // the step of the first Next: 0, or where a run resumes
	// batches prepared in the background; 0: none, Next does the work itself. So it does where a
	// batch only names its examples
	Ahead int
}

// Loader hands an agent the batches of step First, First+1, ... in this order, varied as the set's
// augmentation says. With Ahead > 0 a goroutine prepares them while the agent computes. The batches
// depend on the seed, the agent and the step alone, never on Ahead or First.
//
// Next, Release and Batch belong to one goroutine; Close may come from any.
type Loader struct {
	split Split
	seed  uint64
	here  *maker // for Batch, and for Next where nothing is prepared ahead
	ahead *maker // for the goroutine

	step    int // of the next Next
	buffers int
	inline  bool     // nothing is prepared ahead
	out     []*int32 // the first label of each batch not yet released: its identity
	free    chan device.Batch
	ready   chan made
	err     error // ends the loader
	stop    chan struct{}
	done    sync.WaitGroup
	close   sync.Once
}

// maker makes the batches of steps.
type maker struct {
	order *Order
	idx   []int32
	room  worker
}

// made is a batch that is ready, or why there is none.
type made struct {
	batch device.Batch
	err   error
}

// NewLoader opens the batches of one agent, whose shard is a list of examples of split. It keeps
// shard and does not change it. It refuses what [NewOrder] refuses, and a shard that names examples
// which split does not have. Close it after use.
func NewLoader(split Split, shard []int32, agent int, o LoaderOptions) (*Loader, error) {
	order, err := NewOrder(shard, agent, o.Batch, o.Sampling, o.Seed)
	if err != nil {
		return nil, err
	}
	if o.First < 0 || o.Ahead < 0 {
		return nil, fmt.Errorf("data: agent %d: first step %d and %d batches ahead, want 0 or more", agent, o.First,
			o.Ahead)
	}
	for i, e := range shard {
		if e < 0 || int(e) >= split.Len() {
			return nil, fmt.Errorf("data: agent %d: entry %d of its shard is example %d, want 0 to %d: was it made for another set?",
				agent, i, e, split.Len()-1)
		}
	}
	other := *order // no permutation yet: the two share nothing but the shard
	l := &Loader{split: split, seed: o.Seed, here: &maker{order: order}, ahead: &maker{order: &other}, step: o.First,
		buffers: o.Ahead + 1,
		stop:    make(chan struct{})}
	l.free = make(chan device.Batch, l.buffers)
	l.ready = make(chan made, l.buffers)
	named := split.picks() && split.varied == None // done sooner than a goroutine is woken
	l.inline = named || o.Ahead == 0
	for range l.buffers {
		var b device.Batch
		if named {
			split.pick(&b, order.batch)
		} else {
			resize(&b, order.batch, split.Features())
		}
		l.free <- b
	}
	if !l.inline {
		l.done.Go(func() { l.prepare(o.First) })
	}
	return l, nil
}

// prepare fills free buffers until the loader is closed, or until that fails. ready has room for
// all buffers, so only free is waited for.
func (l *Loader) prepare(step int) {
	for ; ; step++ {
		select {
		case <-l.stop:
			return
		case b := <-l.free:
			err := l.fill(l.ahead, &b, step)
			l.ready <- made{b, err}
			if err != nil {
				return
			}
		}
	}
}

// fill makes the batch of a step.
func (l *Loader) fill(m *maker, dst *device.Batch, step int) error {
	m.idx = m.order.At(m.idx, step)
	if err := l.split.gatherVaried(dst, m.idx, augmentKey{l.seed, m.order.agent, step}, &m.room, l.stop); err != nil {
		if errors.Is(err, ErrClosed) {
			return err
		}
		return fmt.Errorf("data: batch of agent %d at step %d: %w", m.order.agent, step, err)
	}
	return nil
}

// Next returns the batch of the next step, for reading only; give it back with Release. It returns
// ErrClosed on a closed loader, and an error that names the picture where one cannot be read, which
// ends the loader. It panics if the caller holds Ahead+1 batches already, since it would wait for
// ever.
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
		panic(fmt.Sprintf("data: Next while all %d batches of the loader are out: Release one first", l.buffers))
	}
	b, err := l.take()
	if err != nil {
		return device.Batch{}, err
	}
	l.step++
	l.out = append(l.out, &b.Y[0])
	return b, nil
}

// take waits for the next batch, or makes it.
func (l *Loader) take() (device.Batch, error) {
	var m made
	if l.inline {
		m.batch = <-l.free
		m.err = l.fill(l.here, &m.batch, l.step)
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

// Release gives back a batch that came from Next: its memory becomes a later batch. It panics if
// the batch is not out.
func (l *Loader) Release(b device.Batch) {
	for i, y := range l.out {
		if len(b.Y) > 0 && y == &b.Y[0] {
			l.out[i] = l.out[len(l.out)-1]
			l.out = l.out[:len(l.out)-1]
			l.free <- b
			return
		}
	}
	panic("data: Release of a batch that is not out: released twice, or not from this loader")
}

// Batch fills dst with the batch of any step, at once. It reuses the memory of dst and leaves Next
// where it is. It panics if step < 0. A picture that cannot be read is an error.
func (l *Loader) Batch(dst *device.Batch, step int) error { return l.fill(l.here, dst, step) }

// Step is the step that the next Next will return.
func (l *Loader) Step() int { return l.step }

// Epoch is the number of local epochs that lie before a step, see [Order.Epoch].
func (l *Loader) Epoch(step int) float64 { return l.here.order.Epoch(step) }

// StepsPerEpoch is the number of steps of a local epoch, see [Order.StepsPerEpoch].
func (l *Loader) StepsPerEpoch() int { return l.here.order.StepsPerEpoch() }

// Sizes lists the batch sizes that occur, see [Order.Sizes].
func (l *Loader) Sizes() []int { return l.here.order.Sizes() }

// Close stops the goroutine of the loader and returns once it has ended. Batches that are out stay
// valid. Closing twice is harmless.
func (l *Loader) Close() {
	l.close.Do(func() { close(l.stop) })
	l.done.Wait()
}
