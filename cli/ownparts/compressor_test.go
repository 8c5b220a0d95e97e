package ownparts

import (
	"fmt"
	"math"

	"fspda/dist"
)

// truncate sends the first bytes of each number: its sign, its exponent and the leading bits of its
// fraction.
type truncate struct {
	spec  string
	bytes int
}

func init() {
	dist.RegisterCompressor(dist.CompressorKind{
		Form: dist.Form{Name: "truncate", Meaning: "the first n bytes of each number",
			Args: []dist.Arg{dist.Whole("n", 2, 3, "%q is not a number of bytes: it takes 2 or 3")}},
		Example: "truncate(2)",
		New: func(p dist.Spec, _ dist.CompressorOptions) (dist.Compressor, error) {
			return truncate{p.String(), p.Whole(0)}, nil
		},
	})
}

func (c truncate) String() string  { return c.spec }
func (truncate) Picked() dist.Mask { return nil }

// Delta follows from the largest relative error, 2^-7 or 2^-15.
func (c truncate) Delta() float64 { return 1 - math.Exp2(float64(18-16*c.bytes)) }

func (c truncate) Compress(p *dist.Payload, v []float32, _, _, _ int) error {
	p.Dim, p.Coords = len(v), nil
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = math.Float32frombits(math.Float32bits(x) >> c.dropped() << c.dropped())
	}
	p.Vectors = append(p.Vectors[:0], out)
	return nil
}

func (c truncate) dropped() int { return 32 - 8*c.bytes }

func (c truncate) Sent(p dist.Payload) dist.Sent {
	return dist.Sent{Values: p.Dim, ValueBits: 8 * c.bytes, Mask: p.Dim, Dim: p.Dim}
}

func (c truncate) Encode(dst []byte, p dist.Payload, _ dist.Accounting, _ bool) ([]byte, error) {
	for _, x := range p.Vectors[0] {
		for k := range c.bytes {
			dst = append(dst, byte(math.Float32bits(x)>>(24-8*k)))
		}
	}
	return dst, nil
}

func (c truncate) Decode(p *dist.Payload, b []byte, _ dist.Accounting, _ bool) error {
	if len(b) != c.bytes*p.Dim {
		return fmt.Errorf("%d bytes of %d numbers, expected %d", len(b), p.Dim, c.bytes*p.Dim)
	}
	out := make([]float32, p.Dim)
	for i := range out {
		var word uint32
		for k := range c.bytes {
			word |= uint32(b[c.bytes*i+k]) << (24 - 8*k)
		}
		out[i] = math.Float32frombits(word)
	}
	p.Coords, p.Vectors = nil, [][]float32{out}
	return nil
}
