package link

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"fspda/dist"
)

// A body is a message of the algorithm as bytes:
//
//	0  codec    a byte: 0 float32 values, 1 the codec of the run, 2 fp16 values, 3 bf16 values
//	1  vectors  a byte, at most maxVectors
//	2  piece    uint16: 0, or the number of the piece of which the codec of the run writes the values
//	4  lengths  uint32 for each vector
//	.  arrives  float64
//	.  the output of the codec
const (
	codecFloats = 0
	codecOfRun  = 1
	codecFP16   = 2
	codecBF16   = 3
	maxVectors  = 8
)

// bodyCodec encodes messages as bodies and decodes them.
type bodyCodec struct {
	pool       *dist.Pool
	codec      dist.Codec       // The codec of the run; nil: plain values only.
	pieces     []dist.Piece     // The codecs of pieces of a vector, one for each agent; nil: there are none.
	wire       dist.ValueFormat // The format of plain values; "": float32.
	dim        int              // The length of the model's vectors, and the maximal one in a message.
	alloc      func(int) []byte // Allocates memory for a body; nil: make.
	contiguous bool             // Bodies must have a single segment.
}

// limit returns the size of the largest body.
func (c *bodyCodec) limit() int { return 4096 + 4*maxVectors*c.dim }

// headSize returns the number of bytes before the values of a message with a number of vectors.
func headSize(vectors uintptr) uintptr { return 12 + 4*vectors }

// appendHead appends the part of the body before the values.
func appendHead(dst []byte, codec byte, m dist.Message) []byte {
	dst = append(dst, codec, byte(len(m.Values)))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(m.Piece))
	for _, b := range m.Values {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(b.V.Len()))
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(m.Arrives))
}

// encodeInPlace returns a body that refers to the values of a large message instead of copying
// them. It is valid as long as the message is retained.
func (c *bodyCodec) encodeInPlace(m dist.Message) (segments, bool) {
	if m.Exact {
		c = c.exact()
	}
	size := 0
	for _, b := range m.Values {
		size += 4 * b.V.Len()
	}
	if size < minInPlace || c.contiguous || c.plainCode() != codecFloats || !isPlain(m.Codec) ||
		len(m.Values) > maxVectors {
		return nil, false
	}
	body := segments{appendHead(nil, codecFloats, m)}
	for _, b := range m.Values {
		numbers, ok := c.pool.Floats(b)
		if !ok || !littleEndian {
			return nil, false
		}
		if len(numbers) > 0 {
			body = append(body, bytesOf(numbers))
		}
	}
	return body, true
}

func (c *bodyCodec) encode(m dist.Message) ([]byte, error) {
	if m.Exact {
		c = c.exact()
	}
	if len(m.Values) > maxVectors {
		return nil, fmt.Errorf("link: a message has %d vectors; the protocol carries at most %d", len(m.Values),
			maxVectors)
	}
	codec := c.plainCode()
	if !isPlain(m.Codec) {
		codec = codecOfRun
	}
	size := int(headSize(uintptr(len(m.Values))))
	for _, b := range m.Values {
		size += c.wire.Bits() / 8 * b.V.Len() // an estimate if a codec writes them
	}
	var body []byte
	if c.alloc != nil {
		body = c.alloc(size)
	}
	body = appendHead(slices.Grow(body, size), codec, m)
	if codec != codecOfRun {
		for _, b := range m.Values {
			body = c.appendValues(body, b)
		}
		return body, nil
	}
	p := dist.Payload{Dim: c.dim, T: m.T, Coords: m.Values[0].Coords}
	for _, b := range m.Values {
		v := make([]float32, b.V.Len())
		c.pool.Device().Read(v, b.V)
		p.Vectors = append(p.Vectors, v)
	}
	return m.Codec.Encode(body, p, dist.SharedSeed, false)
}

// isPlain reports whether a codec writes float32 values only. Both ends then know the coordinates.
func isPlain(c dist.Codec) bool {
	switch c.(type) {
	case nil, dist.FloatCodec:
		return true
	}
	return false
}

