package dist

import (
	"fmt"
	"math"
)

// Payload is the contents of a message on the host: the numbers exactly as they arrive at its
// receiver.
type Payload struct {
	Dim     int         // length of the vector that was compressed
	Coords  []uint32    // the coordinates that travel, ascending; nil: all, or known to both ends
	Vectors [][]float32 // what is in the message's buffers, one by one

	scratch []uint32 // of topk
}

// Codec writes the contents of a message as bits and reads them back with the bits of every number
// unchanged.
//
// In one process no codec runs: buffers change hands, and the [Ledger] counts by [Codec.Sent] what
// the codec would have written. A [Transport] that leaves the process reads the buffers of a
// [Message], calls Encode in the accounting [SharedSeed] of the message's codec, and Decode at the
// other end. Both give the same trajectory, and Encode writes exactly the bits that the Ledger
// counts, in each accounting.
type Codec interface {
	// Sent describes the message to a Ledger. What the codec cannot know, whether it carries
	// indices that a seed could replace, is left to the caller.
	Sent(p Payload) Sent
	// Encode appends p to dst. The accounting says how the coordinates are written: not at all
	// where a seed gives them, else as ceil(log2 d) or 64 bits each. With indices unset,
	// coordinates that a seed gives are left out in every accounting.
	Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error)
	// Decode fills p with what Encode wrote in the same accounting; p.Dim is given. It keeps
	// p.Coords where none were written.
	Decode(p *Payload, b []byte, a Accounting, indices bool) error
}

// Floats is the codec of plain float32 vectors that share one mask: what the uncompressed
// algorithms send, and the meaning of a message without a codec.
type FloatCodec struct {
	Vectors int // in one message
	Len     int // of each: the coordinates of the mask, which both ends know
}

var _ Codec = FloatCodec{}

// Sent implements [Codec].
func (f FloatCodec) Sent(p Payload) Sent {
	return Sent{Values: f.Vectors * f.Len, ValueBits: 32, Mask: f.Len, Dim: p.Dim}
}

// Encode implements [Codec].
func (f FloatCodec) Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error) {
	if err := f.check(p); err != nil {
		return nil, err
	}
	w := bitWriter{dst: dst}
	if width := f.indexBits(p.Dim, a, indices); width > 0 {
		if err := writeCoords(&w, p.Coords, f.Len, width); err != nil {
			return nil, err
		}
	}
	writeFloats(&w, p.Vectors...)
	return w.bytes(), nil
}

// Decode implements [Codec].
func (f FloatCodec) Decode(p *Payload, b []byte, a Accounting, indices bool) error {
	width := f.indexBits(p.Dim, a, indices)
	if err := checkSize("float32 vectors", b, f.Len*(width+32*f.Vectors)); err != nil {
		return err
	}
	r := bitReader{src: b}
	if width > 0 {
		p.Coords = readCoords(&r, p.Coords, f.Len, width)
	}
	p.resize(f.Vectors)
	for i := range p.Vectors {
		p.Vectors[i] = readFloats(&r, p.Vectors[i], f.Len)
	}
	return nil
}

func (f FloatCodec) check(p Payload) error {
	if len(p.Vectors) != f.Vectors {
		return fmt.Errorf("dist: the codec of %d float32 vectors was given %d; it writes those it was made for",
			f.Vectors, len(p.Vectors))
	}
	for _, v := range p.Vectors {
		if len(v) != f.Len {
			return fmt.Errorf("dist: the codec of float32 vectors of length %d was given one of length %d; it writes those it was made for", f.Len, len(v))
		}
	}
	return nil
}

// indexBits is the width of an index that a seed could replace; 0: none is written.
func (f FloatCodec) indexBits(dim int, a Accounting, indices bool) int {
	if !indices || f.Len == dim {
		return 0
	}
	switch a {
	case Packed:
		return IndexBits(dim)
	case Reference:
		return 64
	}
	return 0
}

// resize gives p as many vectors as asked for, keeping their memory.
func (p *Payload) resize(vectors int) {
	for len(p.Vectors) < vectors {
		p.Vectors = append(p.Vectors, nil)
	}
	p.Vectors = p.Vectors[:vectors]
}

func writeCoords(w *bitWriter, coords []uint32, n, width int) error {
	if len(coords) != n {
		return fmt.Errorf("dist: a message of %d values has %d coordinates to write; give it as many", n, len(coords))
	}
	for _, c := range coords {
		w.put(uint64(c), width)
	}
	return nil
}

func readCoords(r *bitReader, dst []uint32, n, width int) []uint32 {
	dst = grow(dst, n)
	for i := range dst {
		dst[i] = uint32(r.take(width))
	}
	return dst
}

func writeFloats(w *bitWriter, vs ...[]float32) {
	for _, v := range vs {
		for _, x := range v {
			w.put(uint64(math.Float32bits(x)), 32)
		}
	}
}

func readFloats(r *bitReader, dst []float32, n int) []float32 {
	dst = growFloats(dst, n)
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(r.take(32)))
	}
	return dst
}

// growFloats returns n floats, in the memory of dst where it is enough.
func growFloats(dst []float32, n int) []float32 {
	if cap(dst) < n {
		return make([]float32, n)
	}
	return dst[:n]
}

// NotFiniteError reports a number that no quantizer can carry. A run that meets it has diverged.
type NotFiniteError struct {
	Codec string
	At    int // coordinate
	Value float64
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("dist: %s: coordinate %d is %v, which it cannot carry: the model has diverged; lower alpha or theta", e.Codec, e.At, e.Value)
}

// checkFinite returns the error of the first number that is not finite.
func checkFinite(codec string, v []float32) error {
	for i, x := range v {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return &NotFiniteError{Codec: codec, At: i, Value: float64(x)}
		}
	}
	return nil
}
