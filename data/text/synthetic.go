package text

import (
	"fmt"
	"math"
	"sync"

	"fspda/internal/rng"
)

// The synthetic source has these characters. In each context the j-th likeliest next character has
// weight 2^(15-j) + 1.
const (
	syntheticChars = "\n ',.;abcdefghijklmnopqrstuvwxyz"
	symbols        = len(syntheticChars)
	weightSum      = 1<<16 - 1 + symbols
)

func syntheticWeight(rank int) int {
	if rank < 16 {
		return 1<<(15-rank) + 1
	}
	return 1
}

// Entropy is the entropy rate of [Synthetic] in nats a character: no model predicts it better.
var Entropy = sync.OnceValue(func() float64 {
	sum := 0.0
	for j := range symbols {
		p := float64(syntheticWeight(j)) / float64(weightSum)
		sum -= float64(p * math.Log(p))
	}
	return sum
})

// Synthetic draws a text of 32 characters from a Markov source of order 2: the two characters
// before say how likely each next one is. Every context has the same weights, in an order of its
// own, so that the entropy rate is exactly [Entropy]. The source is a function of the seed. It
// returns an error for a part without characters.
func Synthetic(seed uint64, train, val int) (*Corpus, error) {
	if min(train, val) < 1 || max(train, val) > math.MaxInt32 {
		return nil, fmt.Errorf("text: synthetic text of %d and %d characters, want 1 to %d each", train, val,
			math.MaxInt32)
	}
	t, err := newChars(syntheticChars)
	if err != nil {
		return nil, err
	}
	next := make([][symbols]uint16, symbols*symbols) // next symbols, indexed by context and rank
	for c := range next {
		order := make([]int32, symbols)
		for i := range order {
			order[i] = int32(i)
		}
		s := rng.New(seed, "synthetic-text", 0, uint64(c))
		s.Permute(order)
		for j, v := range order {
			next[c][j] = uint16(v)
		}
	}
	draw := func(part uint64, n int) []uint16 {
		s := rng.New(seed, "synthetic-text", part)
		out := make([]uint16, n)
		a, b := uint16(s.IntN(symbols)), uint16(s.IntN(symbols))
		for i := range out {
			u, rank := s.IntN(weightSum), 0
			for u >= syntheticWeight(rank) {
				u -= syntheticWeight(rank)
				rank++
			}
			out[i] = next[int(a)*symbols+int(b)][rank]
			a, b = b, out[i]
		}
		return out
	}
	return newCorpus(t, draw(1, train), draw(2, val), nil), nil
}
