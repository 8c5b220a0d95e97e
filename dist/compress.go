package dist

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"fspda/dist/fewbits"
	spell "fspda/internal/spelling"
)

// Compressor computes the compressed vector Q(v) that other agents receive. It is a pure function
// of (seed, t, agent, which) and v, and safe for concurrent use. Unlike a [Mask], it may depend on
// the values, so that the two ends of an edge do not compare the same coordinates: it is for
// algorithms that keep a public copy of every model.
type Compressor interface {
	Codec
	// String returns the spec from which ParseCompressor makes this compressor.
	String() string
	// Compress sets p to Q(v) as its receivers will see it, reusing p's memory. A compressor that
	// computes with the numbers returns a *NotFiniteError for one that is not finite; one that only
	// copies does not. which numbers the vectors that the agent compresses in an iteration.
	Compress(p *Payload, v []float32, t, agent, which int) error
	// Delta is the contraction: E|Q(v)-v|² ≤ (1-Delta)·|v|². With Delta <= 0, Q(v) may be further
	// from v than zero is. For sign it holds on average over normally distributed v, not for each.
	Delta() float64
	// Picked returns the mask that draws the coordinates of a message, whose values are sent as they
	// are. It is nil if coordinates or values depend on the vector.
	Picked() Mask
}

// Inverter is a Compressor that sends coefficients of a transform.
type Inverter interface {
	Compressor
	// Inverse sets dst to the vector of these coefficients.
	Inverse(dst, coefficients []float32)
	// Signs sets dst to the signs of the vector whose coefficients are sums divided by counts. It
	// overwrites sums.
	Signs(dst, sums, counts []float32)
}

// Content is the meaning of the numbers of a message to a receiver.
type Content int

const (
	Values       Content = iota // Values are numbers of the vector, which a receiver adds up.
	Coefficients                // Coefficients need the inverse of a transform: see [Inverter].
	Codes                       // Codes are decoded near the receiver's own vector: see [Lattice].
)

// MaskUse is the use of the keys mask and density by a compressor.
type MaskUse int

const (
	MaskUnused  MaskUse = iota // It sends something of every coordinate.
	MaskCounted                // It sends as many coordinates as the mask has, and chooses them itself.
	MaskDrawn                  // It sends the coordinates that the mask draws.
)

// CompressorKind is a row of the table of compressors. A new compressor needs nothing but its file
// and its row.
type CompressorKind struct {
	Form
	Example string  // Example is the spec in help texts; "": the name.
	Sends   Content // Sends is the content of its messages.
	Mask    MaskUse // Mask is its use of mask and density.
	Norms   bool    // Norms says that it sends a number for each block, as the key norms says.
	Random  bool    // Random says that it rounds at random, with draws of the stream "quant".
	// Unbiased says that the mean of Q(v) is v.
	Unbiased bool
	// MeanDelta says that its Delta holds on average over vectors, and not for each vector.
	MeanDelta bool
	// NoDelta says that nothing of a vector is certain to arrive, so that its Delta is 0.
	NoDelta bool
	// WorstDelta says that its Delta is that of the worst vector, and usual ones are kept far better.
	WorstDelta bool
	// Published returns a message as the released program counts it; nil: that program has no such
	// compressor.
	Published func(m Sent) Sent
	// New makes the compressor; nil if it sends codes.
	New func(p Spec, o CompressorOptions) (Compressor, error)
}

// asHonest counts a message without a correction.
func asHonest(m Sent) Sent { return m }

