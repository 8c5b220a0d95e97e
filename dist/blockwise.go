package dist

import (
	"fmt"

	"fspda/dist/fewbits"
)

// blockwise rounds the numbers of each block of adjacent coordinates of a tensor to the nearest
// multiple of a scale of its own, or to the nearest number of eight bits times it:
//
//	int(b)   top = 2^(b-1)-1     scale = max|v|/top     Q(v) = scale·clamp(round(v/scale), -top, top)
//	fp8      top = 448           scale = max|v|/top     Q(v) = scale·E4M3(v/scale)
//
// round takes halves to even numbers. E4M3 has three bits behind the point, exponents from -6 to 8,
// and multiples of 2^-9 below 2^-6. A block of zeros has scale 0. Nothing is random.
//
// Where a mask takes the parts of a vector in turn, the vector is the part of the iteration, and no
// block has coordinates of two parts.
//
// A message has two vectors: the values as they arrive, and the scales. The codec writes the
// scales, then the codes.
type blockwise struct {
	name   string
	digits fewbits.Set
	layout partition
	spans  []span // Of a piece: where it is, by the parts of layout.
}

var _ Divisible = (*blockwise)(nil)

// Divisible is a [Compressor] whose vectors can be divided, each piece compressed by itself.
type Divisible interface {
	Compressor
	// Divide returns n compressors, each of one piece of a vector; nil if a vector has too few
	// blocks for that. What they compress is what the whole compressor does, to the bit.
	Divide(n int) []Piece
}

// Piece compresses a piece of a vector.
type Piece interface {
	Compressor
	// Span returns where in the vectors of a message of iteration t the piece is.
	Span(t, vector int) (from, to int)
}

// span is where a piece begins and ends among the values and among the blocks.
type span [2][2]int

func (c *blockwise) Divide(n int) []Piece {
	out, pieces := make([]*blockwise, n), make([]Piece, n)
	for k := range out {
		out[k] = &blockwise{name: c.name, digits: c.digits, layout: c.layout}
		out[k].layout.parts = nil
		pieces[k] = out[k]
	}
	for _, whole := range c.layout.parts {
		all, value := len(whole.blocks), 0
		if all < n {
			return nil
		}
		for k, p := range out {
			from, to := all*k/n, all*(k+1)/n
			b := blocked{blocks: whole.blocks[from:to]}
			for _, m := range b.blocks {
				b.dim += m
			}
			p.layout.parts = append(p.layout.parts, b)
			p.spans = append(p.spans, span{{value, value + b.dim}, {from, to}})
			value += b.dim
		}
	}
	return pieces
}

func (c *blockwise) Span(t, vector int) (from, to int) {
	at := c.spans[c.layout.take(t)][vector]
	return at[0], at[1]
}

// maxBlock is the largest block.
const maxBlock = 1 << 24

// blockArg is the argument of compressors with blocks.
var blockArg = Whole("block", 1, maxBlock, "expected the coordinates of a block, at least 1, not %q: 256")

func newBlockwise(p Spec, of fewbits.Set, block int, o CompressorOptions) (Compressor, error) {
	layout, err := newPartition(p, o, block)
	return &blockwise{name: p.String(), digits: of, layout: layout}, err
}

func (c *blockwise) String() string { return c.name }
func (*blockwise) Picked() Mask     { return nil }

// Delta is the contraction of the largest block.
func (c *blockwise) Delta() float64 { return c.digits.Delta(c.layout.largest) }

func (c *blockwise) Compress(p *Payload, v []float32, t, _, _ int) error {
	if err := checkFinite(c.name, v); err != nil {
		return err
	}
	part := c.layout.at(t)
	if len(v) != part.dim {
		return fmt.Errorf("dist: %s of %d coordinates cannot compress %d", c.name, part.dim, len(v))
	}
	p.Dim, p.T, p.Coords = c.layout.dim, t, nil
	p.resize(2)
	p.Vectors[0] = grow(p.Vectors[0], part.dim)
	p.Vectors[1] = grow(p.Vectors[1], len(part.blocks))
	from := 0
	for i, m := range part.blocks {
		p.Vectors[1][i] = c.block(p.Vectors[0][from:from+m], v[from:from+m])
		from += m
	}
	return nil
}

