package dist

import (
	"fmt"
	"math"

	"fspda/internal/rng"
)

// Mask picks the coordinates of a flat vector that travel over an edge. It depends on no data, so
// that both ends know it before a value is sent: own and received values are compared on the same
// coordinates. It is safe for concurrent use.
type Mask interface {
	// String returns the spec that ParseMask turns into this mask again, given the same density,
	// sizes and seed.
	String() string
	// Draw overwrites dst with the coordinates that travel over the edge between i and j at
	// iteration t, ascending and different, and returns it. The order of i and j does not matter. A
	// compressor that one agent applies by itself gives its own number twice. All three are at
	// least 0.
	Draw(dst []uint32, t, i, j int) []uint32
	// Dense says that all coordinates travel. Draw then lists them all, which callers may save
	// themselves.
	Dense() bool
	// Len is the number of coordinates drawn, on average where that varies (bernoulli).
	Len() int
	// Density is the share of coordinates drawn, on average where that varies.
	Density() float64
	// Dim is the length of the vector.
	Dim() int
}

var maskSpellings = []spelling{
	{"auto", "randk for vectors shorter than 1000000, else stratified"},
	{"randk", "round(density·d), at least 1, coordinates, uniform"},
	{"randk-per-layer", "the same in each tensor by itself, rounded down: the rule of the published figures"},
	{"bernoulli", "each coordinate with the probability density"},
	{"stratified", "one coordinate in each of as many equal blocks; several times faster to draw than randk"},
	{"block", "one run of adjacent coordinates, cyclic"},
	{"all", "all coordinates, whatever the density"},
}

// autoStratified is the length from which "auto" means stratified.
const autoStratified = 1_000_000

// ParseMask makes the mask that spec names, for a vector that is made of tensors of the given sizes
// (only randk-per-layer tells them apart), of which it keeps the share density in (0,1]. Masks are
// drawn from the stream "mask" of the run's seed with the key (t, min(i,j), max(i,j)). The error
// for an unknown spec lists the spellings.
func ParseMask(spec string, density float64, sizes []int, seed uint64) (Mask, error) {
	p, err := readSpec("mask", spec, maskSpellings)
	if err != nil {
		return nil, err
	}
	if !(density > 0 && density <= 1) { // also refuses NaN
		return nil, p.bad("the density is %v; it must be above 0 and at most 1", density)
	}
	d, err := totalSize(p, sizes)
	if err != nil {
		return nil, err
	}
	name := p.name
	if name == "auto" {
		name = "randk"
		if d >= autoStratified {
			name = "stratified"
		}
	}
	k := max(1, int(math.Round(density*float64(d))))
	b := maskBase{name: name, seed: seed, d: d, k: k}
	switch {
	case name == "all" || density == 1 || k == d && name != "bernoulli" && name != "randk-per-layer":
		b.k = d
		return all{b}, nil
	case name == "randk-per-layer":
		return newPerLayer(b, sizes, density), nil
	case name == "bernoulli":
		return newBernoulli(b, density), nil
	case name == "stratified":
		return stratified{b}, nil
	case name == "block":
		return block{b}, nil
	}
	return newRandK(b), nil
}

// totalSize adds the tensor sizes. Coordinates are uint32, so it has to stay below 2^32.
func totalSize(p parsedSpec, sizes []int) (int, error) {
	d := 0
	for k, m := range sizes {
		if m < 1 {
			return 0, p.bad("tensor %d of %d has %d coordinates; it must have at least 1", k, len(sizes), m)
		}
		if uint64(m) > math.MaxUint32-uint64(d) {
			return 0, p.bad("the vector is longer than %d coordinates, which 32 bits can number",
				uint32(math.MaxUint32))
		}
		d += m
	}
	if d == 0 {
		return 0, p.bad("no tensor sizes are given: there is nothing to send")
	}
	return d, nil
}

// basis is what all masks have.
type maskBase struct {
	name string
	seed uint64
	d, k int // length; coordinates drawn
}

func (b maskBase) String() string   { return b.name }
func (b maskBase) Dense() bool      { return b.k == b.d }
func (b maskBase) Len() int         { return b.k }
func (b maskBase) Density() float64 { return float64(b.k) / float64(b.d) }
func (b maskBase) Dim() int         { return b.d }

// stream returns the numbers for one mask: the same at both ends.
func (b maskBase) stream(t, i, j int) rng.Stream {
	if t < 0 || i < 0 || j < 0 {
		panic(fmt.Sprintf("dist: mask of iteration %d between %d and %d: none of them may be negative", t, i, j))
	}
	return rng.New(b.seed, "mask", uint64(t), uint64(min(i, j)), uint64(max(i, j)))
}

// grow returns dst with length n, its content lost.
func grow(dst []uint32, n int) []uint32 {
	if cap(dst) < n {
		return make([]uint32, n)
	}
	return dst[:n]
}

// all: every coordinate.
type all struct{ maskBase }

func (m all) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.d)
	for c := range dst {
		dst[c] = uint32(c)
	}
	return dst
}

// block: k adjacent coordinates with a uniform start, the end of the vector joined to its
// beginning.
type block struct{ maskBase }

func (m block) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	start := s.IntN(m.d)
	wrapped := max(0, start+m.k-m.d) // these coordinates come first
	for c := range wrapped {
		dst[c] = uint32(c)
	}
	for c := wrapped; c < m.k; c++ {
		dst[c] = uint32(start + c - wrapped)
	}
	return dst
}

// bernoulli: each coordinate by itself with the same probability. The number drawn varies, and may
// be 0.
type bernoulli struct {
	maskBase
	p    float64
	gaps *gapSampler
}

func newBernoulli(b maskBase, p float64) bernoulli {
	b.k = int(math.Round(p * float64(b.d)))
	return bernoulli{b, p, newGaps(p, b.d)}
}

// Dense is false: a probability below 1 can drop coordinates even where it keeps all on average.
func (m bernoulli) Dense() bool      { return false }
func (m bernoulli) Density() float64 { return m.p }

func (m bernoulli) Draw(dst []uint32, t, i, j int) []uint32 {
	s := m.stream(t, i, j)
	dst = grow(dst, min(m.d, m.k+8*int(math.Sqrt(float64(m.k)))+64)) // more are drawn once in 10^15 times
	dst = dst[:cap(dst)]
	n, c := m.gaps.fill(dst, 0, &s)
	for n == len(dst) && n < m.d {
		dst = append(dst, 0)[:n]
		dst = dst[:cap(dst)]
		var more int
		more, c = m.gaps.fill(dst[n:], c, &s)
		n += more
	}
	return dst[:n]
}
