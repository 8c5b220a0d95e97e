package rng

import (
	"math"
	"math/bits"
)

// Version is the version of the derivation of streams. It is part of every checkpoint and of the
// handshake between processes: with different versions they would disagree about every mask.
const Version = 1

const golden = 0x9e3779b97f4a7c15

// Stream is a sequence of random numbers that is determined by its key. The zero Stream is valid
// but the same for all users: use [New]. A Stream is a value; a copy repeats the original's
// numbers.
type Stream struct {
	state uint64
}

// New returns the stream of a run seed, a stream name and a key. Keys of different lengths are
// different.
func New(seed uint64, name string, key ...uint64) Stream {
	h := Base(seed, name)
	for _, k := range key {
		h = mix(mix(h+golden) ^ k)
	}
	return Stream{state: mix(h + uint64(len(key)))}
}

// mix is the finalizer of splitmix64: a bijection in which every input bit reaches every output
// bit.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Sub returns an independent stream for a part of this stream's purpose, without advancing it.
func (s Stream) Sub(key ...uint64) Stream {
	h := mix(s.state ^ golden)
	for _, k := range key {
		h = mix(mix(h+golden) ^ k)
	}
	return Stream{state: mix(h + uint64(len(key)))}
}

// Uint64 returns 64 random bits.
func (s *Stream) Uint64() uint64 {
	s.state += golden
	return mix(s.state)
}

// Skip skips the next n numbers of Uint64.
func (s *Stream) Skip(n uint64) { s.state += n * golden }

// IntN returns an integer uniform in [0,n). It panics if n <= 0.
func (s *Stream) IntN(n int) int {
	if n <= 0 {
		panic("rng: IntN of a range that is not positive")
	}
	// Multiplication to 128 bits, with rejection of the few values that would be too frequent
	// (Lemire 2019).
	m := uint64(n)
	hi, lo := bits.Mul64(s.Uint64(), m)
	if lo < m {
		for least := -m % m; lo < least; {
			hi, lo = bits.Mul64(s.Uint64(), m)
		}
	}
	return int(hi)
}

// Float64 returns a number uniform in [0,1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(s.Uint64()>>11) * 0x1p-53 }

// Float32 returns a number uniform in [0,1), a multiple of 2^-24.
func (s *Stream) Float32() float32 { return float32(s.Uint64()>>40) * 0x1p-24 }

// Norm returns a standard normal number, by the polar method of Marsaglia. It discards the second
// number, so that the counter is a Stream's only state.
func (s *Stream) Norm() float64 {
	for {
		u, v := 2*s.Float64()-1, 2*s.Float64()-1
		if q := float64(u*u) + float64(v*v); q > 0 && q < 1 {
			return u * math.Sqrt(-2*math.Log(q)/q)
		}
	}
}

// Exp returns an exponential number of mean 1.
func (s *Stream) Exp() float64 { return -math.Log(1 - s.Float64()) }

// Gamma returns a Gamma(shape, 1) number, by the method of Marsaglia and Tsang (2000), for any
// shape > 0.
func (s *Stream) Gamma(shape float64) float64 {
	if !(shape > 0) {
		panic("rng: Gamma of a shape that is not positive")
	}
	if shape < 1 { // Gamma(a) = Gamma(a+1) U^(1/a)
		return s.Gamma(shape+1) * math.Pow(1-s.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.Norm()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - s.Float64(); math.Log(u) < float64(0.5*x*x)+d-float64(d*v)+float64(d*math.Log(v)) {
			return d * v
		}
	}
}

// Dirichlet fills p with a sample of the symmetric Dirichlet distribution Dir(a·1), by normalized
// Gamma numbers.
func (s *Stream) Dirichlet(p []float64, a float64) {
	for {
		sum := 0.0
		for i := range p {
			p[i] = s.Gamma(a)
			sum += p[i]
		}
		if sum > 0 { // every component of a tiny a may underflow: sample again
			for i := range p {
				p[i] /= sum
			}
			return
		}
	}
}

// Permute permutes the numbers uniformly (Fisher and Yates), as IntN draws the exchanges.
func (s *Stream) Permute(v []int32) {
	local := *s
	for i := len(v) - 1; i > 0; i-- {
		n := uint64(i + 1)
		j, lo := bits.Mul64(local.Uint64(), n)
		if lo < n { // rare: IntN decides on rejection
			local.state -= golden
			j = uint64(local.IntN(i + 1))
		}
		v[i], v[j] = v[j], v[i]
	}
	*s = local
}
