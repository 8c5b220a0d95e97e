package dist

import (
	"fmt"
	"math"
	"math/bits"

	"fspda/internal/rng"
)

// maxLevels allows to recover a level from its float32 value.
const maxLevels = 1<<16 - 1

// leastNorm is the norm below which a block counts as zero: above it every level is a normal
// float32.
const leastNorm = 1e-30

// qsgd sends for each coordinate its sign and one of s levels of the norm N of its block (Alistarh
// et al., 2017):
//
//	Q(v) = c·N·sign(v)·lev/s,   lev = floor(s·|v|/N + U),   U uniform in [0,1)
//
// With c = 1 it is unbiased and E|Q(v)-v|² ≤ omega·|v|², omega = min(m/s², √m/s) for a block of m
// coordinates; with c = 1/(1+omega) it is a contraction with Delta = 1/(1+omega). A block of norm
// zero becomes zeros.
//
// A message has two vectors: the values as they arrive, and the norms. The codec writes the norms,
// then a sign and a level for each coordinate, which it recovers from the value.
type qsgd struct {
	name   string
	levels int
	scaled bool
	sizes  []int
	omega  []float64 // The variance factor of each block.
	scale  []float64 // The factor c of each block.
	dim    int
	base   rng.Stream
}

// levels is the argument of qsgd and qsgd-scaled.
var levels = []Arg{{"s", WholeArg, func(text string) (float64, error) {
	v, err := Count("s").Read(text)
	if err == nil && v > maxLevels {
		err = fmt.Errorf("%s levels; it takes at most %d: use identity to send float32", text, maxLevels)
	}
	return v, err
}}}

// withoutNorms counts a message as the released program does: without signs and norms.
func withoutNorms(m Sent) Sent {
	m.ValueBits, m.ExtraBits = m.ValueBits-1, 0
	return m
}

func newQSGD(p Spec, scaled bool, o CompressorOptions) *qsgd {
	q := &qsgd{name: p.String(), levels: p.Whole(0), scaled: scaled, sizes: o.Sizes, base: rng.New(o.Seed, "quant")}
	for _, m := range o.Sizes {
		q.dim += m
	}
	if o.Flat {
		q.sizes = []int{q.dim}
	}
	s := float64(q.levels)
	for _, m := range q.sizes {
		omega := min(float64(m)/(s*s), math.Sqrt(float64(m))/s)
		c := 1.0
		if q.scaled {
			c = 1 / (1 + omega)
		}
		q.omega, q.scale = append(q.omega, omega), append(q.scale, c)
	}
	return q
}

func (q *qsgd) String() string { return q.name }
func (*qsgd) Picked() Mask     { return nil }

// Delta returns the value of the largest block: 1/(1+omega) if scaled, else 1-omega.
func (q *qsgd) Delta() float64 {
	least := 1.0
	for _, omega := range q.omega {
		if q.scaled {
			least = min(least, 1/(1+omega))
		} else {
			least = min(least, 1-omega)
		}
	}
	return least
}

func (q *qsgd) Compress(p *Payload, v []float32, t, agent, which int) error {
	if err := checkFinite(q.name, v); err != nil {
		return err
	}
	p.Dim, p.Coords = len(v), nil
	p.resize(2)
	p.Vectors[0] = grow(p.Vectors[0], q.dim)
	p.Vectors[1] = grow(p.Vectors[1], len(q.sizes))
	s := q.base.Sub(uint64(t), uint64(agent))
	if which > 0 {
		s = q.base.Sub(uint64(t), uint64(agent), uint64(which))
	}
	from := 0
	for i, m := range q.sizes {
		norm, err := q.norm(v[from:from+m], from)
		if err != nil {
			return err
		}
		p.Vectors[1][i] = norm
		q.block(p.Vectors[0][from:from+m], v[from:from+m], norm, q.scale[i], &s)
		from += m
	}
	return nil
}

