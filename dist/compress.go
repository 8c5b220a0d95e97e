package dist

import (
	"fmt"
	"math"
	"slices"
)

// Compressor makes of one vector what others hear of it: Q(v). It is a pure function of (seed, t,
// agent) and v, and safe for concurrent use. Other than a [Mask] it may look at the values, so that
// its two ends cannot compare on the same coordinates: it is for algorithms that keep a public copy
// of every model.
type Compressor interface {
	Codec
	// String returns the spec that ParseCompressor turns into this compressor again.
	String() string
	// Compress overwrites p with Q(v) as its receivers will see it, reusing p's memory. Numbers
	// that are not finite are an error, a *NotFiniteError, where the compressor computes with them;
	// where it only copies they pass.
	Compress(p *Payload, v []float32, t, agent int) error
	// Delta is the contraction: E|Q(v)-v|² ≤ (1-Delta)·|v|². At 0 or below, Q may move away from v.
	Delta() float64
}

var compressorSpellings = []spelling{
	{"randk", "the coordinates that mask and density draw, by each agent for itself"},
	{"topk", "as many coordinates as mask and density say, those of largest magnitude"},
	{"qsgd(s)", "sign, and one of s levels of the norm at random: unbiased; s = 255 is 8 bits"},
	{"qsgd-scaled(s)", "the same times 1/(1+omega), so that it never moves away"},
	{"identity", "everything"},
}

// CompressorOptions are what a compressor takes from other keys.
type CompressorOptions struct {
	Mask  Mask  // which coordinates randk takes, and how many topk takes
	Sizes []int // of the tensors of the vector
	Flat  bool  // qsgd: one norm for the vector instead of one for each tensor
	Seed  uint64
}

// ParseCompressor makes the compressor that spec names. Its rounding is drawn from the stream
// "quant" of the seed with the key (t, agent). The error for an unknown spec lists the spellings.
func ParseCompressor(spec string, o CompressorOptions) (Compressor, error) {
	p, err := readSpec("compressor", spec, compressorSpellings)
	if err != nil {
		return nil, err
	}
	switch p.name {
	case "randk":
		return RandK{o.Mask}, nil
	case "topk":
		return newTopK(o), nil
	case "identity":
		d, err := totalSize(p, o.Sizes)
		return identity{d}, err
	}
	levels, err := p.count()
	if err == nil && levels > maxLevels {
		err = p.bad("%d levels; it takes at most %d: identity sends float32 as they are", levels, maxLevels)
	}
	if err != nil {
		return nil, err
	}
	return newQSGD(p.name, levels, o), nil
}

// RandK takes the coordinates of a mask, unscaled: Delta = k/d.
type RandK struct{ Mask Mask }

var _ Compressor = RandK{}

// String implements [Compressor].
func (r RandK) String() string { return "randk" }

// Delta implements [Compressor].
func (r RandK) Delta() float64 {
	if m, ok := r.Mask.(perLayer); ok {
		return leastShare(m.counts, m.sizes)
	}
	return r.Mask.Density()
}

// leastShare is the contraction of the least favourable tensor, of which counts of sizes
// coordinates are kept.
func leastShare(counts, sizes []int) float64 {
	least := 1.0
	for i, m := range sizes {
		least = min(least, float64(counts[i])/float64(m))
	}
	return least
}

// Compress implements [Compressor]. Both ends can draw the coordinates: they need not travel.
func (r RandK) Compress(p *Payload, v []float32, t, agent int) error {
	p.Dim = len(v)
	p.Coords = r.Mask.Draw(p.Coords, t, agent, agent)
	p.resize(1)
	p.Vectors[0] = gatherFloats(p.Vectors[0], v, p.Coords)
	return nil
}

func gatherFloats(dst, v []float32, coords []uint32) []float32 {
	dst = growFloats(dst, len(coords))
	for j, c := range coords {
		dst[j] = v[c]
	}
	return dst
}

// Sent implements [Codec].
func (r RandK) Sent(p Payload) Sent { return r.floats(p).Sent(p) }

// Encode implements [Codec].
func (r RandK) Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error) {
	return r.floats(p).Encode(dst, p, a, indices)
}

// Decode implements [Codec]. Where no coordinates were written, p.Coords are those that the seed
// gives.
func (r RandK) Decode(p *Payload, b []byte, a Accounting, indices bool) error {
	return FloatCodec{1, len(p.Coords)}.Decode(p, b, a, indices)
}

func (RandK) floats(p Payload) FloatCodec { return FloatCodec{1, len(p.Vectors[0])} }

// identity sends everything.
type identity struct{ dim int }

func (identity) String() string { return "identity" }
func (identity) Delta() float64 { return 1 }

func (c identity) Compress(p *Payload, v []float32, _, _ int) error {
	p.Dim, p.Coords = len(v), nil
	p.resize(1)
	p.Vectors[0] = append(p.Vectors[0][:0], v...)
	return nil
}

func (c identity) Sent(p Payload) Sent { return FloatCodec{1, c.dim}.Sent(p) }

func (c identity) Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error) {
	return FloatCodec{1, c.dim}.Encode(dst, p, a, indices)
}

func (c identity) Decode(p *Payload, b []byte, a Accounting, indices bool) error {
	return FloatCodec{1, c.dim}.Decode(p, b, a, indices)
}

