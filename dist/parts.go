package dist

import "context"

// Parts divides the vectors of an all-reduce between processes: each agent owns a part of them. An
// agent sends to each other one that one's part of its vector. The owner reduces the numbers that
// it has and sends the result to all others. So an agent sends 2(n-1)/n vectors, and not n-1.
type Parts struct {
	Net          Checked
	Pool         *Pool
	Self, Agents int

	host []float32 // Scratch.
}

// bounds returns where the part of an agent is in a vector of n numbers.
func (p *Parts) bounds(agent, n int) (from, to int) {
	return int(int64(n) * int64(agent) / int64(p.Agents)), int(int64(n) * int64(agent+1) / int64(p.Agents))
}

// Part returns the part of an agent of b, with one reference. It may share the memory of b.
func (p *Parts) Part(b *Buffer, agent int) *Buffer {
	from, to := p.bounds(agent, b.V.Len())
	if all, ok := p.Pool.Floats(b); ok {
		b.Retain(1)
		part, _ := p.Pool.Wrap(all[from:to], b.Release)
		return part
	}
	p.host = grow(p.host, b.V.Len())
	p.Pool.Device().Read(p.host, b.V)
	part := p.Pool.Get(to - from)
	p.Pool.Device().Write(part.V, p.host[from:to])
	return part
}

// Gather sends own, this agent's part of a vector of n numbers, to all others, and returns the
// vector of all parts. It takes over a reference to own.
func (p *Parts) Gather(ctx context.Context, t, n int, own *Buffer) (*Buffer, error) {
	defer own.Release()
	for peer := range p.Agents {
		if peer == p.Self {
			continue
		}
		own.Retain(1)
		if err := p.Net.Send(ctx, Message{T: t, From: p.Self, To: peer, Values: []*Buffer{own}}); err != nil {
			return nil, err
		}
	}
	whole, dev := p.Pool.Get(n), p.Pool.Device()
	all, shared := p.Pool.Floats(whole)
	if !shared {
		p.host = grow(p.host, n)
		all = p.host
	}
	for agent := range p.Agents {
		from, to := p.bounds(agent, n)
		if agent == p.Self {
			dev.Read(all[from:to], own.V)
			continue
		}
		m, err := p.Net.RecvChecked(ctx, p.Self, agent, t, func(m Message) error {
			if len(m.Values) != 1 || m.Values[0].V.Len() != to-from {
				return Invalidf("%d vectors of an all-reduce, expected the %d numbers of a part", len(m.Values),
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
