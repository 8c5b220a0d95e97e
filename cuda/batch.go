package cuda

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// ownBlocks is what of the device belongs to one Program.
type ownBlocks struct {
	o              *owner
	numbers, state block // what bytes became; words
	slots          [2]slot
	graphs         map[operandsAt]driver.GraphExec
	hazard         hazard // of numbers
}

// slot is room for a batch. While the GPU computes with one, the next batch comes to the other.
type slot struct {
	input, bytes, affine, labels block // a block that is not needed is not there
	scale, shift                 []float32
	free                         driver.Event // recorded behind what last read the slot; 0: the slot is not made
	full                         driver.Event // recorded behind what last came to it
	busy                         atomic.Bool  // a run that is not over has it
	hazard                       hazard
}

// drop gives it back. It is for the collector.
func (b *ownBlocks) drop() {
	b.o.discardGraphs(slices.Collect(maps.Values(b.graphs))...)
	blocks := []block{b.numbers, b.state}
	for i := range b.slots {
		s := &b.slots[i]
		blocks = append(blocks, s.input, s.bytes, s.affine, s.labels)
		b.o.discardEvents(s.free, s.full)
	}
	for _, x := range blocks {
		if x.size > 0 {
			b.o.discard(x)
		}
	}
}

// words are single numbers on the device that kernels want between runs.
type words struct{ momentum, bad, hits kernels.Address }

func (b *ownBlocks) words() words {
	at := b.state.address()
	return words{bad: at + 4, hits: at + 8}
}

// wordsBytes is the size of the state: nothing, the first bad row, two counts of hits.
const wordsBytes = 16

// batchState is what a Program knows of batches.
type batchState struct {
	classes int // the fewest that a kernel reads the labels for; 0 if none does
}

// LabelError says that a row of a batch has a label that is no class.
type LabelError struct {
	Row     int
	Value   int32
	Classes int
}

func (e *LabelError) Error() string {
	return fmt.Sprintf("label of row %d is %d, want an integer from 0 to %d: check the labels of the data set and the number of classes of the model",
		e.Row, e.Value, e.Classes-1)
}

// prepareBatch takes memory for words.
func (p *Program) prepareBatch() error {
	p.batch.classes = classesOf(p.code)
	p.own = &ownBlocks{o: p.device.owner, graphs: map[operandsAt]driver.GraphExec{}}
	return p.device.owner.ask(func() (err error) {
		o := p.device.owner
		if p.own.state, err = o.alloc(wordsBytes); err != nil {
			return err
		}
		at := p.own.state.at
		err = o.api.Check(o.api.MemsetD8(at, 0, wordsBytes, o.stream), "cuMemsetD8Async",
			"clearing the state of a program")
		if err == nil {
			// kernels.NoBadRow
			err = o.api.Check(o.api.MemsetD8(at+4, 0xff, 4, o.stream), "cuMemsetD8Async",
				"setting the state of a program")
		}
		return err
	})
}

// classesOf is the fewest classes of kernels that read the labels, 0 where none does.
func classesOf(code *device.Code) int {
	least := 0
	for i := range code.Calls {
		switch c := &code.Calls[i]; c.Kernel {
		case device.SoftmaxCrossEntropy, device.Score:
			if n := c.Dims[1]; least == 0 || n < least {
				least = n
			}
		}
	}
	return least
}

func (p *Program) checkBatch(b device.Batch) error {
	if err := b.Check(p.code.Batch, p.code.Features); err != nil {
		return err
	}
	if p.batch.classes == 0 {
		return nil
	}
	largest := uint32(0) // label, or one below 0: no branch for each
	for _, y := range b.Y {
		largest = max(largest, uint32(y))
	}
	if int(largest) < p.batch.classes {
		return nil
	}
	i := slices.IndexFunc(b.Y, func(y int32) bool { return y < 0 || int(y) >= p.batch.classes })
	return &LabelError{Row: i, Value: b.Y[i], Classes: p.batch.classes}
}

// takeSlot returns a slot for a batch: one that nobody uses, if the memory is there.
func (p *Program) takeSlot(b device.Batch) (*slot, error) {
	s := &p.own.slots[0]
	if other := &p.own.slots[1]; s.busy.Load() && !other.busy.Load() && p.prepare(other, b) == nil {
		s = other
	} else if err := p.prepare(s, b); err != nil {
		return nil, fmt.Errorf("making room for batches: %w", err)
	}
	s.busy.Store(true)
	return s, nil
}

// prepare takes the memory that a slot lacks for a batch.
func (p *Program) prepare(s *slot, b device.Batch) error {
	c, o := p.code, p.device.owner
	wanted := []want{{&s.labels, 4 * (c.Batch + 1)}}
	if b.Bytes == nil {
		wanted = append(wanted, want{&s.input, 4 * c.Batch * c.Features})
	} else {
		wanted = append(wanted, want{&s.bytes, c.Batch * c.Features}, want{&s.affine, 8 * c.Features})
		if !p.takesBytes(len(b.Scale)) {
			wanted = append(wanted, want{&p.own.numbers, 4 * c.Batch * c.Features})
		}
	}
	if s.free != 0 && !lacking(wanted) {
		return nil
	}
	return o.ask(func() (err error) {
		for _, w := range wanted {
			if w.lacks() {
				if w.block.size > 0 {
					o.pool.give(*w.block)
				}
				if *w.block, err = o.alloc(max(w.bytes, 4)); err != nil {
					return err
				}
			}
		}
		return p.prepareEvents(s)
	})
}

