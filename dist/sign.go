package dist

import (
	"fmt"
	"math"
)

// sign sends the sign of each coordinate and the mean magnitude of its block:
//
//	Q(v) = (|v|₁/m)·sgn(v),   sgn(v) = -1 if v < 0, else +1
//
// for a block of m coordinates; a block of zeros gives zeros. Q(v) is |v|₁²/(m·|v|₂²) nearer to v
// than zero is: for numbers of a normal distribution 2/π, and 1/m at least.
//
// A message has two vectors: the values as they arrive, and the mean magnitudes. The codec writes
// the magnitudes, then one bit for each coordinate.
type sign struct {
	sizes []int
	dim   int
}

// normalSign is the contraction for normally distributed numbers.
const normalSign = 2 / math.Pi

func newSign(o CompressorOptions) sign {
	c := sign{sizes: o.Sizes}
	for _, m := range o.Sizes {
		c.dim += m
	}
	if o.Flat {
		c.sizes = []int{c.dim}
	}
	return c
}

func (sign) String() string { return "sign" }
func (sign) Picked() Mask   { return nil }

// Delta is the contraction for normally distributed numbers. For the worst vector, with a single
// number that is not zero, it is 1/m, but such vectors do not occur.
func (sign) Delta() float64 { return normalSign }

func (c sign) Compress(p *Payload, v []float32, _, _, _ int) error {
	if err := checkFinite("sign", v); err != nil {
		return err
	}
	p.Dim, p.Coords = len(v), nil
	p.resize(2)
	p.Vectors[0] = grow(p.Vectors[0], c.dim)
	p.Vectors[1] = grow(p.Vectors[1], len(c.sizes))
	from := 0
	for i, m := range c.sizes {
		sum := 0.0
		for _, x := range v[from : from+m] {
			sum += math.Abs(float64(x))
		}
		scale := float32(sum / float64(m))
		p.Vectors[1][i] = scale
		for k, x := range v[from : from+m] {
			p.Vectors[0][from+k] = signed(scale, negative(x))
		}
		from += m
	}
	return nil
}

// negative is the sign bit of x < 0. It is unset for -0, which is not below 0.
func negative(x float32) uint32 {
	if x < 0 {
		return 1 << 31
	}
	return 0
}

func (c sign) Sent(Payload) Sent {
	return Sent{Values: c.dim, ValueBits: 1, ExtraBits: 32 * len(c.sizes), Mask: c.dim, Dim: c.dim}
}

func (c sign) Encode(dst []byte, p Payload, _ Accounting, _ bool) ([]byte, error) {
	if len(p.Vectors) != 2 || len(p.Vectors[0]) != c.dim || len(p.Vectors[1]) != len(c.sizes) {
		return nil, fmt.Errorf("dist: sign of %d coordinates in %d blocks cannot encode a payload that it did not "+
			"compress", c.dim, len(c.sizes))
	}
	w := bitWriter{dst: dst}
	writeFloats(&w, p.Vectors[1])
	for _, x := range p.Vectors[0] {
		w.put(uint64(math.Float32bits(x)>>31), 1)
	}
	return w.bytes(), nil
}

func (c sign) Decode(p *Payload, src []byte, _ Accounting, _ bool) error {
	if err := checkSize("sign", src, c.dim+32*len(c.sizes)); err != nil {
		return err
	}
	p.Coords = nil
	p.resize(2)
	r := bitReader{src: src}
	p.Vectors[1] = readFloats(&r, p.Vectors[1], len(c.sizes))
	p.Vectors[0] = grow(p.Vectors[0], c.dim)
	from := 0
	for i, m := range c.sizes {
		for k := range p.Vectors[0][from : from+m] {
			p.Vectors[0][from+k] = signed(p.Vectors[1][i], uint32(r.take(1))<<31)
		}
		from += m
	}
	return nil
}
