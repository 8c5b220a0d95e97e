package dist

import (
	"fmt"
	"math"
)

// Payload is the content of a message on the host: the numbers exactly as its receiver gets them.
type Payload struct {
	Dim     int         // length of the vector that was compressed
	T       int         // iteration of the message, which may say which part of a vector it holds
	Coords  []uint32    // the coordinates sent, ascending; nil: all, or known to both ends
	Vectors [][]float32 // the numbers of the message's buffers

	scratch []uint32  // used by topk
	numbers []float32 // used by dct
}

// Codec encodes the content of a message, and decodes it to bit-identical numbers.
//
// Within a process no codec runs: buffers change owners, and the [Ledger] counts by [Codec.Sent]
// the bits that the codec would have written. A [Transport] between processes encodes the buffers
// of a [Message] with the message's codec in the accounting [SharedSeed] and decodes them at the
// other end. Both ways give the same trajectory, and Encode writes exactly the bits that the Ledger
// counts, in each accounting.
type Codec interface {
	// Sent describes the message for a Ledger. The caller sets Sent.Indices, which the codec cannot
	// know.
	Sent(p Payload) Sent
	// Encode appends p to dst. The accounting determines how coordinates are written: not at all if
	// a seed gives them, else in ceil(log2 d) or 64 bits each. If indices is false, coordinates
	// that a seed gives are omitted in every accounting.
	Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error)
	// Decode sets p to the content that Encode wrote in the same accounting. The caller sets p.Dim and
	// p.T.
	// If a seed gives the coordinates and none were written, p.Coords is unchanged.
	Decode(p *Payload, b []byte, a Accounting, indices bool) error
}

// FloatCodec is the codec of plain float32 vectors that share one mask. Uncompressed algorithms use
// it; it is also the meaning of a message without a codec.
type FloatCodec struct {
	Vectors int // The number of vectors in a message.
	Len     int // The length of each vector: the number of coordinates of the mask, which both ends know.
}

func (f FloatCodec) Sent(p Payload) Sent {
	return Sent{Values: f.Vectors * f.Len, ValueBits: 32, Mask: f.Len, Dim: p.Dim}
}

func (f FloatCodec) Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error) {
	if err := f.check(p); err != nil {
		return nil, err
	}
	return encodeFloats(dst, p, f.Len, f.indexBits(p.Dim, a, indices))
}

// encodeFloats appends the vectors of p, and before them its n coordinates in width bits each, if
// that is not 0.
func encodeFloats(dst []byte, p Payload, n, width int) ([]byte, error) {
	w := bitWriter{dst: dst}
	if width > 0 && len(p.Coords) != n {
		return nil, fmt.Errorf("dist: a message of %d values has %d coordinates, expected as many", n, len(p.Coords))
	}
	for i := 0; width > 0 && i < n; i++ {
		w.put(uint64(p.Coords[i]), width)
	}
	writeFloats(&w, p.Vectors...)
	return w.bytes(), nil
}

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
		return fmt.Errorf("dist: the codec of %d float32 vectors cannot encode %d", f.Vectors, len(p.Vectors))
	}
	for _, v := range p.Vectors {
		if len(v) != f.Len {
			return fmt.Errorf("dist: the codec of float32 vectors of length %d cannot encode one of length %d", f.Len,
				len(v))
		}
	}
	return nil
}

// indexBits returns the width of an index that a seed could replace; 0 if none is written.
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

// resize sets the number of vectors and keeps their memory.
func (p *Payload) resize(vectors int) {
	for len(p.Vectors) < vectors {
		p.Vectors = append(p.Vectors, nil)
	}
	p.Vectors = p.Vectors[:vectors]
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
	dst = grow(dst, n)
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(r.take(32)))
	}
	return dst
}

// NotFiniteError reports a number that a quantizer cannot encode. The run has diverged.
type NotFiniteError struct {
	Codec string
	At    int // coordinate
	Value float64
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("dist: %s: coordinate %d is %v, which it cannot encode: the model has diverged; lower alpha "+
		"or theta", e.Codec, e.At, e.Value)
}

func checkFinite(codec string, v []float32) error {
	for i, x := range v {
		if !finite(x) {
			return &NotFiniteError{Codec: codec, At: i, Value: float64(x)}
		}
	}
	return nil
}
