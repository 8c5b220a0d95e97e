package cuda

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// programMemory is the device memory of one Program on one branch.
type programMemory struct {
	ex               *executor.Executor
	converted, words executor.Block // examples that came as bytes, as float32; scalars
	slots            [2]inputSlot
	graphs           executor.GraphCache[programKey]
	dep              executor.Dependency // orders the accesses to converted
}

// inputSlot is the device memory of a batch. A Program has two: while the GPU computes with one,
// the next batch is copied to the other.
type inputSlot struct {
	input, bytes, affine, labels executor.Block // blocks that are not needed are empty
	scale, shift                 []float32
	// recorded after the last reader; 0: the slot is not allocated
	consumed driver.Event
	filled   driver.Event // recorded after the last copy to the slot
	busy     atomic.Bool  // a run that has not ended uses it
	of       *programMemory
	dep      executor.Dependency
}

// discard gives the memory up. It is for a finaliser.
func (b *programMemory) discard() {
	b.graphs.Discard(b.ex)
	blocks := []executor.Block{b.converted, b.words}
	for i := range b.slots {
		s := &b.slots[i]
		blocks = append(blocks, s.input, s.bytes, s.affine, s.labels)
		b.ex.DiscardEvents(s.consumed, s.filled)
	}
	for _, x := range blocks {
		b.ex.Discard(x)
	}
}

// scalars is single numbers on the device, and the counts of blocks of normalisations that have
// arrived.
type scalars struct{ momentum, bad, hits, arrived kernels.Address }

func (b *programMemory) scalars() scalars {
	at := b.words.Address()
	return scalars{bad: at + 4, hits: at + 8, arrived: at + scalarBytes}
}

// scalarBytes is the size of scalars before arrived: an unused word, the first bad row, two counts
// of hits.
const scalarBytes = 16

// batchInfo is the facts with which a Program checks batches.
type batchInfo struct {
	classes int // the least number of classes among kernels that read labels; 0: none does
	tokens  int // the least number of tokens among kernels that embed the examples; 0: none does
}

