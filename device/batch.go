package device

import (
	"errors"
	"fmt"
	"slices"
)

// Batch is a minibatch in host memory: N examples and their class indices. The examples are
// float32 values in X, encoded bytes in Bytes, or windows of the tokens in Tokens; the other two
// fields are nil. Data sets stored as bytes pass the bytes on unconverted, which moves a quarter of
// the memory, and none at all where Rows selects the examples. A device decodes them where it needs
// them, with the same bits as [Batch.Numbers].
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

	// Tokens is a stream of tokens, perhaps a mapped file. Example i is the window of Length+1
	// tokens that begins at At[i]: the first Length are its features, the last Length its labels, so
	// that each token predicts the next.
	Tokens []uint16
	At     []int64

	Y      []int32 // class indices, Length for each example; nil with Tokens
	Length int     // the labels of an example: one for each token of a window; 0 means 1

	// Mix gives each example a second class: nil for none. Only code that is Mixed takes it to a loss.
	Mix []Mix

	// Key is the key of the random numbers that training draws for this batch: the masks of Dropout.
	// 0 stands for none: Dropout then changes nothing.
	Key uint64

	// CacheKey identifies the contents of Bytes or Tokens; it may be nil. Batches with the same key
	// have the same contents, so a device may keep a copy of them as long as the key is reachable.
	CacheKey *CacheKey
}

// Mix is the second class of an example. The target of the loss is Y with Weight, and Partner with
// 1-Weight.
type Mix struct {
	Partner int32
	Weight  float32 // 0 to 1
}

// CacheKey identifies bytes that never change. The owner of the bytes creates one key for them. The
// type is larger than Go's tiny-object size so that each key is collected individually.
type CacheKey struct{ _ [2]uint64 }

func (b Batch) N() int {
	if b.Tokens != nil {
		return len(b.At)
	}
	return len(b.Y) / max(1, b.Length)
}

// Targets is the number of labels: one for each example, or Length.
func (b Batch) Targets() int { return b.N() * max(1, b.Length) }

// Check returns an error unless the batch has the number of examples, features and labels that code
// needs, in exactly one of the three forms. It does not check the classes, but see
// [Batch.CheckTokens].
func (b Batch) Check(code *Code) error {
	examples, features := code.Batch, code.Features
	if have, want := max(1, b.Length), max(1, code.Labels); have != want {
		return fmt.Errorf("batch has %d labels an example, want %d: check that the data set fits the model", have, want)
	}
	if b.N() != examples {
		return fmt.Errorf("batch of %d examples, want %d: load code for each batch size in use", b.N(), examples)
	}
	if err := b.checkMix(code); err != nil {
		return err
	}
	if b.Tokens != nil {
		return b.checkWindows(features)
	}
	if len(b.Y) != b.Targets() {
		return fmt.Errorf("batch has %d labels, want %d for each example", len(b.Y), b.Length)
	}
	if b.Bytes != nil {
		return b.checkBytes(features)
	}
	if b.Rows != nil {
		return fmt.Errorf("batch has %d rows but no bytes: set Bytes, or leave Rows nil", len(b.Rows))
	}
	return fits(len(b.X), "numbers", examples, features)
}

func (b Batch) checkMix(code *Code) error {
	switch {
	case b.Mix == nil:
		return nil
	case len(b.Mix) != b.Targets():
		return fmt.Errorf("batch has second classes for %d examples of %d, want one for each", len(b.Mix), b.Targets())
	case code.Gradient && !code.Mixed:
		return errors.New("batch has second classes, but the code has no loss that reads them: compile the network " +
			"with mixed classes")
	}
	for i, x := range b.Mix {
		if !(x.Weight >= 0 && x.Weight <= 1) {
			return fmt.Errorf("the first class of example %d of the batch has weight %v, want 0 to 1", i, x.Weight)
		}
	}
	return nil
}

// checkWindows checks that the windows lie within the stream.
func (b Batch) checkWindows(features int) error {
	if b.X != nil || b.Bytes != nil || b.Y != nil {
		return fmt.Errorf("batch of tokens has also %d values in X, %d bytes in Bytes and %d labels in Y, want none",
			len(b.X), len(b.Bytes), len(b.Y))
	}
	if b.Length != features {
		return fmt.Errorf("batch has windows of %d tokens, want %d: load code for each length in use", b.Length,
			features)
	}
	for i, at := range b.At {
		if at < 0 || at > int64(len(b.Tokens))-int64(b.Length)-1 {
			return fmt.Errorf("window %d of the batch begins at token %d of %d and has %d tokens: want it within "+
				"the stream", i, at, len(b.Tokens), b.Length+1)
		}
	}
	return nil
}

