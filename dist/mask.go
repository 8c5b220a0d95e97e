package dist

import (
	"fmt"
	"math"

	"fspda/device"
	"fspda/internal/rng"
)

// Mask selects the coordinates of a flat vector that are exchanged over an edge. It is independent
// of the values, so both ends know it in advance and compare own and received values on the same
// coordinates. It is safe for concurrent use.
type Mask interface {
	// String returns the spec from which ParseMask makes this mask, given the same density, sizes
	// and seed.
	String() string
	// Draw overwrites dst with the coordinates exchanged over the edge between i and j at iteration
	// t, ascending and distinct, and returns it. It is symmetric in i and j. A compressor used by
	// one agent passes its rank twice. All three arguments are >= 0.
	Draw(dst []uint32, t, i, j int) []uint32
	// Dense reports whether all coordinates are exchanged. Draw then lists them all, so callers may
	// skip it.
	Dense() bool
	// Len returns the number of coordinates drawn, the mean if it varies (bernoulli, cycle, parts).
	Len() int
	// Density returns the share of coordinates drawn, the mean if it varies.
	Density() float64
	// Dim returns the length of the vector.
	Dim() int

	// Sampling returns the parameters by which a device can draw the coordinates itself, from the
	// stream with the counter that Counter returns. ok is false if only the host can.
	Sampling() (s device.Sampling, ok bool)
	// Counter returns the counter of the stream from which Draw draws.
	Counter(t, i, j int) uint64

	// Parts returns the number of parts of the vector that exchanges have one after the other, or 1.
	Parts() int
	// Part returns the part of the exchange of iteration t.
	Part(t int) int
	// Coordinates returns the coordinates of one of several parts, ascending.
	Coordinates(part int) []uint32
}

var maskForms = []Form{
	{Name: "auto", Meaning: "randk for vectors shorter than 1000000, else stratified"},
	{Name: "randk", Meaning: "round(density·d), at least 1, coordinates, uniform"},
	{Name: "randk-per-layer",
		Meaning: "the same in each tensor by itself, rounded down: the rule of the published figures"},
	{Name: "bernoulli", Meaning: "each coordinate with the probability density"},
	{Name: "stratified",
		Meaning: "one coordinate in each of as many equal blocks; several times faster to draw than randk"},
	{Name: "block", Meaning: "one run of adjacent coordinates, cyclic"},
	{Name: "cycle",
		Meaning: "one coordinate in each run of 1/density, so that 1/density exchanges have each coordinate once"},
	{Name: "parts", Meaning: "one of 1/density runs of adjacent coordinates, in turn"},
	{Name: "all", Meaning: "all coordinates, whatever the density"},
}

// autoStratified is the vector length from which "auto" means stratified.
const autoStratified = 1_000_000

// ParseMask returns the mask that spec names, for a vector that consists of tensors of the given
// sizes (only randk-per-layer distinguishes them), with density in (0,1]. Masks are drawn from the
// stream "mask" of the run's seed with the key (t, min(i,j), max(i,j)). The error for an unknown
// spec lists all spellings.
func ParseMask(spec string, density float64, sizes []int, seed uint64) (Mask, error) {
	p, _, err := readSpec("mask", spec, maskForms)
	if err != nil {
		return nil, err
	}
	if !(density > 0 && density <= 1) { // also refuses NaN
		return nil, p.Errorf("the density is %v; it must be above 0 and at most 1", density)
	}
	d, err := totalSize(p, sizes)
	if err != nil {
		return nil, err
	}
	name := p.Name
	if name == "auto" {
		name = "randk"
		if d >= autoStratified {
			name = "stratified"
		}
	}
	k := max(1, int(math.Round(density*float64(d))))
	b := maskBase{name: name, seed: seed, d: d, k: k}
	switch {
	case (name == "cycle" || name == "parts") && density < 1:
		return newCycle(p, b, density)
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

// totalSize adds the tensor sizes. The sum must be below 2^32, since coordinates are uint32.
func totalSize(p Spec, sizes []int) (int, error) {
	d := 0
	for k, m := range sizes {
		if m < 1 {
			return 0, p.Errorf("tensor %d of %d has %d coordinates; it must have at least 1", k, len(sizes), m)
		}
		if uint64(m) > math.MaxUint32-uint64(d) {
			return 0, p.Errorf("the vector is longer than %d coordinates, the limit of 32 bits", uint32(math.MaxUint32))
		}
		d += m
	}
	if d == 0 {
		return 0, p.Errorf("no tensor sizes are given: there is nothing to send")
	}
	return d, nil
}

// maskBase holds the fields common to all masks.
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

func (maskBase) Sampling() (s device.Sampling, ok bool) { return s, false }
func (maskBase) Parts() int                             { return 1 }
func (maskBase) Part(int) int                           { return 0 }
func (maskBase) Coordinates(int) []uint32               { return nil }

func (b maskBase) Counter(t, i, j int) uint64 {
	s := b.stream(t, i, j)
	return s.Counter()
}

// stream returns the random stream of a mask: the same at both ends.
func (b maskBase) stream(t, i, j int) rng.Stream {
	if t < 0 || i < 0 || j < 0 {
		panic(fmt.Sprintf("dist: mask of iteration %d between %d and %d: none of them may be negative", t, i, j))
	}
	return rng.New(b.seed, "mask", uint64(t), uint64(min(i, j)), uint64(max(i, j)))
}

// grow returns dst with length n. Its content is lost.
func grow[T any](dst []T, n int) []T {
	if cap(dst) < n {
		return make([]T, n)
	}
	return dst[:n]
}

// all selects every coordinate.
type all struct{ maskBase }

func (m all) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.d)
	for c := range dst {
		dst[c] = uint32(c)
	}
	return dst
}

// block selects k adjacent coordinates with a uniform start, cyclically.
type block struct{ maskBase }

func (m block) Draw(dst []uint32, t, i, j int) []uint32 {
	dst = grow(dst, m.k)
	s := m.stream(t, i, j)
	start := s.IntN(m.d)
	wrapped := max(0, start+m.k-m.d) // they come first in ascending order
	for c := range wrapped {
		dst[c] = uint32(c)
	}
	for c := wrapped; c < m.k; c++ {
		dst[c] = uint32(start + c - wrapped)
	}
	return dst
}

// bernoulli selects each coordinate independently with the same probability. The number drawn
// varies and may be 0.
type bernoulli struct {
	maskBase
	p    float64
	gaps *gapSampler
}

func newBernoulli(b maskBase, p float64) bernoulli {
	b.k = int(math.Round(p * float64(b.d)))
	return bernoulli{b, p, newGaps(p, b.d)}
}

// Dense returns false: a probability below 1 can drop coordinates even if the mean number rounds to
// d.
func (m bernoulli) Dense() bool      { return false }
func (m bernoulli) Density() float64 { return m.p }

func (m bernoulli) Draw(dst []uint32, t, i, j int) []uint32 {
	s := m.stream(t, i, j)
	dst = grow(dst, min(m.d, m.k+8*int(math.Sqrt(float64(m.k)))+64)) // exceeded with probability about 10^-15
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
