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
type programMemory struct {
	ex               *executor
	converted, words block // what bytes became; words
	slots            [2]inputSlot
	graphs           map[programKey]driver.GraphExec
	dep              dependency // of numbers
}

// slot is room for a batch. While the GPU computes with one, the next batch comes to the other.
type inputSlot struct {
	input, bytes, affine, labels block // a block that is not needed is not there
	scale, shift                 []float32
	consumed                     driver.Event // recorded behind what last read the slot; 0: the slot is not made
	filled                       driver.Event // recorded behind what last came to it
	busy                         atomic.Bool  // a run that is not over has it
	dep                          dependency
}

// drop gives it back. It is for the collector.
func (b *programMemory) discard() {
	b.ex.discardGraphs(slices.Collect(maps.Values(b.graphs))...)
	blocks := []block{b.converted, b.words}
	for i := range b.slots {
		s := &b.slots[i]
		blocks = append(blocks, s.input, s.bytes, s.affine, s.labels)
		b.ex.discardEvents(s.consumed, s.filled)
	}
	for _, x := range blocks {
		if x.size > 0 {
			b.ex.discard(x)
		}
	}
}

// words are single numbers on the device that kernels want between runs.
type scalars struct{ momentum, bad, hits kernels.Address }

func (b *programMemory) scalars() scalars {
	at := b.words.address()
	return scalars{bad: at + 4, hits: at + 8}
}

// wordsBytes is the size of the state: nothing, the first bad row, two counts of hits.
const scalarBytes = 16

