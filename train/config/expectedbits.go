package config

import (
	"cmp"

	"fspda/dist"
)

// ExpectedBits is the mean number of bits that all agents together send in an iteration, in the
// accounting asked for. The published count of reference_bits is not looked at.
func (s *Setup) ExpectedBits() float64 {
	if s.Graph.N == 1 {
		return 0
	}
	if s.AllReduces() {
		if s.Compressor != nil {
			messages := 2 * float64(s.Graph.N-1)
			if !s.InRing() {
				messages = float64(s.Graph.N * (s.Graph.N - 1))
			}
			return messages * s.meanMessage() / float64(s.RoundLength())
		}
		bits := s.meanAllReduce() / float64(s.RoundLength())
		bits = float64(bits * cmp.Or(s.Traits.MeanVectors, 1))
		if every := s.Traits.WholeEvery; every > 0 {
			bits += (s.allReduceBits(s.Dim) - s.meanAllReduce()) / float64(every)
		}
		return bits
	}
	bits := float64(s.WireFormat().Bits()) // Bits of one value.
	if d := s.Directed(); d != nil {
		values := s.Dim
		if !s.regular(d) {
			values++
		}
		return d.ArcRate() * bits * float64(values)
	}
	if s.Broadcasts() {
		return s.BroadcastRate() * 2 * float64(len(s.Graph.Edges)) * s.meanMessage()
	}
	rates := 0.0
	if s.Asynchronous() {
		rates = s.ContactShare() * float64(len(s.Graph.Edges))
	} else {
		for e := range s.Graph.Edges {
			rates += s.Process.Rate(e)
		}
	}
	if s.Codec() != nil {
		return rates * 2 * s.meanMessage()
	}
	if n := s.Traits.MessageLen; n > 0 {
		return rates * 2 * bits * n
	}
	var pair dist.Ledger // both messages of an exchange; one of them would carry the indices
	for _, indices := range []bool{false, true} {
		pair.Send(dist.Sent{Values: s.VectorsPerLink() * s.Mask.Len(), ValueBits: s.WireFormat().Bits(),
			Mask: s.Mask.Len(), Dim: s.Dim, Indices: indices})
	}
	return rates * float64(s.Bits(pair))
}

// allReduceBits counts the bits of an all-reduce of k values.
func (s *Setup) allReduceBits(k int) float64 {
	var l dist.Ledger
	for i := range s.Graph.N {
		l.Send(dist.Sent{Values: RingShare(i, s.Graph.N, k), ValueBits: s.WireFormat().Bits(), Mask: k, Dim: s.Dim,
			Indices: i > 0 && dist.Indexed(s.Mask)})
	}
	return float64(s.Bits(l))
}

// meanAllReduce is the mean of allReduceBits over the exchanges of a mask.
func (s *Setup) meanAllReduce() float64 {
	m := s.Mask
	if m.Parts() == 1 {
		return s.allReduceBits(s.Mask.Len())
	}
	sum := 0.0
	for k := range m.Parts() {
		sum += s.allReduceBits(len(m.Coordinates(k)))
	}
	return sum / float64(m.Parts())
}

// meanMessage returns the mean number of bits that go over a link one way through a codec in an
// iteration with an exchange.
func (s *Setup) meanMessage() float64 {
	parts, every := s.Mask.Parts(), s.RoundLength()
	var l dist.Ledger
	for part := range parts {
		for which := range s.Traits.MessagesPerIteration() {
			m := s.CodedMessage(s.Codec(), part*every, s.Mask.Len(), s.Mask.Len())
			m.Indices = which == 0 || m.DataDependent
			l.Send(m)
		}
	}
	return float64(s.Bits(l)) / float64(parts)
}

// RingShare is the number of values that agent i sends in a ring all-reduce of d values over n
// agents: in each of the two phases all chunks but one. The sum over agents is 2(n-1)d.
func RingShare(i, n, d int) int {
	chunk := func(c int) int { c %= n; return d*(c+1)/n - d*c/n }
	return 2*d - chunk(i+1) - chunk(i+2)
}
