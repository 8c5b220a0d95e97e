package cuda

import (
	"encoding/binary"
	"fmt"
	"math"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
)

// ownBlocks is what of the device belongs to one Program.
type ownBlocks struct {
	o                                   *owner
	input, labels, bytes, affine, state block
	graphs                              map[operandsAt]driver.GraphExec
}

// drop gives it back. It is for the collector.
func (b *ownBlocks) drop() {
	b.o.discardGraphs(b.graphs)
	for _, x := range []block{b.input, b.labels, b.bytes, b.affine, b.state} {
		if x.size > 0 {
			b.o.discard(x)
		}
	}
}

// words are single numbers on the device that kernels want between runs.
type words struct{ momentum, bad, hits kernels.Address }

func (b *ownBlocks) words() words {
	at := b.state.address()
	return words{momentum: at, bad: at + 4, hits: at + 8}
}

// wordsBytes is the size of the state: momentum, the first bad row, two counts of hits.
const wordsBytes = 16

// batchState is what the device knows of batches.
type batchState struct {
	classes      int // the fewest that a kernel reads the labels for; 0 if none does
	scale, shift []float32
	momentum     float32
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

// prepareBatch takes memory for batches.
func (p *Program) prepareBatch() error {
	c := p.code
	p.batch.classes = classesOf(c)
	p.own = &ownBlocks{o: p.device.owner, graphs: map[operandsAt]driver.GraphExec{}}
	return p.device.owner.ask(func() error {
		o := p.device.owner
		for _, b := range []struct {
			block *block
			bytes int
		}{{&p.own.input, 4 * c.Batch * c.Features}, {&p.own.labels, 4 * c.Batch}, {&p.own.state, wordsBytes}} {
			var err error
			if *b.block, err = o.alloc(max(b.bytes, 4)); err != nil {
				return err
			}
		}
		at := p.own.state.at
		err := o.api.Check(o.api.MemsetD8(at, 0, wordsBytes, o.stream), "cuMemsetD8Async", "clearing the state of a program")
		if err == nil {
			err = o.api.Check(o.api.MemsetD8(at+4, 0xff, 4, o.stream), "cuMemsetD8Async", "setting the state of a program") // kernels.NoBadRow
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
	if p.batch.classes > 0 {
		for i, y := range b.Y {
			if y < 0 || int(y) >= p.batch.classes {
				return &LabelError{Row: i, Value: y, Classes: p.batch.classes}
			}
		}
	}
	return nil
}

// sendBatch copies the batch and the momentum to the device.
func (p *Program) sendBatch(b device.Batch, momentum float32) {
	if math.Float32bits(momentum) != math.Float32bits(p.batch.momentum) {
		p.batch.momentum = momentum
		p.sendNumbers(p.own.state.at, []float32{momentum})
	}
	labels := make([]float32, len(b.Y))
	for i, y := range b.Y {
		labels[i] = float32(y)
	}
	p.sendNumbers(p.own.labels.at, labels)
	if b.Bytes == nil {
		p.sendNumbers(p.own.input.at, b.X)
		return
	}
	p.sendBytes(b)
}

func (p *Program) sendNumbers(to driver.Pointer, v []float32) {
	const most = chunk / 4
	for at := 0; at < len(v); at += most {
		part := v[at:min(at+most, len(v))]
		p.device.upload(to+driver.Pointer(4*at), 4*len(part), func(b *buffer) { copy(b.float32s(len(part)), part) }, p)
	}
}

// sendBytes copies the bytes of a batch, which the device turns into numbers.
func (p *Program) sendBytes(b device.Batch) {
	f := p.code.Features
	if f == 0 {
		return
	}
	if err := p.makeRoomForBytes(); err != nil {
		p.device.owner.fail(err)
		return
	}
	p.sendAffine(b)
	each := max(1, chunk/f) // examples in a buffer
	for from := 0; from < b.N(); from += each {
		to := min(from+each, b.N())
		if f > chunk { // an example larger than a buffer goes in pieces
			p.sendPieces(b.Example(from, f), from*f)
			continue
		}
		p.device.upload(p.own.bytes.at+driver.Pointer(from*f), (to-from)*f, func(host *buffer) {
			for i := from; i < to; i++ {
				copy(host.bytes[(i-from)*f:], b.Example(i, f))
			}
		}, p)
	}
	channels := len(b.Scale)
	pictures := kernels.Pictures{N: b.N(), H: 1, W: f / channels, C: channels, Height: 1, Width: f / channels, Room: channels, Channels: channels,
		Dst: p.own.input.address(), Bytes: p.own.bytes.address(), Scale: p.own.affine.address(), Shift: p.own.affine.address() + kernels.Address(4*channels)}
	p.device.owner.send(func() error {
		defer keep(p)
		return p.device.owner.launch(pictures.Call())
	})
}

func (p *Program) sendPieces(example []uint8, at int) {
	for from := 0; from < len(example); from += chunk {
		part := example[from:min(from+chunk, len(example))]
		p.device.upload(p.own.bytes.at+driver.Pointer(at+from), len(part), func(host *buffer) { copy(host.bytes, part) }, p)
	}
}

// makeRoomForBytes takes memory for the bytes of a batch when the first comes.
func (p *Program) makeRoomForBytes() error {
	if p.own.bytes.size > 0 {
		return nil
	}
	return p.device.owner.ask(func() (err error) {
		if p.own.affine, err = p.device.owner.alloc(8 * p.code.Features); err == nil {
			p.own.bytes, err = p.device.owner.alloc(p.code.Batch * p.code.Features)
		}
		return err
	})
}

// sendAffine copies what bytes stand for, when that changes.
func (p *Program) sendAffine(b device.Batch) {
	if same(p.batch.scale, b.Scale) && same(p.batch.shift, b.Shift) {
		return
	}
	p.batch.scale, p.batch.shift = append([]float32{}, b.Scale...), append([]float32{}, b.Shift...)
	p.device.upload(p.own.affine.at, 4*(len(b.Scale)+len(b.Shift)), func(host *buffer) {
		room := host.bytes[:0]
		for _, v := range append(append([]float32{}, b.Scale...), b.Shift...) {
			room = binary.LittleEndian.AppendUint32(room, math.Float32bits(v))
		}
	}, p)
}

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