// norm returns the norm of the block that is sent. It is rounded to float32, and still >= every
// magnitude in the block.
func (q *qsgd) norm(v []float32, from int) (float32, error) {
	sq := 0.0
	for _, x := range v {
		sq += float64(float64(x) * float64(x))
	}
	n := float32(math.Sqrt(sq))
	switch {
	case math.IsInf(float64(n), 0):
		return 0, &NotFiniteError{Codec: q.name, At: from, Value: float64(n)}
	case n < leastNorm:
		return 0, nil
	}
	return n, nil
}

// block rounds one block. It draws one number per coordinate, whatever the values are.
func (q *qsgd) block(dst, v []float32, norm float32, scale float64, s *rng.Stream) {
	if norm == 0 {
		clear(dst)
		return
	}
	local := *s
	per := float64(q.levels) / float64(norm)
	unit := q.unit(norm, scale)
	most := float64(q.levels)
	for i, x := range v {
		// floor(a+U) rounds a up with the probability of its fraction, without an unpredictable
		// branch
		level := float64(int(float64(math.Abs(float64(x))*per) + local.Float64()))
		if level > most { // rounding may lift the largest magnitude slightly above s
			level = most
		}
		dst[i] = signed(float32(level*unit), math.Float32bits(x))
	}
	*s = local
}

// signed returns x >= 0 with the sign bit of another number. Zero gets no sign, since the codec
// would lose it.
func signed(x float32, sign uint32) float32 {
	b := math.Float32bits(x)
	sign &= 1 << 31
	if b == 0 {
		sign = 0
	}
	return math.Float32frombits(b | sign)
}

// unit returns the value of one level.
func (q *qsgd) unit(norm float32, scale float64) float64 {
	return float64(norm) / float64(q.levels) * scale
}

// levelBits returns the number of bits of a level 0..s.
func (q *qsgd) levelBits() int { return bits.Len(uint(q.levels)) }

func (q *qsgd) Sent(p Payload) Sent {
	return Sent{Values: q.dim, ValueBits: 1 + q.levelBits(), ExtraBits: 32 * len(q.sizes), Mask: q.dim, Dim: q.dim}
}

func (q *qsgd) Encode(dst []byte, p Payload, _ Accounting, _ bool) ([]byte, error) {
	if len(p.Vectors) != 2 || len(p.Vectors[0]) != q.dim || len(p.Vectors[1]) != len(q.sizes) {
		return nil, fmt.Errorf("dist: %s of %d coordinates in %d blocks cannot encode a payload that it did not "+
			"compress", q.name, q.dim, len(q.sizes))
	}
	w := bitWriter{dst: dst}
	writeFloats(&w, p.Vectors[1])
	b, from := q.levelBits(), 0
	for i, m := range q.sizes {
		unit := q.unit(p.Vectors[1][i], q.scale[i])
		for _, x := range p.Vectors[0][from : from+m] {
			var sign, level uint64
			if x != 0 {
				sign = uint64(math.Float32bits(x) >> 31)
				level = uint64(math.Round(math.Abs(float64(x)) / unit))
			}
			w.put(sign|level<<1, 1+b)
		}
		from += m
	}
	return w.bytes(), nil
}

func (q *qsgd) Decode(p *Payload, src []byte, _ Accounting, _ bool) error {
	b := q.levelBits()
	if err := checkSize(q.name, src, q.dim*(1+b)+32*len(q.sizes)); err != nil {
		return err
	}
	p.Coords = nil
	p.resize(2)
	r := bitReader{src: src}
	p.Vectors[1] = readFloats(&r, p.Vectors[1], len(q.sizes))
	p.Vectors[0] = grow(p.Vectors[0], q.dim)
	from := 0
	for i, m := range q.sizes {
		unit := q.unit(p.Vectors[1][i], q.scale[i])
		for k := range p.Vectors[0][from : from+m] {
			code := r.take(1 + b)
			p.Vectors[0][from+k] = signed(float32(float64(code>>1)*unit), uint32(code)<<31)
		}
		from += m
	}
	return nil
}