func (c *blockwise) block(dst, v []float32) float32 {
	var most float32
	for _, x := range v {
		most = max(most, x, -x)
	}
	scale := float32(float64(most) / c.digits.Top())
	if scale < leastNorm {
		clear(dst)
		return 0
	}
	unit := float64(scale)
	for i, x := range v {
		dst[i] = float32(c.digits.Nearest(float64(x)/unit) * unit)
	}
	return scale
}

func (c *blockwise) Sent(p Payload) Sent {
	part := c.layout.at(p.T)
	return Sent{Values: part.dim, ValueBits: c.digits.Bits(), ExtraBits: 32 * len(part.blocks), Mask: part.dim,
		Dim: part.dim}
}

func (c *blockwise) Encode(dst []byte, p Payload, _ Accounting, _ bool) ([]byte, error) {
	part := c.layout.at(p.T)
	if len(p.Vectors) != 2 || len(p.Vectors[0]) != part.dim || len(p.Vectors[1]) != len(part.blocks) {
		return nil, fmt.Errorf("dist: %s of %d coordinates in %d blocks cannot encode a payload that it did not "+
			"compress", c.name, part.dim, len(part.blocks))
	}
	w := bitWriter{dst: dst}
	writeFloats(&w, p.Vectors[1])
	from, width := 0, c.digits.Bits()
	for i, m := range part.blocks {
		unit := float64(p.Vectors[1][i])
		for _, x := range p.Vectors[0][from : from+m] {
			at := 0.0
			if unit > 0 {
				at = c.digits.Nearest(float64(x) / unit)
			}
			w.put(c.digits.Code(at), width)
		}
		from += m
	}
	return w.bytes(), nil
}

func (c *blockwise) Decode(p *Payload, src []byte, _ Accounting, _ bool) error {
	part, width := c.layout.at(p.T), c.digits.Bits()
	if err := checkSize(c.name, src, part.dim*width+32*len(part.blocks)); err != nil {
		return err
	}
	p.Coords = nil
	p.resize(2)
	r := bitReader{src: src}
	p.Vectors[1] = readFloats(&r, p.Vectors[1], len(part.blocks))
	p.Vectors[0] = grow(p.Vectors[0], part.dim)
	from := 0
	for i, m := range part.blocks {
		unit := float64(p.Vectors[1][i])
		for k := range p.Vectors[0][from : from+m] {
			p.Vectors[0][from+k] = float32(c.digits.Value(r.take(width)) * unit)
		}
		from += m
	}
	return nil
}

// partition is how the coordinates of a vector, or of each of its parts, fall into blocks.
type partition struct {
	dim     int
	parts   []blocked
	take    func(t int) int // The part of an iteration.
	largest int             // The largest block.
}

// blocked is the blocks of a part.
type blocked struct {
	dim    int
	blocks []int
}

// newPartition makes blocks of adjacent coordinates within the tensors, and within the parts that a
// mask takes in turn.
func newPartition(p Spec, o CompressorOptions, block int) (partition, error) {
	d, err := totalSize(p, o.Sizes)
	l := partition{dim: d, take: func(int) int { return 0 }}
	if err != nil {
		return l, err
	}
	if o.Mask == nil || o.Mask.Parts() == 1 {
		var whole blocked
		for _, n := range o.Sizes {
			whole.cut(n, block)
		}
		l.parts = []blocked{whole}
	} else {
		l.take = o.Mask.Part
		for k := range o.Mask.Parts() {
			l.parts = append(l.parts, cutAt(o.Mask.Coordinates(k), o.Sizes, block))
		}
	}
	for _, part := range l.parts {
		for _, m := range part.blocks {
			l.largest = max(l.largest, m)
		}
	}
	return l, nil
}

func (l *partition) at(t int) *blocked { return &l.parts[l.take(t)] }

// cut adds n adjacent coordinates.
func (b *blocked) cut(n, block int) {
	b.dim += n
	for ; n > 0; n -= block {
		b.blocks = append(b.blocks, min(n, block))
	}
}

// cutAt cuts coordinates, ascending, into blocks of adjacent ones of a tensor.
func cutAt(coords []uint32, sizes []int, block int) (b blocked) {
	end, tensor, run := 0, -1, 0
	for k, c := range coords {
		gap := k > 0 && coords[k-1]+1 != c
		if int(c) >= end || gap {
			b.cut(run, block)
			run = 0
		}
		for int(c) >= end {
			tensor++
			end += sizes[tensor]
		}
		run++
	}
	b.cut(run, block)
	return b
}