// plainCode returns the codec byte of plain messages of the run.
func (c *bodyCodec) plainCode() byte {
	switch c.wire {
	case dist.FP16:
		return codecFP16
	case dist.BF16:
		return codecBF16
	}
	return codecFloats
}

// exact is the codec of a run whose plain values are float32. Vectors that agents pass on at a change
// of the members are not rounded, whatever the format of the run.
func (c *bodyCodec) exact() *bodyCodec {
	e := *c
	e.wire = ""
	return &e
}

// appendValues appends the values of a buffer in the format of the run. The caller has reserved the
// capacity.
func (c *bodyCodec) appendValues(dst []byte, b *dist.Buffer) []byte {
	n := b.V.Len()
	if c.plainCode() == codecFloats && n > 0 {
		if view, ok := floatsOf(dst[len(dst) : len(dst)+4*n]); ok {
			c.pool.Device().Read(view, b.V)
			return dst[:len(dst)+4*n]
		}
	}
	host := make([]float32, n)
	c.pool.Device().Read(host, b.V)
	return c.wire.Append(dst, host)
}

// littleEndian reports whether this machine has the byte order of the protocol.
var littleEndian = func() bool { one := uint16(1); return *(*byte)(unsafe.Pointer(&one)) == 1 }()

// floatsOf returns the bytes b as numbers without a copy, if byte order and alignment allow it. b
// must not be empty.
func floatsOf(b []byte) ([]float32, bool) {
	if !littleEndian || uintptr(unsafe.Pointer(&b[0]))%4 != 0 {
		return nil, false
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4), true
}

// bytesOf returns numbers as bytes without a copy. numbers must not be empty.
func bytesOf(numbers []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), 4*len(numbers))
}

// decode reads the body of a message of iteration t into buffers of the pool. A large body of one
// vector becomes a buffer without a copy. decode calls done when the body is not needed any more.
// With finite it refuses values that are not finite.
func (c *bodyCodec) decode(t int, body []byte, finite bool, done func()) (values []*dist.Buffer, arrives float64,
	err error) {
	if len(body) > 0 && body[0] == codecFloats {
		c = c.exact()
	}
	lengths, codec, rest, err := c.decodeHead(body)
	if err != nil {
		return nil, 0, err
	}
	piece := int(binary.LittleEndian.Uint16(body[2:]))
	if codec != codecOfRun {
		if err := c.checkValues(lengths, rest[8:], finite); err != nil {
			done()
			return nil, 0, err
		}
	}
	if b, ok := c.wrapInPlace(lengths, codec, rest[8:], done); ok {
		return []*dist.Buffer{b}, math.Float64frombits(binary.LittleEndian.Uint64(rest)), nil
	}
	defer done()
	arrives = math.Float64frombits(binary.LittleEndian.Uint64(rest))
	rest = rest[8:]
	if codec == codecOfRun {
		values, err = c.decodeCodec(t, piece, lengths, rest, finite)
		return values, arrives, err
	}
	width := c.wire.Bits() / 8
	for _, n := range lengths {
		b := c.pool.Get(n)
		c.writeValues(b, rest[:width*n])
		rest = rest[width*n:]
		values = append(values, b)
	}
	return values, arrives, nil
}

// checkValues checks the number of the values in a message, and with finite that they are.
func (c *bodyCodec) checkValues(lengths []int, values []byte, finite bool) error {
	total, width := 0, c.wire.Bits()/8
	for _, n := range lengths {
		total += width * n
	}
	if len(values) != total {
		return fmt.Errorf("link: a message has %d bytes of values, its lengths say %d", len(values), total)
	}
	if !finite {
		return nil
	}
	for i, n := range lengths {
		if at := c.wire.FirstNotFinite(values[:width*n]); at >= 0 {
			bad := []float32{0}
			c.wire.Read(bad, values[width*at:width*(at+1)])
			return &dist.BadValueError{Vector: i, At: at, Value: bad[0]}
		}
		values = values[width*n:]
	}
	return nil
}