// compressors is the table of compressors. The first of each kind of content is the default of the
// methods that use it.
var (
	registry    sync.RWMutex
	compressors = []CompressorKind{
		{Form: Form{Name: "randk", Meaning: "the coordinates that mask and density draw, by each agent for itself"},
			Mask: MaskDrawn, Published: asHonest,
			New: func(_ Spec, o CompressorOptions) (Compressor, error) { return RandK{o.Mask}, nil }},
		{Form: Form{Name: "topk", Meaning: "as many coordinates as mask and density say, those of largest magnitude"},
			Mask: MaskCounted, Published: asHonest, WorstDelta: true,
			New: func(_ Spec, o CompressorOptions) (Compressor, error) { return newTopK(o), nil }},
		{Form: Form{Name: "qsgd", Args: levels,
			Meaning: "sign, and one of s levels of the norm at random: unbiased; s = 255 is 8 bits"},
			Example: "qsgd(255)", Norms: true, Random: true, Unbiased: true, Published: withoutNorms,
			New: func(p Spec, o CompressorOptions) (Compressor, error) { return newQSGD(p, false, o), nil }},
		{Form: Form{Name: "qsgd-scaled", Args: levels,
			Meaning: "the same times 1/(1+omega), so that it never moves away"},
			Example: "qsgd-scaled(255)", Norms: true, Random: true, Published: withoutNorms,
			New: func(p Spec, o CompressorOptions) (Compressor, error) { return newQSGD(p, true, o), nil }},
		{Form: Form{Name: "sign", Meaning: "the sign of each coordinate and one mean magnitude: 1 bit"},
			Norms: true, MeanDelta: true,
			New: func(_ Spec, o CompressorOptions) (Compressor, error) { return newSign(o), nil }},
		{Form: Form{Name: "int", Args: []Arg{Whole("b", 2, 8, "expected the bits of a number, from 2 to 8, not %q: "+
			"int(8,256)"), blockArg},
			Meaning: "whole numbers of b bits, times a scale for each block of adjacent coordinates of a tensor"},
			Example: "int(8,256)", New: func(p Spec, o CompressorOptions) (Compressor, error) {
				return newBlockwise(p, fewbits.Whole{B: p.Whole(0)}, p.Whole(1), o)
			}},
		{Form: Form{Name: "fp8", Args: []Arg{blockArg}, Meaning: "E4M3 numbers of eight bits, times such a scale"},
			Example: "fp8(256)", New: func(p Spec, o CompressorOptions) (Compressor, error) {
				return newBlockwise(p, fewbits.E4M3{}, p.Whole(0), o)
			}},
		{Form: Form{Name: "chunk-topk", Args: []Arg{sideArg, keepArg},
			Meaning: "the k numbers of largest magnitude of each chunk of a tensor, of sides up to side"},
			Example: "chunk-topk(64,64)", WorstDelta: true, New: newChunkTopK},
		{Form: Form{Name: "chunk-topk", Args: []Arg{sideArg, keepArg, binsArg},
			Meaning: "sparseloco: the same, rounded to the means of 2, 4, 16 or 256 bins for each tensor"},
			Example: "chunk-topk(64,64,4)", NoDelta: true, New: newChunkTopK},
		{Form: Form{Name: "dct", Args: []Arg{
			Whole("side", 2, maxSide, "expected the largest side of a chunk, from 2 to 64, not %q: dct(64,32)"),
			Whole("k", 1, math.MaxInt,
				"expected the number of coefficients that a chunk keeps, at least 1, not %q: dct(64,32)")},
			Meaning: "demo: the k largest coefficients of the cosine transform of each chunk, of sides up to side"},
			Example: "dct(64,32)", Sends: Coefficients,
			New: func(p Spec, o CompressorOptions) (Compressor, error) { return newDCT(p, o), nil }},
		{Form: Form{Name: identityName, Meaning: "everything"}, Published: asHonest, New: newIdentity},
		{Form: Form{Name: "lattice", Args: latticeArgs,
			Meaning: "multiples of s in q colours (a power of two, log2 q bits a coordinate)"},
			Example: "lattice(0.0001,256)", Sends: Codes},
		{Form: Form{Name: "lattice", Args: append(latticeArgs[:2:2], stochasticArg),
			Meaning: "the same with random rounding: unbiased"},
			Example: "lattice(0.0001,256,stochastic)", Sends: Codes, Random: true, Unbiased: true},
	}
)

