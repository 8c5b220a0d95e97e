package device

import (
	"fmt"
	"slices"
)

// Batch is a minibatch in host memory: N examples and their class indices. The examples are either
// float32 values in X or encoded bytes in Bytes; the other field is nil. Data sets stored as bytes
// pass the bytes on unconverted, which moves a quarter of the memory, and none at all where Rows
// selects the examples. A device decodes them where it needs them, with the same bits as
// [Batch.Numbers].
type Batch struct {
	X     []float32 // N×features, row-major
	Bytes []uint8   // rows×features, row-major
	// Rows selects the rows of Bytes that are the examples, one row per example. nil means rows 0
	// to N-1.
	Rows []int32
	// Scale and Shift decode Bytes. They have one element, or one per channel if the channels are
	// the last axis of an example (NHWC): byte b of channel c is b·Scale[c] + Shift[c] in float32,
	// with the product rounded first.
	Scale, Shift []float32
	Y            []int32 // N class indices

	// CacheKey identifies the contents of Bytes; it may be nil. Batches with the same key have the
	// same Bytes, so a device may keep a copy of them as long as the key is reachable.
	CacheKey *CacheKey
}

// CacheKey identifies bytes that never change. The owner of the bytes creates one key for them. The
// type is larger than Go's tiny-object size so that each key is collected individually.
type CacheKey struct{ _ [2]uint64 }

// N is the number of examples.
func (b Batch) N() int { return len(b.Y) }

// Check returns an error unless the batch has the given number of examples with the given number of
// features each, in exactly one of the two forms. It does not check the classes.
func (b Batch) Check(examples, features int) error {
	if b.N() != examples {
		return fmt.Errorf("batch of %d examples, want %d: load code for each batch size in use", b.N(), examples)
	}
	if b.Bytes != nil {
		return b.checkBytes(features)
	}
	if b.Rows != nil {
		return fmt.Errorf("batch has %d rows but no bytes: set Bytes, or leave Rows nil", len(b.Rows))
	}
	return fits(len(b.X), "numbers", examples, features)
}

func (b Batch) checkBytes(features int) error {
	if b.X != nil {
		return fmt.Errorf("batch has both %d values in X and %d bytes in Bytes, want one of them", len(b.X),
			len(b.Bytes))
	}
	if c := len(b.Scale); c == 0 || len(b.Shift) != c || features%c != 0 {
		return fmt.Errorf("batch of bytes has %d scales and %d shifts, want one of each or one per channel of the "+
			"%d features", c, len(b.Shift), features)
	}
	if b.Rows == nil {
		return fits(len(b.Bytes), "bytes", b.N(), features)
	}
	if len(b.Rows) != b.N() {
		return fmt.Errorf("batch has %d rows for %d examples, want one for each", len(b.Rows), b.N())
	}
	// the largest row; a negative row wraps to a huge value, so the loop needs no branch
	largest := uint32(0)
	for _, row := range b.Rows {
		largest = max(largest, uint32(row))
	}
	if len(b.Rows) > 0 && (int(largest)+1)*features > len(b.Bytes) {
		i := slices.IndexFunc(b.Rows, func(row int32) bool { return uint32(row) == largest })
		return fmt.Errorf("example %d of the batch is row %d of %d bytes with %d features a row: check that the "+
			"data set fits the model", i, b.Rows[i], len(b.Bytes), features)
	}
	return nil
}

func fits(have int, what string, examples, features int) error {
	if want := examples * features; have != want {
		return fmt.Errorf("batch has %d %s, want %d (%d examples of %d features): check that the data set fits the "+
			"model", have, what, want, examples, features)
	}
	return nil
}

// Slice returns examples from to to-1. The result shares the memory of b. Check must accept b.
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

// Numbers returns the examples as float32: X itself, or the decoded Bytes, which it writes to dst
// if dst is large enough. Check must accept b.
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

// Example returns the bytes of example i.
func (b Batch) Example(i, features int) []uint8 {
	if b.Rows != nil {
		i = int(b.Rows[i])
	}
	return b.Bytes[i*features:][:features]
}
