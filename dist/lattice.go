package dist

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"fspda/internal/rng"
)

// Lattice is the modulo quantizer of Swarm-SGD (Nadiradze et al., 2021; Davies et al., 2021). A
// number is rounded to a multiple of Side; only its colour, the index of the multiple modulo
// Colours, is sent. The receiver decodes it as the point of that colour nearest to a reference of
// its own:
//
//	code(x)          = round(x/s) mod q                                 in 0..q-1
//	point(z, ref)    = q·s·round(ref/(q·s) - z/q) + s·z
//
// Halves round to even. If x is within [Lattice.Radius] of the reference, the point is within s/2
// of x. Otherwise the error is a multiple of q·s and cannot be detected; [DecodeStats] counts
// suspicious cases. Stochastic rounding makes the code unbiased, with an error below s.
//
// All arithmetic is in float64. A decoded number is represented by its index m on the lattice,
// which float32 holds exactly up to 2^24; the value is s·m.
type Lattice struct {
	Side       float64 // s
	Colours    int     // q, a power of two
	Stochastic bool

	base rng.Stream
}

var latticeArgs = []Arg{
	{"s", NumberArg, func(text string) (float64, error) {
		side, err := strconv.ParseFloat(text, 64)
		if err != nil || !(side > 0) || math.IsInf(side, 0) {
			return 0, fmt.Errorf("the side %q is not a number above 0", text)
		}
		return side, nil
	}},
	{"q", WholeArg, func(text string) (float64, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 || n > maxColours || n&(n-1) != 0 {
			return 0, fmt.Errorf("%q colours; it takes a power of two from 2 to %d", text, maxColours)
		}
		return float64(n), nil
	}},
}

// stochasticArg is the third argument of a lattice.
var stochasticArg = Arg{"stochastic", TextArg, func(text string) (float64, error) {
	if text != "stochastic" {
		return 0, fmt.Errorf("the third argument is %q; it can only be stochastic", text)
	}
	return 0, nil
}}

// ParseLattice returns the quantizer that spec names; nil is identity. Stochastic rounding is drawn
// from the stream "quant" of the seed with the key (t, agent, vector). The error for an unknown
// spec lists all spellings.
func ParseLattice(spec string, seed uint64) (*Lattice, error) {
	p, kind, err := readSpec("quantizer", spec, CompressorsThat(func(k CompressorKind) bool {
		return k.Sends == Codes || k.Name == identityName
	}))
	if err != nil || kind.Sends != Codes {
		return nil, err
	}
	return &Lattice{Side: p.Numbers[0], Colours: p.Whole(1), Stochastic: kind.Random, base: rng.New(seed, "quant")}, nil
}

// maxColours keeps a code exact in float32.
const maxColours = 1 << 16

// String returns the spec from which ParseLattice makes this quantizer.
func (l *Lattice) String() string {
	if l == nil {
		return identityName
	}
	s := "lattice(" + strconv.FormatFloat(l.Side, 'g', -1, 64) + "," + strconv.Itoa(l.Colours)
	if l.Stochastic {
		s += ",stochastic"
	}
	return s + ")"
}

// Radius is the largest distance of x from the receiver's reference at which decoding is correct.
func (l *Lattice) Radius() float64 {
	if l.Stochastic {
		return l.Side * (float64(l.Colours)/2 - 1)
	}
	return l.Side * float64(l.Colours-1) / 2
}

// Bits returns log2 q, the bits of a code.
func (l *Lattice) Bits() int { return bits.Len(uint(l.Colours)) - 1 }

// Encode writes the codes of x to dst. which numbers the agent's vectors of one iteration. A number
// that is not finite, or too large for an integer index, is a *NotFiniteError.
func (l *Lattice) Encode(dst, x []float32, t, agent, which int) error {
	s := l.base.Sub(uint64(t), uint64(agent), uint64(which))
	for i := 0; i < len(x); i += latticeBlock {
		end, done := min(i+latticeBlock, len(x)), i
		if !l.Stochastic {
			done += l.encodeFast(dst[i:end], x[i:end])
		}
		if err := l.encodeGo(dst[:end], x[:end], done, &s); err != nil {
			return err
		}
	}
	return nil
}

// latticeBlock is the number of values encoded or decoded at a time.
const latticeBlock = 512