// RegisterCompressor adds a compressor that the key compress can name. Call it before the first
// run, for instance in an init function. It panics if the name is taken.
func RegisterCompressor(k CompressorKind) {
	registry.Lock()
	defer registry.Unlock()
	if _, taken := rowOf(compressors, k.Name); taken || k.Name == "" || k.New == nil {
		panic(fmt.Sprintf("dist: RegisterCompressor of %q: it needs a name that is not taken, and a New", k.Name))
	}
	compressors = append(compressors, k)
}

// Compressors lists the table of compressors.
func Compressors() []CompressorKind {
	registry.RLock()
	defer registry.RUnlock()
	return slices.Clone(compressors)
}

// CompressorsThat lists the compressors for which has returns true.
func CompressorsThat(has func(k CompressorKind) bool) []CompressorKind {
	return slices.DeleteFunc(Compressors(), func(k CompressorKind) bool { return !has(k) })
}

// CompressorNamed returns the row of the compressor that a spec names, and whether there is one.
func CompressorNamed(spec string) (CompressorKind, bool) {
	return rowOf(Compressors(), spell.Name(spec))
}

// Usual returns the spec of the kind in help texts.
func (k CompressorKind) Usual() string { return cmp.Or(k.Example, k.Name) }

// CompressorOptions are the parameters of a compressor besides its spec.
type CompressorOptions struct {
	Mask  Mask  // the coordinates of randk, and the number of coordinates of topk
	Sizes []int // lengths of the tensors of the vector
	Flat  bool  // qsgd, sign: one block of the whole vector instead of one per tensor
	// Shapes has the rows and columns of the tensors for dct. A tensor with 0 columns is a vector,
	// and all tensors are if Shapes is nil.
	Shapes [][2]int
	Seed   uint64
}

// ParseCompressor returns the compressor that spec names. Its rounding is drawn from the stream
// "quant" of the seed with the key (t, agent). The error for an unknown spec lists all spellings.
func ParseCompressor(spec string, o CompressorOptions) (Compressor, error) {
	p, kind, err := readSpec("compressor", spec,
		CompressorsThat(func(k CompressorKind) bool { return k.New != nil }))
	if err != nil {
		return nil, err
	}
	return kind.New(p, o)
}

// RandK keeps the coordinates of a mask, unscaled: Delta = k/d.
type RandK struct{ Mask Mask }

func (r RandK) String() string { return "randk" }

func (r RandK) Picked() Mask { return r.Mask }

func (r RandK) Delta() float64 {
	if m, ok := r.Mask.(perLayer); ok {
		return leastShare(m.counts, m.sizes)
	}
	return r.Mask.Density()
}

// leastShare returns the smallest share of kept coordinates over all tensors: the contraction in
// the worst case.
func leastShare(counts, sizes []int) float64 {
	least := 1.0
	for i, m := range sizes {
		least = min(least, float64(counts[i])/float64(m))
	}
	return least
}

// Compress implements [Compressor]. Both ends can draw the coordinates, so they are not sent.
func (r RandK) Compress(p *Payload, v []float32, t, agent, _ int) error {
	p.Dim = len(v)
	p.Coords = r.Mask.Draw(p.Coords, t, agent, agent)
	p.resize(1)
	p.Vectors[0] = gatherFloats(p.Vectors[0], v, p.Coords)
	return nil
}

func gatherFloats(dst, v []float32, coords []uint32) []float32 {
	dst = grow(dst, len(coords))
	for j, c := range coords {
		dst[j] = v[c]
	}
	return dst
}

func (r RandK) Sent(p Payload) Sent { return r.floats(p).Sent(p) }

func (r RandK) Encode(dst []byte, p Payload, a Accounting, indices bool) ([]byte, error) {
	return r.floats(p).Encode(dst, p, a, indices)
}

