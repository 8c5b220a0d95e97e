package disttest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"fspda/dist"
)

// CodecTransport is a Transport that encodes each message with its codec, decodes it, and passes
// the result on: the effect of a network on a message, without a network. It returns an error if
// the length of the encoding differs from the bits that a Ledger counts.
type CodecTransport struct {
	dist.Transport
	pool *dist.Pool
	dim  int

	Bits, Bytes atomic.Uint64 // bits that a Ledger counts, and encoded bytes
}

// NewCodecTransport returns a CodecTransport in front of next, for vectors of length dim.
func NewCodecTransport(next dist.Transport, pool *dist.Pool, dim int) *CodecTransport {
	return &CodecTransport{Transport: next, pool: pool, dim: dim}
}

// Send implements [dist.Transport].
func (w *CodecTransport) Send(ctx context.Context, m dist.Message) error {
	p := dist.Payload{Dim: w.dim, T: m.T}
	codec := m.Codec
	var lengths []int
	for _, b := range m.Values {
		v := make([]float32, b.V.Len())
		w.pool.Device().Read(v, b.V)
		p.Vectors, lengths = append(p.Vectors, v), append(lengths, len(v))
	}
	if codec == nil { // plain values, one vector after the other
		all := slices.Concat(p.Vectors...)
		codec, p.Dim, p.Vectors = dist.FloatCodec{Vectors: 1, Len: len(all)}, len(all), [][]float32{all}
	}
	p.Coords = append(p.Coords, m.Values[0].Coords...)
	m.Release()
	text, err := codec.Encode(nil, p, dist.SharedSeed, false)
	if err != nil {
		return err
	}
	var counted dist.Ledger
	counted.Send(codec.Sent(p))
	if want := (counted.SharedSeed + 7) / 8; uint64(len(text)) != want {
		return fmt.Errorf("disttest: the message of iteration %d from agent %d has %d bytes; the ledger counts %d", m.T,
			m.From, len(text), want)
	}
	w.Bits.Add(counted.SharedSeed)
	w.Bytes.Add(uint64(len(text)))
	// the number of coordinates is the mask's, which both ends draw
	back := dist.Payload{Dim: p.Dim, T: m.T, Coords: make([]uint32, len(p.Vectors[0]))}
	if err := codec.Decode(&back, text, dist.SharedSeed, false); err != nil {
		return fmt.Errorf("disttest: the message of iteration %d from agent %d cannot be decoded: %w", m.T, m.From, err)
	}
	if m.Codec == nil {
		all := back.Vectors[0]
		back.Vectors = nil
		for _, n := range lengths {
			back.Vectors, all = append(back.Vectors, all[:n]), all[n:]
		}
	}
	m.Values = nil
	for i, v := range back.Vectors {
		b := w.pool.Get(len(v))
		w.pool.Device().Write(b.V, v)
		if i == 0 && codec.Sent(p).DataDependent {
			b.Coords = append(b.Coords, back.Coords...)
		}
		m.Values = append(m.Values, b)
	}
	return w.Transport.Send(ctx, m)
}