// batchState is what a Program knows of batches.
type batchInfo struct {
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
func (p *Program) allocScalars() error {
	p.batch.classes = minClasses(p.code)
	p.mem = &programMemory{ex: p.device.exec, graphs: map[programKey]driver.GraphExec{}}
	return p.device.exec.do(func() (err error) {
		ex := p.device.exec
		if p.mem.words, err = ex.alloc(scalarBytes); err != nil {
			return err
		}
		at := p.mem.words.at
		err = ex.api.Check(ex.api.MemsetD8(at, 0, scalarBytes, ex.stream), "cuMemsetD8Async",
			"clearing the state of a program")
		if err == nil {
			// kernels.NoBadRow
			err = ex.api.Check(ex.api.MemsetD8(at+4, 0xff, 4, ex.stream), "cuMemsetD8Async",
				"setting the state of a program")
		}
		return err
	})
}

// classesOf is the fewest classes of kernels that read the labels, 0 where none does.
func minClasses(code *device.Code) int {
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
func (p *Program) acquireSlot(b device.Batch) (*inputSlot, error) {
	s := &p.mem.slots[0]
	if other := &p.mem.slots[1]; s.busy.Load() && !other.busy.Load() && p.prepareSlot(other, b) == nil {
		s = other
	} else if err := p.prepareSlot(s, b); err != nil {
		return nil, fmt.Errorf("making room for batches: %w", err)
	}
	s.busy.Store(true)
	return s, nil
}

// prepare takes the memory that a slot lacks for a batch.
func (p *Program) prepareSlot(s *inputSlot, b device.Batch) error {
	c, ex := p.code, p.device.exec
	requests := []blockRequest{{&s.labels, 4 * (c.Batch + 1)}}
	if b.Bytes == nil {
		requests = append(requests, blockRequest{&s.input, 4 * c.Batch * c.Features})
	} else {
		requests = append(requests, blockRequest{&s.bytes, c.Batch * c.Features}, blockRequest{&s.affine, 8 * c.Features})
		if !p.convertsToHalf(len(b.Scale)) {
			requests = append(requests, blockRequest{&p.mem.converted, 4 * c.Batch * c.Features})
		}
	}
	if s.consumed != 0 && !anyMissing(requests) {
		return nil
	}
	return ex.do(func() (err error) {
		for _, w := range requests {
			if w.missing() {
				if w.block.size > 0 {
					ex.pool.put(*w.block)
				}
				if *w.block, err = ex.alloc(max(w.bytes, 4)); err != nil {
					return err
				}
			}
		}
		return p.prepareEvents(s)
	})
}

// want is a block that is to be so large.
type blockRequest struct {
	block *block
	bytes int
}

func (w blockRequest) missing() bool { return w.block.size < max(w.bytes, 4) }

func anyMissing(all []blockRequest) bool { return slices.ContainsFunc(all, blockRequest.missing) }

// prepareEvents makes the events of a slot. Its memory may be what others have used: the first copy
// comes after their work.
func (p *Program) prepareEvents(s *inputSlot) (err error) {
	ex := p.device.exec
	if s.consumed == 0 {
		var free, full driver.Event
		if free, err = ex.takeEvent(); err != nil {
			return err
		}
		if full, err = ex.takeEvent(); err != nil {
			ex.idleEvents = append(ex.idleEvents, free)
			return err
		}
		s.consumed, s.filled = free, full
	}
	return ex.record(s.consumed, ex.stream)
}

// fill copies a batch and the momentum to a slot.
func (p *Program) fillSlot(s *inputSlot, b device.Batch, momentum float32) {
	labels := make([]float32, len(b.Y)+1)
	for i, y := range b.Y {
		labels[i] = float32(y)
	}
	labels[len(b.Y)] = momentum
	p.uploadFloats(s, s.labels.at, labels)
	if b.Bytes == nil {
		p.uploadFloats(s, s.input.at, b.X)
		return
	}
	p.uploadBytes(s, b)
}

func (p *Program) uploadFloats(s *inputSlot, to driver.Pointer, v []float32) {
	const most = chunkBytes / 4
	for at := 0; at < len(v); at += most {
		part := v[at:min(at+most, len(v))]
		p.uploadToSlot(s, to+driver.Pointer(4*at), 4*len(part), func(b *buffer) { copy(b.float32s(len(part)), part) })
	}
}

// sendBytes copies the bytes of a batch, which the device turns into numbers.
func (p *Program) uploadBytes(s *inputSlot, b device.Batch) {
	f := p.code.Features
	if f == 0 {
		return
	}
	if !sameBits(s.scale, b.Scale) || !sameBits(s.shift, b.Shift) {
		s.scale, s.shift = slices.Clone(b.Scale), slices.Clone(b.Shift)
		p.uploadFloats(s, s.affine.at, append(slices.Clone(b.Scale), b.Shift...))
	}
	each := max(1, chunkBytes/f) // examples in a buffer
	for from := 0; from < b.N(); from += each {
		to := min(from+each, b.N())
		if f > chunkBytes { // an example larger than a buffer goes in pieces
			p.uploadPieces(s, b.Example(from, f), from*f)
			continue
		}
		p.uploadToSlot(s, s.bytes.at+driver.Pointer(from*f), (to-from)*f, func(host *buffer) {
			for i := from; i < to; i++ {
				copy(host.bytes[(i-from)*f:], b.Example(i, f))
			}
		})
	}
}

func (p *Program) uploadPieces(s *inputSlot, example []uint8, at int) {
	for from := 0; from < len(example); from += chunkBytes {
		part := example[from:min(from+chunkBytes, len(example))]
		p.uploadToSlot(s, s.bytes.at+driver.Pointer(at+from), len(part), func(host *buffer) { copy(host.bytes, part) })
	}
}

// bring copies up to a chunk of bytes to a slot, behind what still reads it and beside what the GPU
// computes.
func (p *Program) uploadToSlot(s *inputSlot, to driver.Pointer, bytes int, fill func(*buffer)) {
	ex := p.device.exec
	if bytes == 0 || ex.err() != nil {
		return
	}
	b, err := ex.takeBuffer(bytes)
	if err != nil {
		ex.fail(err)
		return
	}
	fill(b)
	send := func() error {
		defer keepAlive(p)
		if err := ex.waitEvent(ex.copyStream, s.consumed); err != nil {
			return err
		}
		if err := ex.api.Check(ex.api.MemcpyHtoD(to, b.pointer(), uintptr(bytes), ex.copyStream), "cuMemcpyHtoDAsync",
			"copying %d bytes of a batch to the GPU", bytes); err != nil {
			return err
		}
		return ex.record(s.filled, ex.copyStream)
	}
	ex.enqueueOp(&op{accesses: []access{writes(&s.dep)}, send: send, then: func() { ex.pinned.put(b) }, onCopyStream: true})
}

// takesBytes says whether bytes become numbers of 16 bits in the arena at once. Agents that compute
// together have other arenas, and take float32.
func (p *Program) convertsToHalf(channels int) bool {
	return p.group == nil && p.plan.ConvertsToHalf(channels)
}

// arrive has the GPU wait for the batch of a slot, and returns where its numbers lie. It is the
// owner's. Bytes become numbers, of 16 bits in the arena if that is where the plan wants them.
func (p *Program) awaitBatch(s *inputSlot, channels int, arena kernels.Address) (kernels.Address, error) {
	ex, f := p.device.exec, p.code.Features
	if err := ex.waitEvent(ex.stream, s.filled); err != nil || channels == 0 {
		return s.input.address(), err
	}
	pictures := kernels.Images{N: p.code.Batch, H: 1, W: f / channels, C: channels, Height: 1, Width: f / channels,
		Padded: channels, Channels: channels,
		Dst: p.mem.converted.address(), Bytes: s.bytes.address(), Scale: s.affine.address(), Shift: s.affine.address() +
			kernels.Address(4*channels)}
	if p.convertsToHalf(channels) {
		x := p.plan.Examples
		pictures.Element, pictures.Dst = x.Element, arena+kernels.Address(x.Offset)
		if x.Padded > x.Columns {
			pictures.C, pictures.W, pictures.Width, pictures.Padded = x.Columns, f/x.Columns, f/x.Columns, x.Padded
		}
	}
	return pictures.Dst, ex.launch(pictures.Call())
}

// keep holds an object until here: its memory must not be given to others before the work is sent.
func keepAlive(all ...any) { runtime.KeepAlive(all) }

func sameBits(a, b []float32) bool {
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