// Decode implements [Codec]. If no coordinates were written, p.Coords must be those that the seed
// gives.
func (r RandK) Decode(p *Payload, b []byte, a Accounting, indices bool) error {
	return FloatCodec{1, len(p.Coords)}.Decode(p, b, a, indices)
}

func (RandK) floats(p Payload) FloatCodec { return FloatCodec{1, len(p.Vectors[0])} }

// identityName is the spec that sends vectors as they are, with and without a lattice.
const identityName = "identity"

type identity struct {
	FloatCodec
	whole Mask
}

func newIdentity(p Spec, o CompressorOptions) (Compressor, error) {
	d, err := totalSize(p, o.Sizes)
	return identity{FloatCodec{1, d}, all{maskBase{name: "all", d: d, k: d}}}, err
}

func (identity) String() string { return identityName }
func (identity) Delta() float64 { return 1 }
func (c identity) Picked() Mask { return c.whole }

func (c identity) Compress(p *Payload, v []float32, _, _, _ int) error {
	p.Dim, p.Coords = len(v), nil
	p.resize(1)
	p.Vectors[0] = append(p.Vectors[0][:0], v...)
	return nil
}

// topK keeps the k coordinates of largest magnitude, of the whole vector or of each tensor; among
// equal ones the first.
type topK struct {
	sizes, counts []int // lengths of the parts, and numbers of kept coordinates
	dim, k        int
}

// newTopK keeps as many coordinates as the mask has: per tensor for randk-per-layer, otherwise of
// the whole vector.
func newTopK(o CompressorOptions) topK {
	if m, ok := o.Mask.(perLayer); ok {
		return topK{sizes: m.sizes, counts: m.counts, dim: m.d, k: m.k}
	}
	d, k := o.Mask.Dim(), max(1, o.Mask.Len())
	return topK{sizes: []int{d}, counts: []int{k}, dim: d, k: k}
}

func (c topK) String() string { return "topk" }
func (topK) Picked() Mask     { return nil }

// Delta is k/m: the k largest of m squares have at least k/m of their sum.
func (c topK) Delta() float64 { return leastShare(c.counts, c.sizes) }

func (c topK) Compress(p *Payload, v []float32, _, _, _ int) error {
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

// magnitude returns the bits of |x|, which are ordered like the numbers.
func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// kthMagnitude returns the k-th largest magnitude, and how many coordinates of exactly this
// magnitude are among the k largest. It is a radix selection: it counts the leading digit over all
// of v, and the other digits over the few numbers that share the leading digit of the k-th.
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

// kthDigit returns the digit of the k-th largest number, given the count of each digit, and the
// rank of that number among those with the same digit.
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

// indexBits returns the width of an index. Indices are sent in every accounting, since no seed
// gives them.
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
		return nil, fmt.Errorf("dist: topk of %d coordinates cannot encode a payload that it did not compress", c.k)
	}
	return encodeFloats(dst, p, c.k, c.indexBits(a))
}

func (c topK) Decode(p *Payload, b []byte, a Accounting, _ bool) error {
	width := c.indexBits(a)
	if err := checkSize("topk", b, c.k*(32+width)); err != nil {
		return err
	}
	r := bitReader{src: b}
	p.Coords = grow(p.Coords, c.k)
	for i := range p.Coords {
		at := uint64(i) // all coordinates
		if width > 0 {
			at = r.take(width)
		}
		if at >= uint64(c.dim) || i > 0 && uint64(p.Coords[i-1]) >= at {
			return fmt.Errorf("dist: topk: index %d of a message is %d, expected ascending indices below %d; the "+
				"message is damaged", i, at, c.dim)
		}
		p.Coords[i] = uint32(at)
	}
	p.resize(1)
	p.Vectors[0] = readFloats(&r, p.Vectors[0], c.k)
	return nil
}
