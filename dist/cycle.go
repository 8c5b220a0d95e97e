package dist

import (
	"math"

	"fspda/device"
)

// cycleMask draws one coordinate in each run of adjacent ones: the draws of as many exchanges as a
// run is long have each coordinate once. A run begins anywhere in a cycle, by the stream of the
// cycle. The last run may be shorter, so that the number drawn varies by one.
type cycleMask struct {
	maskBase
	run   int // coordinates of a run, exchanges of a cycle
	every int // iterations from one exchange to the next
}

// newCycle returns the mask cycle or parts for a density of 1/run.
func newCycle(p Spec, b maskBase, density float64) (Mask, error) {
	run := math.Round(1 / density)
	if math.Abs(run*density-1) > 1e-6 || run > math.MaxUint32 {
		return nil, p.Errorf("the density is %v; it must be 1 divided by a whole number, such as 0.1 or 0.005: "+
			"the exchanges of a cycle", density)
	}
	c := cycleMask{b, int(run), 1}
	if b.name == "parts" {
		return partsMask{c}, nil
	}
	return c, nil
}

// Dense returns false: runs have at least two coordinates.
func (m cycleMask) Dense() bool      { return false }
func (m cycleMask) Density() float64 { return 1 / float64(m.run) }

func (m cycleMask) Draw(dst []uint32, t, i, j int) []uint32 {
	exchange := t / m.every
	s, phase := m.stream(exchange/m.run, i, j), exchange%m.run
	dst = grow(dst, (m.d+m.run-1)/m.run)[:0]
	for begin := 0; begin < m.d; begin += m.run {
		if c := begin + (s.IntN(m.run)+phase)%m.run; c < m.d {
			dst = append(dst, uint32(c))
		}
	}
	return dst
}

// partsMask draws the runs of adjacent coordinates into which a vector falls, one exchange each, in
// turn. As many runs as a cycle has exchanges have equal lengths, but for one coordinate.
type partsMask struct{ cycleMask }

func (m partsMask) Parts() int { return m.run }

func (m partsMask) Part(t int) int { return t / m.every % m.run }

func (m partsMask) Coordinates(k int) []uint32 { return m.part(nil, k) }

func (m partsMask) part(dst []uint32, k int) []uint32 {
	from, to := m.d*k/m.run, m.d*(k+1)/m.run
	dst = grow(dst, to-from)
	for c := range dst {
		dst[c] = uint32(from + c)
	}
	return dst
}

func (m partsMask) Draw(dst []uint32, t, i, j int) []uint32 {
	m.stream(t, i, j) // checks the arguments
	return m.part(dst, m.Part(t))
}

// givenParts draws parts that are given, in turn.
type givenParts struct {
	maskBase
	parts [][]uint32
	every int
}

// NewParts returns the mask parts of a vector of length d with the given parts, of ranges that
// ascend. Every coordinate is in one of them. No index is sent: agents know the parts.
func NewParts(parts [][]device.Range, d int) Mask {
	m := givenParts{maskBase: maskBase{name: "parts", d: d, k: max(1, d/len(parts))}, every: 1}
	for _, ranges := range parts {
		var all []uint32
		for _, r := range ranges {
			for c := r.From; c < r.To; c++ {
				all = append(all, uint32(c))
			}
		}
		m.parts = append(m.parts, all)
	}
	return m
}

// Dense returns false: there are several parts.
func (m givenParts) Dense() bool      { return false }
func (m givenParts) Density() float64 { return 1 / float64(len(m.parts)) }

func (m givenParts) Parts() int { return len(m.parts) }

func (m givenParts) Part(t int) int { return t / m.every % len(m.parts) }

func (m givenParts) Coordinates(k int) []uint32 { return m.parts[k] }

func (m givenParts) Draw(dst []uint32, t, _, _ int) []uint32 {
	return append(dst[:0], m.parts[m.Part(t)]...)
}

// Indexed reports whether a packed message of a mask would have indices.
func Indexed(m Mask) bool { _, given := m.(givenParts); return !given }

// Every returns the mask for exchanges in the last of each n iterations: masks with a cycle count
// exchanges. Other masks stay as they are.
func Every(m Mask, n int) Mask {
	switch c := m.(type) {
	case cycleMask:
		c.every = max(1, n)
		return c
	case partsMask:
		c.every = max(1, n)
		return c
	case givenParts:
		c.every = max(1, n)
		return c
	}
	return m
}
