package device

import (
	"fmt"
	"slices"
)

// Batch is a minibatch on the host: N examples and the class of each. The examples are numbers, in
// X, or bytes that stand for numbers, in Bytes, and the other of the two is nil. Sets that are
// stored as bytes hand them over as they are, which is a quarter of the memory to move, or none
// where Rows picks the examples. A device turns them into numbers where it needs them, with the
// bits of [Batch.Numbers].
type Batch struct {
	X     []float32 // N×features, row-major
	Bytes []uint8   // rows×features, row-major
	Rows  []int32   // N rows of Bytes, one for each example; nil: its N rows as they follow each other
	// Scale and Shift say what Bytes stand for. They have one element, or one for each channel
	// where the channels are the last axis of an example (NHWC): byte b of channel c is b·Scale[c]
	// + Shift[c] in float32, the product rounded first.
	Scale, Shift []float32
	Y            []int32 // N class indices

	// Store, where it is not nil, is the identity of Bytes: with the same Store they are the same,
	// so that a device may keep a copy of them for as long as there is the Store.
	CacheKey *CacheKey
}

// Store stands for bytes that never change. It is made by whoever has them, once.
type CacheKey struct{ _ [2]uint64 } // not so small that it shares memory with others: it has to be collected by itself

// N is the number of examples.
func (b Batch) N() int { return len(b.Y) }

// Check returns an error unless the batch has that many examples of that many features, in one form
// that makes sense. It does not look at the classes.
func (b Batch) Check(examples, features int) error {
	if b.N() != examples {
		return fmt.Errorf("batch of %d examples, want %d: load code for each batch size in use", b.N(), examples)
	}
	if b.Bytes != nil {
		return b.checkBytes(features)
	}
	if b.Rows != nil {
		return fmt.Errorf("batch has %d rows of no bytes, want bytes that they lie in", len(b.Rows))
	}
	return fits(len(b.X), "numbers", examples, features)
}

func (b Batch) checkBytes(features int) error {
	if b.X != nil {
		return fmt.Errorf("batch has its examples both as %d numbers and as %d bytes, want one of them", len(b.X),
			len(b.Bytes))
	}
	if c := len(b.Scale); c == 0 || len(b.Shift) != c || features%c != 0 {
		return fmt.Errorf("batch of bytes has %d scales and %d shifts, want as many as there are channels in the %d features of an example, or one",
			c, len(b.Shift), features)
	}
	if b.Rows == nil {
		return fits(len(b.Bytes), "bytes", b.N(), features)
	}
	if len(b.Rows) != b.N() {
		return fmt.Errorf("batch has %d rows for %d examples, want one for each", len(b.Rows), b.N())
	}
	largest := uint32(0) // row, or one below 0: no branch for each
	for _, row := range b.Rows {
		largest = max(largest, uint32(row))
	}
	if len(b.Rows) > 0 && (int(largest)+1)*features > len(b.Bytes) {
		i := slices.IndexFunc(b.Rows, func(row int32) bool { return uint32(row) == largest })
		return fmt.Errorf("example %d of the batch is row %d of %d bytes with %d features a row: check that the data set fits the model",
			i, b.Rows[i], len(b.Bytes), features)
	}
	return nil
}

func fits(have int, what string, examples, features int) error {
	if want := examples * features; have != want {
		return fmt.Errorf("batch has %d %s, want %d (%d examples of %d features): check that the data set fits the model", have, what, want, examples, features)
	}
	return nil
}

// Part is the examples from, from+1, ... to-1 of a batch that Check accepts, in its memory.
func (b Batch) Slice(from, to int) Batch {
	f := (len(b.X) + len(b.Bytes)) / max(1, b.N())
	switch {
	case b.Rows != nil:
		b.Rows = b.Rows[from:to]
	case b.Bytes != nil:
		b.Bytes = b.Bytes[from*f : to*f]
	default:
		b.X = b.X[from*f : to*f]
	}
	b.Y = b.Y[from:to]
	return b
}

// Numbers returns the examples as numbers: X, or what Bytes stand for, for which it uses the memory
// of dst where that is large enough. The batch is one that Check accepts.
func (b Batch) Numbers(dst []float32, features int) []float32 {
	if b.Bytes == nil {
		return b.X
	}
	n := b.N() * features
	if cap(dst) < n {
		dst = make([]float32, n)
	}
	dst = dst[:n]
	for c := range b.Scale {
		var of [256]float32
		for v := range of {
			of[v] = float32(float32(v)*b.Scale[c]) + b.Shift[c]
		}
		for i := range b.N() {
			from, to := b.Example(i, features), dst[i*features:][:features]
			for j := c; j < features; j += len(b.Scale) {
				to[j] = of[from[j]]
			}
		}
	}
	return dst
}

// Example is the bytes of example i.
func (b Batch) Example(i, features int) []uint8 {
	if b.Rows != nil {
		i = int(b.Rows[i])
	}
	return b.Bytes[i*features:][:features]
}
