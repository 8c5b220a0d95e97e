package measure

import (
	"fspda/device"
	"fspda/internal/rng"
)

// pool provides random operands. All jobs share its memory.
type pool struct {
	floats func(n int) []float32
	chunks [][]float32
	used   int // chunks
}

// reset makes all memory available again.
func (p *pool) reset() { p.used = 0 }

// take returns n random numbers, uniform in [-1,1) and not 0 when allocated: processors may run
// faster on zeros.
func (p *pool) take(n int) []float32 {
	best := -1
	for c := p.used; c < len(p.chunks); c++ {
		if fits := len(p.chunks[c]) >= n; fits && (best < 0 || len(p.chunks[c]) < len(p.chunks[best])) {
			best = c
		}
	}
	if best < 0 {
		p.chunks = append(p.chunks, p.floats(n))
		best = len(p.chunks) - 1
	}
	p.chunks[best], p.chunks[p.used] = p.chunks[p.used], p.chunks[best]
	v := p.chunks[p.used][:n:n]
	p.used++
	fill(v, uint64(p.used))
	return v
}

// fill writes random numbers, uniform in [-1,1) and not 0, two from each draw.
func fill(v []float32, key uint64) {
	s := rng.New(0, "bench", key)
	for i := 0; i < len(v); i += 2 {
		u := s.Uint64()
		v[i] = unit(uint32(u))
		if i+1 < len(v) {
			v[i+1] = unit(uint32(u >> 32))
		}
	}
}

// unit converts 32 random bits to an odd multiple of 2^-24 in (-1,1).
func unit(u uint32) float32 { return float32(int32(u)>>7|1) * 0x1p-24 }

// positive turns random numbers into valid variances.
func positive(v []float32) []float32 {
	for i, x := range v {
		v[i] = 0.5 + x*x
	}
	return v
}

// labels overwrites v with random classes below n.
func labels(v []float32, n int) []float32 {
	s := rng.New(0, "bench labels")
	for i := range v {
		v[i] = float32(s.IntN(n))
	}
	return v
}

func (p *pool) all(lengths []int) [][]float32 {
	v := make([][]float32, len(lengths))
	for i, n := range lengths {
		v[i] = p.take(n)
	}
	return v
}

// vectors provides random device vectors.
type vectors struct {
	dev  device.Device
	have map[int][]device.Vector // vectors by length
	used map[int]int
}

func newVectors(dev device.Device) *vectors {
	return &vectors{dev, map[int][]device.Vector{}, map[int]int{}}
}

func (p *vectors) reset() { clear(p.used) }

// take returns a vector of length n, random when allocated.
func (p *vectors) take(n int) device.Vector {
	at := p.used[n]
	p.used[n]++
	if at == len(p.have[n]) {
		v, numbers := p.dev.NewVector(n), make([]float32, n)
		fill(numbers, uint64(at))
		p.dev.Write(v, numbers)
		p.have[n] = append(p.have[n], v)
	}
	return p.have[n][at]
}