// topK takes the k coordinates of largest magnitude, of the whole vector or of each tensor; among
// equal ones those that come first.
type topK struct {
	sizes, counts []int // of the parts, and how many coordinates of each are kept
	dim, k        int
}

// newTopK keeps of each tensor what randk-per-layer keeps of it, and of the whole vector what every
// other mask keeps.
func newTopK(o CompressorOptions) topK {
	if m, ok := o.Mask.(perLayer); ok {
		return topK{sizes: m.sizes, counts: m.counts, dim: m.d, k: m.k}
	}
	d, k := o.Mask.Dim(), max(1, o.Mask.Len())
	return topK{sizes: []int{d}, counts: []int{k}, dim: d, k: k}
}

func (c topK) String() string { return "topk" }

// Delta: the k largest of m squares have at least k/m of their sum.
func (c topK) Delta() float64 { return leastShare(c.counts, c.sizes) }

func (c topK) Compress(p *Payload, v []float32, _, _ int) error {
	if err := checkFinite("topk", v); err != nil {
		return err
	}
	p.Dim = len(v)
	p.Coords = slices.Grow(p.Coords[:0], c.k)
	from := 0
	for i, m := range c.sizes {
		p.Coords = p.largest(p.Coords, v[from:from+m], c.counts[i], uint32(from))
		from += m
	}
	p.resize(1)
	p.Vectors[0] = gatherFloats(p.Vectors[0], v, p.Coords)
	return nil
}

// largest appends the coordinates of the k largest magnitudes of v, each plus offset, ascending.
func (p *Payload) largest(dst []uint32, v []float32, k int, offset uint32) []uint32 {
	bar, ties := p.kthMagnitude(v, k)
	for i, x := range v {
		if b := magnitude(x); b >= bar {
			if b == bar {
				if ties == 0 {
					continue
				}
				ties--
			}
			dst = append(dst, offset+uint32(i))
		}
	}
	return dst
}

// magnitude is the bits of |x|: they order as the numbers do.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// kthMagnitude returns the k-th largest magnitude, and how many coordinates that have exactly it
// belong to the k largest. The leading digit is counted over all of v; what shares that of the k-th
// is then few, and the other digits are counted over those.
func (p *Payload) kthMagnitude(v []float32, k int) (bar uint32, ties int) {
	const first = 20 // bits below the leading digit of 11
	var count [1 << 11]int32
	for _, x := range v {
		count[magnitude(x)>>first]++
	}
	digit, k := kthDigit(count[:], k)
	left := p.scratch[:0]
	for _, x := range v {
		if b := magnitude(x); b>>first == digit {
			left = append(left, b)
		}
	}
	p.scratch = left
	bar = digit << first
	for shift := first - 10; shift >= 0; shift -= 10 {
		digits := count[:1<<10]
		clear(digits)
		for _, b := range left {
			digits[b>>shift&(1<<10-1)]++
		}
		digit, k = kthDigit(digits, k)
		bar |= digit << shift
		n := 0
		for _, b := range left {
			if b>>shift == bar>>shift {
				left[n] = b
				n++
			}
		}
		left = left[:n]
	}
	return bar, k
}

// kthDigit finds the digit of the k-th largest number in a count of digits, and which of the
// numbers of that digit it is.
func kthDigit(count []int32, k int) (uint32, int) {
	digit := len(count) - 1
	for ; k > int(count[digit]); digit-- {
		k -= int(count[digit])
	}
	return uint32(digit), k
}

func (c topK) Sent(p Payload) Sent {
	return Sent{Values: c.k, ValueBits: 32, Mask: c.k, Dim: c.dim, Indices: true, DataDependent: true}
}

// indexBits is the width of an index. They travel in every accounting: no seed gives them.
func (c topK) indexBits(a Accounting) int {
	switch {
	case c.k == c.dim:
		return 0
	case a == Reference:
		return 64
	}
	return IndexBits(c.dim)
}

func (c topK) Encode(dst []byte, p Payload, a Accounting, _ bool) ([]byte, error) {
	if len(p.Vectors) != 1 || len(p.Vectors[0]) != c.k {
		return nil, fmt.Errorf("dist: topk of %d coordinates was given another payload to write; it writes what it compressed", c.k)
	}
	w := bitWriter{dst: dst}
	if width := c.indexBits(a); width > 0 {
		if err := writeCoords(&w, p.Coords, c.k, width); err != nil {
			return nil, err
		}
	}
	writeFloats(&w, p.Vectors...)
	return w.bytes(), nil
}

func (c topK) Decode(p *Payload, b []byte, a Accounting, _ bool) error {
	width := c.indexBits(a)
	if err := checkSize("topk", b, c.k*(32+width)); err != nil {
		return err
	}
	r := bitReader{src: b}
	if width > 0 {
		p.Coords = readCoords(&r, p.Coords, c.k, width)
		for i, x := range p.Coords {
			if int(x) >= c.dim || i > 0 && p.Coords[i-1] >= x {
				return fmt.Errorf("dist: topk: index %d of a message is %d, expected ascending indices below %d; the message is damaged", i, x, c.dim)
			}
		}
	}
	p.resize(1)
	p.Vectors[0] = readFloats(&r, p.Vectors[0], c.k)
	return nil
}