// wrapInPlace returns a buffer that uses the memory of a large message with one vector.
func (c *bodyCodec) wrapInPlace(lengths []int, codec byte, values []byte, done func()) (*dist.Buffer, bool) {
	if codec != codecFloats || len(lengths) != 1 || len(values) != 4*lengths[0] || len(values) < minPooledBody {
		return nil, false
	}
	numbers, ok := floatsOf(values)
	if !ok {
		return nil, false
	}
	return c.pool.Wrap(numbers, done)
}

// decodeHead decodes the part of the body before the values and checks it against the run.
func (c *bodyCodec) decodeHead(body []byte) (lengths []int, codec byte, rest []byte, err error) {
	if len(body) < 4 || body[0] > codecBF16 || body[1] > maxVectors {
		return nil, 0, nil, fmt.Errorf("link: a message of %d bytes has no valid head", len(body))
	}
	codec, rest = body[0], body[4:]
	if piece := binary.LittleEndian.Uint16(body[2:]); piece > 0 && (codec != codecOfRun || int(piece) > len(c.pieces)) {
		return nil, 0, nil, fmt.Errorf("link: a message has piece %d of a vector, but the run has %d", piece,
			len(c.pieces))
	}
	if codec != codecOfRun && codec != c.plainCode() {
		return nil, 0, nil, fmt.Errorf("link: a message has values of kind %d, but the run uses %s", codec,
			cmp.Or(c.wire, dist.FP32))
	}
	if codec == codecOfRun && (c.codec == nil || body[1] == 0) {
		return nil, 0, nil, fmt.Errorf("link: a message has %d vectors of a codec that this run does not use", body[1])
	}
	if len(rest) < 4*int(body[1])+8 {
		return nil, 0, nil, fmt.Errorf("link: a message of %d bytes ends before its lengths do", len(body))
	}
	for range body[1] {
		n := binary.LittleEndian.Uint32(rest)
		if uint64(n) > uint64(c.dim) {
			return nil, 0, nil, fmt.Errorf("link: a message has a vector of %d values, but the model has %d", n, c.dim)
		}
		lengths, rest = append(lengths, int(n)), rest[4:]
	}
	return lengths, codec, rest, nil
}

func (c *bodyCodec) decodeCodec(t, piece int, lengths []int, rest []byte, finite bool) ([]*dist.Buffer, error) {
	p, codec := dist.Payload{Dim: c.dim, T: t}, c.codec
	if piece > 0 {
		codec = c.pieces[piece-1]
	}
	if err := codec.Decode(&p, rest, dist.SharedSeed, false); err != nil {
		return nil, err
	}
	if err := dist.NotFinite(p.Vectors); finite && err != nil {
		return nil, err
	}
	if len(p.Vectors) != len(lengths) {
		return nil, fmt.Errorf("link: a message decodes to %d vectors, its head says %d", len(p.Vectors), len(lengths))
	}
	for i, v := range p.Vectors {
		if len(v) != lengths[i] {
			return nil, fmt.Errorf("link: vector %d of a message has %d values, its head says %d", i, len(v),
				lengths[i])
		}
	}
	var values []*dist.Buffer
	for i, v := range p.Vectors {
		b := c.pool.Get(len(v))
		c.pool.Device().Write(b.V, v)
		if i == 0 && codec.Sent(p).DataDependent {
			b.Coords = append(b.Coords, p.Coords...)
		}
		values = append(values, b)
	}
	return values, nil
}

// writeValues writes values that appendValues has encoded to a buffer.
func (c *bodyCodec) writeValues(b *dist.Buffer, src []byte) {
	if c.plainCode() == codecFloats && len(src) > 0 {
		if view, ok := floatsOf(src); ok {
			c.pool.Device().Write(b.V, view)
			return
		}
	}
	host := make([]float32, b.V.Len())
	c.wire.Read(host, src)
	c.pool.Device().Write(b.V, host)
}