// want is a block that is to be so large.
type want struct {
	block *block
	bytes int
}

func (w want) lacks() bool { return w.block.size < max(w.bytes, 4) }

func lacking(all []want) bool { return slices.ContainsFunc(all, want.lacks) }

// prepareEvents makes the events of a slot. Its memory may be what others have used: the first copy
// comes after their work.
func (p *Program) prepareEvents(s *slot) (err error) {
	o := p.device.owner
	if s.free == 0 {
		var free, full driver.Event
		if free, err = o.event(); err != nil {
			return err
		}
		if full, err = o.event(); err != nil {
			o.events = append(o.events, free)
			return err
		}
		s.free, s.full = free, full
	}
	return o.record(s.free, o.stream)
}

// fill copies a batch and the momentum to a slot.
func (p *Program) fill(s *slot, b device.Batch, momentum float32) {
	labels := make([]float32, len(b.Y)+1)
	for i, y := range b.Y {
		labels[i] = float32(y)
	}
	labels[len(b.Y)] = momentum
	p.sendNumbers(s, s.labels.at, labels)
	if b.Bytes == nil {
		p.sendNumbers(s, s.input.at, b.X)
		return
	}
	p.sendBytes(s, b)
}

func (p *Program) sendNumbers(s *slot, to driver.Pointer, v []float32) {
	const most = chunk / 4
	for at := 0; at < len(v); at += most {
		part := v[at:min(at+most, len(v))]
		p.bring(s, to+driver.Pointer(4*at), 4*len(part), func(b *buffer) { copy(b.float32s(len(part)), part) })
	}
}

// sendBytes copies the bytes of a batch, which the device turns into numbers.
func (p *Program) sendBytes(s *slot, b device.Batch) {
	f := p.code.Features
	if f == 0 {
		return
	}
	if !same(s.scale, b.Scale) || !same(s.shift, b.Shift) {
		s.scale, s.shift = slices.Clone(b.Scale), slices.Clone(b.Shift)
		p.sendNumbers(s, s.affine.at, append(slices.Clone(b.Scale), b.Shift...))
	}
	each := max(1, chunk/f) // examples in a buffer
	for from := 0; from < b.N(); from += each {
		to := min(from+each, b.N())
		if f > chunk { // an example larger than a buffer goes in pieces
			p.sendPieces(s, b.Example(from, f), from*f)
			continue
		}
		p.bring(s, s.bytes.at+driver.Pointer(from*f), (to-from)*f, func(host *buffer) {
			for i := from; i < to; i++ {
				copy(host.bytes[(i-from)*f:], b.Example(i, f))
			}
		})
	}
}

func (p *Program) sendPieces(s *slot, example []uint8, at int) {
	for from := 0; from < len(example); from += chunk {
		part := example[from:min(from+chunk, len(example))]
		p.bring(s, s.bytes.at+driver.Pointer(at+from), len(part), func(host *buffer) { copy(host.bytes, part) })
	}
}

// bring copies up to a chunk of bytes to a slot, behind what still reads it and beside what the GPU
// computes.
func (p *Program) bring(s *slot, to driver.Pointer, bytes int, fill func(*buffer)) {
	o := p.device.owner
	if bytes == 0 || o.err() != nil {
		return
	}
	b, err := o.buffer(bytes)
	if err != nil {
		o.fail(err)
		return
	}
	fill(b)
	send := func() error {
		defer keep(p)
		if err := o.await(o.copies, s.free); err != nil {
			return err
		}
		if err := o.api.Check(o.api.MemcpyHtoD(to, b.pointer(), uintptr(bytes), o.copies), "cuMemcpyHtoDAsync",
			"copying %d bytes of a batch to the GPU", bytes); err != nil {
			return err
		}
		return o.record(s.full, o.copies)
	}
	o.submitOp(&op{touches: []touch{writing(&s.hazard)}, send: send, then: func() { o.pinned.give(b) }, copies: true})
}

// takesBytes says whether bytes become numbers of 16 bits in the arena at once. Agents that compute
// together have other arenas, and take float32.
func (p *Program) takesBytes(channels int) bool { return p.fleet == nil && p.plan.takesBytes(channels) }

// arrive has the GPU wait for the batch of a slot, and returns where its numbers lie. It is the
// owner's. Bytes become numbers, of 16 bits in the arena if that is where the plan wants them.
func (p *Program) arrive(s *slot, channels int, arena kernels.Address) (kernels.Address, error) {
	o, f := p.device.owner, p.code.Features
	if err := o.await(o.stream, s.full); err != nil || channels == 0 {
		return s.input.address(), err
	}
	pictures := kernels.Pictures{N: p.code.Batch, H: 1, W: f / channels, C: channels, Height: 1, Width: f / channels,
		Room: channels, Channels: channels,
		Dst: p.own.numbers.address(), Bytes: s.bytes.address(), Scale: s.affine.address(), Shift: s.affine.address() +
			kernels.Address(4*channels)}
	if p.takesBytes(channels) {
		x := p.plan.examples
		pictures.Element, pictures.Dst = x.element, arena+kernels.Address(x.at)
		if x.room > x.columns {
			pictures.C, pictures.W, pictures.Width, pictures.Room = x.columns, f/x.columns, f/x.columns, x.room
		}
	}
	return pictures.Dst, o.launch(pictures.Call())
}

// keep holds an object until here: its memory must not be given to others before the work is sent.
func keep(all ...any) { runtime.KeepAlive(all) }

func same(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}