// embeddedTokens returns the smallest vocabulary of the calls that embed the examples, or 0.
func embeddedTokens(code *device.Code) (least int) {
	for i := range code.Calls {
		switch c := &code.Calls[i]; c.Kernel {
		case device.Embed, device.TokenEmbed, device.EmbedStep:
			if n := c.Dims[1]; c.In[0].Space == device.Input && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}

// LabelError says that a label of a batch is no class.
type LabelError struct {
	Row     int
	Value   int32
	Classes int
}

func (e *LabelError) Error() string {
	return fmt.Sprintf("label of row %d is %d, want an integer from 0 to %d: check the labels of the data set and "+
		"the number of classes of the model", e.Row, e.Value, e.Classes-1)
}

// memoryOf returns the program's memory on a branch, which is made at the first use.
func (p *Program) memoryOf(branch int) (*programMemory, error) {
	if p.mems[branch] != nil {
		return p.mems[branch], nil
	}
	ex := p.device.exec
	m := &programMemory{ex: ex, graphs: executor.GraphCache[programKey]{}}
	for i := range m.slots {
		m.slots[i].of = m
	}
	err := ex.Do(func() (err error) {
		bytes := scalarBytes + arrivedBytes(p.plan)
		if m.words, err = ex.Alloc(bytes); err != nil {
			return err
		}
		at := m.words.At
		err = ex.SetBytes(at, 0, bytes)
		if err == nil {
			// kernels.NoBadRow
			err = ex.SetBytes(at+4, 0xff, 4)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	runtime.AddCleanup(p, (*programMemory).discard, m)
	p.mems[branch] = m
	return m, nil
}

func (p *Program) checkBatch(b device.Batch) error {
	if err := b.Check(p.code); err != nil {
		return err
	}
	if b.Tokens != nil {
		return b.CheckTokens(p.code.Vocabulary())
	}
	if p.batch.tokens > 0 {
		i := slices.IndexFunc(b.X, func(v float32) bool {
			return !(v >= 0 && v < float32(p.batch.tokens) && v == float32(int(v)))
		})
		if i >= 0 {
			return fmt.Errorf("token of row %d is %v, want an integer from 0 to %d: check that the stream was made "+
				"with the vocabulary of the model", i, b.X[i], p.batch.tokens-1)
		}
	}
	if p.batch.classes == 0 {
		return nil
	}
	largest := uint32(0) // a negative label becomes a large number
	for _, y := range b.Y {
		largest = max(largest, uint32(y))
	}
	for _, x := range b.Mix {
		largest = max(largest, uint32(x.Partner))
	}
	if int(largest) < p.batch.classes {
		return nil
	}
	wrong := func(y int32) bool { return y < 0 || int(y) >= p.batch.classes }
	if i := slices.IndexFunc(b.Y, wrong); i >= 0 {
		return &LabelError{Row: i, Value: b.Y[i], Classes: p.batch.classes}
	}
	i := slices.IndexFunc(b.Mix, func(x device.Mix) bool { return wrong(x.Partner) })
	return &LabelError{Row: i, Value: b.Mix[i].Partner, Classes: p.batch.classes}
}

// acquireSlot returns a slot for a batch: one that no run uses, where memory allows.
func (p *Program) acquireSlot(m *programMemory, b device.Batch) (*inputSlot, error) {
	s := &m.slots[0]
	if other := &m.slots[1]; s.busy.Load() && !other.busy.Load() && p.prepareSlot(other, b) == nil {
		s = other
	} else if err := p.prepareSlot(s, b); err != nil {
		return nil, fmt.Errorf("allocating a batch: %w", err)
	}
	s.busy.Store(true)
	return s, nil
}

// prepareSlot allocates the memory that a slot lacks for a batch.
func (p *Program) prepareSlot(s *inputSlot, b device.Batch) error {
	c, ex := p.code, p.device.exec
	needs := []blockNeed{{&s.labels, 4 * (c.LabelNumbers() + batchScalars)}}
	if b.Bytes == nil {
		needs = append(needs, blockNeed{&s.input, 4 * c.Batch * c.Features})
	} else {
		needs = append(needs, blockNeed{&s.bytes, c.Batch * c.Features},
			blockNeed{&s.affine, 8 * c.Features})
		if !p.convertsToHalf(len(b.Scale)) {
			needs = append(needs, blockNeed{&s.of.converted, 4 * c.Batch * c.Features})
		}
	}
	if s.consumed != 0 && !anyMissing(needs) {
		return nil
	}
	return ex.Do(func() (err error) {
		for _, w := range needs {
			if w.missing() {
				if w.block.Size > 0 {
					ex.PutBlock(*w.block)
				}
				if *w.block, err = ex.Alloc(max(w.bytes, 4)); err != nil {
					return err
				}
			}
		}
		return p.prepareEvents(s)
	})
}

// blockNeed is a block that must have at least `bytes` bytes.
type blockNeed struct {
	block *executor.Block
	bytes int
}

func (w blockNeed) missing() bool { return w.block.Size < max(w.bytes, 4) }

func anyMissing(all []blockNeed) bool { return slices.ContainsFunc(all, blockNeed.missing) }

// prepareEvents makes the events of a slot. Its memory may have had another use: the first copy
// waits for that.
func (p *Program) prepareEvents(s *inputSlot) (err error) {
	ex := p.device.exec
	if s.consumed == 0 {
		var free, full driver.Event
		if free, err = ex.TakeEvent(); err != nil {
			return err
		}
		if full, err = ex.TakeEvent(); err != nil {
			ex.PutEvent(free)
			return err
		}
		s.consumed, s.filled = free, full
	}
	return ex.Record(s.consumed, ex.Stream)
}

// batchScalars is how many numbers follow the labels of a batch: the momentum and the key.
const batchScalars = 5

func (p *Program) fillSlot(s *inputSlot, b device.Batch, momentum float32) {
	n := p.code.LabelNumbers()
	labels := make([]float32, n+batchScalars)
	b.Labels(labels[:n])
	labels[n] = momentum
	b.KeyNumbers(labels[n+1:])
	p.uploadFloats(s, s.labels.At, labels)
	if b.Bytes == nil {
		p.uploadFloats(s, s.input.At, b.Numbers(nil, p.code.Features))
		return
	}
	p.uploadBytes(s, b)
}

func (p *Program) uploadFloats(s *inputSlot, to driver.Pointer, v []float32) {
	const most = executor.ChunkBytes / 4
	for at := 0; at < len(v); at += most {
		part := v[at:min(at+most, len(v))]
		p.uploadToSlot(s, to+driver.Pointer(4*at), 4*len(part), func(b *executor.Buffer) {
			copy(b.Float32s(len(part)), part)
		})
	}
}

// uploadBytes copies the examples of a batch as bytes, which the device converts to numbers.
func (p *Program) uploadBytes(s *inputSlot, b device.Batch) {
	f := p.code.Features
	if f == 0 {
		return
	}
	if !sameBits(s.scale, b.Scale) || !sameBits(s.shift, b.Shift) {
		s.scale, s.shift = slices.Clone(b.Scale), slices.Clone(b.Shift)
		p.uploadFloats(s, s.affine.At, append(slices.Clone(b.Scale), b.Shift...))
	}
	each := max(1, executor.ChunkBytes/f) // examples of a buffer
	for from := 0; from < b.N(); from += each {
		to := min(from+each, b.N())
		if f > executor.ChunkBytes { // an example larger than a buffer
			p.uploadPieces(s, b.Example(from, f), from*f)
			continue
		}
		p.uploadToSlot(s, s.bytes.At+driver.Pointer(from*f), (to-from)*f, func(host *executor.Buffer) {
			for i := from; i < to; i++ {
				copy(host.Bytes[(i-from)*f:], b.Example(i, f))
			}
		})
	}
}

func (p *Program) uploadPieces(s *inputSlot, example []uint8, at int) {
	for from := 0; from < len(example); from += executor.ChunkBytes {
		part := example[from:min(from+executor.ChunkBytes, len(example))]
		p.uploadToSlot(s, s.bytes.At+driver.Pointer(at+from), len(part),
			func(host *executor.Buffer) { copy(host.Bytes, part) })
	}
}

// uploadToSlot copies up to a chunk of bytes to a slot on the copy stream, after the slot's last
// reader and while the GPU computes.
func (p *Program) uploadToSlot(s *inputSlot, to driver.Pointer, bytes int, fill func(*executor.Buffer)) {
	ex := p.device.exec
	if bytes == 0 || ex.Err() != nil {
		return
	}
	b, err := ex.TakeBuffer(bytes)
	if err != nil {
		ex.Fail(err)
		return
	}
	fill(b)
	send := func() error {
		defer keepAlive(p)
		if err := ex.WaitEvent(ex.CopyStream, s.consumed); err != nil {
			return err
		}
		if err := ex.API.Check(ex.API.MemcpyHtoD(to, b.Pointer(), uintptr(bytes), ex.CopyStream), "cuMemcpyHtoDAsync",
			"copying %d bytes of a batch to the GPU", bytes); err != nil {
			return err
		}
		return ex.Record(s.filled, ex.CopyStream)
	}
	ex.EnqueueOp(&executor.Op{Send: send, Then: func() { ex.PutBuffer(b) }, OnCopyStream: true},
		executor.Writes(&s.dep))
}

// convertsToHalf reports whether bytes are converted to 16 bits in the arena. Batch groups have
// other arenas, and take float32.
func (p *Program) convertsToHalf(channels int) bool {
	return p.group == nil && p.plan.ConvertsToHalf(channels)
}

// awaitBatch has the GPU wait for the batch of a slot and returns the address of its numbers, to
// which it converts bytes.
func (p *Program) awaitBatch(s *inputSlot, channels int, arena kernels.Address) (kernels.Address, error) {
	ex, f := p.device.exec, p.code.Features
	if err := ex.WaitEvent(ex.Stream, s.filled); err != nil || channels == 0 {
		return s.input.Address(), err
	}
	images := kernels.Images{N: p.code.Batch, H: 1, W: f / channels, C: channels, Height: 1, Width: f / channels,
		Padded: channels, Channels: channels, Dst: s.of.converted.Address(), Bytes: s.bytes.Address(),
		Scale: s.affine.Address(), Shift: s.affine.Address() + kernels.Address(4*channels)}
	if p.convertsToHalf(channels) {
		x := p.plan.Examples
		images.Element, images.Dst = x.Element, arena+kernels.Address(x.Offset)
		if x.Padded > x.Columns {
			images.C, images.W, images.Width, images.Padded = x.Columns, f/x.Columns, f/x.Columns, x.Padded
		}
	}
	return images.Dst, ex.Launch(images.Call())
}

// keepAlive keeps objects reachable until here: their memory must not be reused before the work is
// sent.
func keepAlive(all ...any) { runtime.KeepAlive(all) }

// sameBits reports whether two slices have equal bits.
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
