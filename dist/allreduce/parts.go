// Package allreduce divides all-reduces between processes.
package allreduce

import (
	"context"
	"slices"

	"fspda/dist"
)

// Parts divides the vectors of an all-reduce between processes: each agent owns a part of them. An
// agent sends to each other one that one's part of its vector. The owner reduces the numbers that
// it has and sends the result to all others. So an agent sends 2(n-1)/n vectors, and not n-1.
type Parts struct {
	Net     dist.Checked
	Pool    *dist.Pool
	Self    int
	Members []int        // The agents that have parts, ascending.
	Pieces  []dist.Piece // The codecs of the parts, by agent; nil: float32.

	host []float32 // Scratch.
}

// bounds returns where the part of an agent is in a vector of n numbers, one of the vectors of a
// message of iteration t.
func (p *Parts) bounds(t, vector, agent, n int) (from, to int) {
	if p.Pieces != nil {
		return p.Pieces[agent].Span(t, vector)
	}
	k, all := int64(slices.Index(p.Members, agent)), int64(len(p.Members))
	return int(int64(n) * k / all), int(int64(n) * (k + 1) / all)
}

// Mark makes m a message of the part of an agent.
func (p *Parts) Mark(m *dist.Message, agent int) {
	if p.Pieces != nil {
		m.Codec, m.Piece = p.Pieces[agent], agent+1
	}
}

// Part returns the part of an agent of b, one of the vectors of a message of iteration t, with one
// reference. It may share the memory of b.
func (p *Parts) Part(t, vector int, b *dist.Buffer, agent int) *dist.Buffer {
	from, to := p.bounds(t, vector, agent, b.V.Len())
	if all, ok := p.Pool.Floats(b); ok {
		b.Retain(1)
		part, _ := p.Pool.Wrap(all[from:to], b.Release)
		return part
	}
	p.host = slices.Grow(p.host[:0], b.V.Len())[:b.V.Len()]
	p.Pool.Device().Read(p.host, b.V)
	part := p.Pool.Get(to - from)
	p.Pool.Device().Write(part.V, p.host[from:to])
	return part
}

// Send sends this agent's part of a vector to all others. The part is the first of own, before what
// its codec needs beside it.
func (p *Parts) Send(ctx context.Context, t int, own ...*dist.Buffer) error {
	for _, peer := range p.Members {
		if peer == p.Self {
			continue
		}
		m := dist.Message{T: t, From: p.Self, To: peer, Values: slices.Clone(own)}
		p.Mark(&m, p.Self)
		for _, b := range own {
			b.Retain(1)
		}
		if err := p.Net.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// Receive returns the vector of n numbers of all parts: those that the others send, and this agent's
// own, which it has sent. recv receives a message of iteration t that a function accepts.
func (p *Parts) Receive(recv func(agent int, check func(dist.Message) error) (dist.Message, error), t, n int,
	own ...*dist.Buffer) (*dist.Buffer, error) {
	whole, dev := p.Pool.Get(n), p.Pool.Device()
	all, shared := p.Pool.Floats(whole)
	if !shared {
		p.host = slices.Grow(p.host[:0], n)[:n]
		all = p.host
	}
	for _, agent := range p.Members {
		from, to := p.bounds(t, 0, agent, n)
		if agent == p.Self {
			dev.Read(all[from:to], own[0].V)
			continue
		}
		m, err := recv(agent, func(m dist.Message) error {
			if len(m.Values) != len(own) || m.Values[0].V.Len() != to-from {
				return dist.Invalidf("%d vectors of an all-reduce, expected the %d numbers of a part", len(m.Values),
					to-from)
			}
			return nil
		})
		if err != nil {
			whole.Release()
			return nil, err
		}
		dev.Read(all[from:to], m.Values[0].V)
		m.Release()
	}
	if !shared {
		dev.Write(whole.V, all)
	}
	return whole, nil
}