// encodeGo is the reference implementation of Encode. It starts at x[i].
func (l *Lattice) encodeGo(dst, x []float32, i int, s *rng.Stream) error {
	mask, side, random := int64(l.Colours-1), l.Side, l.Stochastic
	dst = dst[:len(x)]
	for ; i < len(x); i++ {
		cell := float64(x[i]) / side
		if !(math.Abs(cell) < 1<<52) {
			return &NotFiniteError{Codec: l.String(), At: i, Value: float64(x[i])}
		}
		if random {
			low := math.Floor(cell)
			if s.Float64() < cell-low {
				low++
			}
			cell = low
		} else {
			cell = math.RoundToEven(cell)
		}
		dst[i] = float32(int64(cell) & mask) // the mathematical remainder: never negative
	}
	return nil
}

// farFrom returns the distance from the reference above which a point counts as far.
func (l *Lattice) farFrom() float64 { return 0.9 * l.Radius() }

// Decode writes to dst, for each code, the lattice index of the point nearest to the reference, and
// returns statistics of the distances. dst may be codes or ref.
func (l *Lattice) Decode(dst, codes, ref []float32) DecodeStats {
	var all DecodeStats
	for i := 0; i < len(codes); i += latticeBlock {
		end := min(i+latticeBlock, len(codes))
		d := l.decodeFast(dst[i:end], codes[i:end], ref[i:end])
		done := i + int(d.Total)
		d.Add(l.decodeGo(dst[done:end], codes[done:end], ref[done:end]))
		all.Add(d)
	}
	return all
}

// decodeGo is the reference implementation of Decode.
func (l *Lattice) decodeGo(dst, codes, ref []float32) DecodeStats {
	q := float64(l.Colours)
	period := l.Side * q
	far := l.farFrom()
	d := DecodeStats{Total: uint64(len(codes))}
	for i, z := range codes {
		r := float64(ref[i])
		m := float64(q*math.RoundToEven(r/period-float64(z)/q)) + float64(z)
		gap := math.Abs(float64(l.Side*m) - r)
		if gap > far {
			d.Far++
		}
		d.Largest = max(d.Largest, gap)
		dst[i] = float32(m)
	}
	return d
}

// DecodeStats counts decoded numbers. A point far from its reference is a warning: the true one may
// be further away, and then the decoded one is wrong by a multiple of q·s.
type DecodeStats struct {
	Total   uint64  `json:"total"`
	Far     uint64  `json:"far"`     // further than 0.9 of the radius from the reference
	Largest float64 `json:"largest"` // largest distance from the reference
}

func (d *DecodeStats) Add(o DecodeStats) {
	d.Total += o.Total
	d.Far += o.Far
	d.Largest = max(d.Largest, o.Largest)
}

// Codec returns the codec of messages with vectors of codes, each of dim coordinates.
func (l *Lattice) Codec(vectors, dim int) Codec {
	return codes{bits: l.Bits(), vectors: vectors, dim: dim}
}

// codes is the codec of vectors of integers below 2^bits.
type codes struct{ bits, vectors, dim int }

func (c codes) Sent(Payload) Sent {
	return Sent{Values: c.vectors * c.dim, ValueBits: c.bits, Mask: c.dim, Dim: c.dim}
}

func (c codes) Encode(dst []byte, p Payload, _ Accounting, _ bool) ([]byte, error) {
	if len(p.Vectors) != c.vectors {
		return nil, fmt.Errorf("dist: the codec of %d vectors of codes cannot encode %d", c.vectors, len(p.Vectors))
	}
	w := bitWriter{dst: dst}
	for _, v := range p.Vectors {
		if len(v) != c.dim {
			return nil, fmt.Errorf("dist: the codec of %d codes cannot encode %d", c.dim, len(v))
		}
		for _, z := range v {
			w.put(uint64(z), c.bits)
		}
	}
	return w.bytes(), nil
}

func (c codes) Decode(p *Payload, b []byte, _ Accounting, _ bool) error {
	if err := checkSize("lattice", b, c.vectors*c.dim*c.bits); err != nil {
		return err
	}
	p.Coords = nil
	p.resize(c.vectors)
	r := bitReader{src: b}
	for i := range p.Vectors {
		p.Vectors[i] = grow(p.Vectors[i], c.dim)
		for k := range p.Vectors[i] {
			p.Vectors[i][k] = float32(r.take(c.bits))
		}
	}
	return nil
}