// TokenError says that a token of a batch is not in the vocabulary.
type TokenError struct {
	Token      uint16
	Vocabulary int   // the number of tokens
	Window, At int   // window of the batch, and position in the window
	Place      int64 // position in the stream
}

func (e *TokenError) Error() string {
	return fmt.Sprintf("token %d of window %d, at place %d of the stream, is %d, want 0 to %d: check that the stream "+
		"was made with the vocabulary of the model", e.At, e.Window, e.Place, e.Token, e.Vocabulary-1)
}

// CheckTokens returns a *[TokenError] unless all tokens of the windows are below vocabulary; 0
// stands for any. Check must accept b.
func (b Batch) CheckTokens(vocabulary int) error {
	if vocabulary == 0 {
		return nil
	}
	for i, at := range b.At {
		for k, token := range b.Tokens[at : at+int64(b.Length)+1] {
			if int(token) >= vocabulary {
				return &TokenError{Token: token, Vocabulary: vocabulary, Window: i, At: k, Place: at + int64(k)}
			}
		}
	}
	return nil
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

// Slice returns examples from to to-1. The result shares the memory of b. Slices that begin at
// other examples have other Keys, unless b has none. Check must accept b.
func (b Batch) Slice(from, to int) Batch {
	if b.Key != 0 && from > 0 {
		b.Key = max(1, b.Key+uint64(from)*sliceFactor)
	}
	if b.Mix != nil {
		b.Mix = b.Mix[from:to]
	}
	f := (len(b.X) + len(b.Bytes)) / max(1, b.N())
	switch {
	case b.Tokens != nil:
		b.At = b.At[from:to]
		return b
	case b.Rows != nil:
		b.Rows = b.Rows[from:to]
	case b.Bytes != nil:
		b.Bytes = b.Bytes[from*f : to*f]
	default:
		b.X = b.X[from*f : to*f]
	}
	each := max(1, b.Length)
	b.Y = b.Y[from*each : to*each]
	return b
}

// sliceFactor spreads the bits of a Key: the golden ratio times 2^64, which is odd.
const sliceFactor = 0x9e3779b97f4a7c15

// keyParts is the number of numbers of a Key.
const keyParts = 4

// KeyNumbers writes the Key to dst, 4 numbers of 16 bits each, the lowest first.
func (b Batch) KeyNumbers(dst []float32) {
	for i := range dst[:keyParts] {
		dst[i] = float32(b.Key >> (16 * i) & 0xffff)
	}
}

// KeyOf returns the key that KeyNumbers wrote.
func KeyOf(numbers []float32) (key uint64) {
	for i, v := range numbers[:keyParts] {
		key |= uint64(v) << (16 * i)
	}
	return key
}

// mixNumbers is the number of numbers of a label of Code that is Mixed.
const mixNumbers = 3

// Labels writes the labels to dst, which has the length [Code.LabelNumbers]. Check must accept b.
func (b Batch) Labels(dst []float32) {
	if n := b.Targets(); n > 0 && len(dst) == mixNumbers*n {
		b.mixedLabels(dst)
		return
	}
	for i, y := range b.Y {
		dst[i] = float32(y)
	}
	for i, at := range b.At {
		for k, token := range b.Tokens[at+1:][:b.Length] {
			dst[i*b.Length+k] = float32(token)
		}
	}
}

// mixedLabels writes the labels, each with its second class and the weight of the first. Without
// Mix, all weight is the first class's.
func (b Batch) mixedLabels(dst []float32) {
	for i, y := range b.Y {
		x := Mix{Partner: y, Weight: 1}
		if b.Mix != nil {
			x = b.Mix[i]
		}
		dst[mixNumbers*i], dst[mixNumbers*i+1], dst[mixNumbers*i+2] = float32(y), float32(x.Partner), x.Weight
	}
}

// Numbers returns the features as float32: X itself, or the decoded Bytes or Tokens, which it
// writes to dst if dst is large enough. Check must accept b.
func (b Batch) Numbers(dst []float32, features int) []float32 {
	if b.Bytes == nil && b.Tokens == nil {
		return b.X
	}
	n := b.N() * features
	if cap(dst) < n {
		dst = make([]float32, n)
	}
	dst = dst[:n]
	for i, at := range b.At {
		for k, token := range b.Tokens[at:][:features] {
			dst[i*features+k] = float32(token)
		}
	}
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

func (b Batch) Example(i, features int) []uint8 {
	if b.Rows != nil {
		i = int(b.Rows[i])
	}
	return b.Bytes[i*features:][:features]
}
