package train

import (
	"cmp"

	"fspda/device"
	"fspda/dist"
	"fspda/dist/allreduce"
	"fspda/train/algo"
	"fspda/train/config"
)

// allReduceLinks links the agent to all others, in an iteration of an all-reduce. All links have
// the mask of the iteration.
func (x *exchange) allReduceLinks(t int) {
	s := x.run.setup
	x.reduce.now = false
	if !s.AllReducesAt(t) {
		return
	}
	var mask device.Index
	length := s.Dim
	if s.Whole(t) && !s.Members.Elastic() {
		x.round.Shared = x.sharedVector
	}
	if !s.Whole(t) {
		mask = x.borrowMask(x.run.commonMask(x.worker, t))
		length = mask.Len()
	}
	for peer := range s.Graph.N {
		if peer != x.id && s.Members.Present(peer, t) {
			x.link(peer, mask, length, 1/float64(s.Graph.N), 0)
		}
	}
	switch {
	case x.reduce.parts == nil:
	case s.Members.Elastic():
		x.divideAmongMembers(length)
	case length >= s.Graph.N:
		x.reduce.now, x.round.Shared = true, x.gather
	}
}

// divided is an all-reduce in which each agent reduces its part of the vectors. Between processes
// less is sent than if each agent sent all to all others.
type divided struct {
	parts *allreduce.Parts // nil: all vectors are sent to all others
	now   bool             // it is so in this iteration
	own   []*dist.Buffer
	joint
}

// initDivided divides the all-reduces between processes, if vectors are sent with all their bits, or
// by a codec of blocks that codes the sum again. Where members may leave, codes are not divided.
func (x *exchange) initDivided() {
	net, ok := x.checkedNet()
	s := x.run.setup
	if !ok || s.Graph.N <= 2 || s.WireFormat().Bits() != 32 ||
		s.Members.Elastic() && (x.codec.message != nil || s.Traits.Reduce == nil) {
		return
	}
	parts := &allreduce.Parts{Net: net, Pool: x.worker.pool, Self: x.id}
	for i := range s.Graph.N {
		parts.Members = append(parts.Members, i)
	}
	if x.codec.message != nil {
		d, ok := x.codec.message.(dist.Divisible)
		if !ok || !s.InRing() {
			return
		}
		if parts.Pieces = d.Divide(s.Graph.N); parts.Pieces == nil {
			return
		}
	}
	x.reduce.parts = parts
}

// divide returns the buffer that is sent to a peer in place of b, vector k of a message, with a
// reference, and the agent's own vector on the coordinates that the peer sends: b itself, or parts
// of it.
func (x *exchange) divide(b *dist.Buffer, peer, k int) (sent *dist.Buffer, own device.Vector) {
	d := &x.reduce
	if !d.now {
		b.Retain(1)
		return b, b.V
	}
	if k == len(d.own) {
		d.own = append(d.own, d.parts.Part(x.round.T, k, b, x.id))
		d.full = append(d.full, b.V)
	}
	return d.parts.Part(x.round.T, k, b, peer), d.own[k].V
}

// gather is Round.Shared of a divided all-reduce: fill writes the agent's part, and the others send
// theirs.
func (x *exchange) gather(which int, fill func(dst device.Vector)) device.Vector {
	own := x.reducePart(which, fill)
	defer dist.Message{Values: own}.Release()
	return x.whole(x.shape[which], own)
}

// reducePart returns the agent's part of a sum, which fill writes, and sends it to all others. With
// a codec of blocks fill compresses the part, and the scales of its blocks go with it.
func (x *exchange) reducePart(which int, fill func(dst device.Vector)) []*dist.Buffer {
	parts, before := x.reduce.parts, len(x.own)
	own := []*dist.Buffer{x.worker.pool.Get(x.reduce.own[which].V.Len())}
	fill(own[0].V)
	if parts.Pieces != nil && len(x.own) > before {
		scales := x.own[len(x.own)-1]
		scales.Retain(1)
		own = append(own, scales)
	}
	switch {
	case parts.Pieces != nil && len(own) == 1: // The part has no code: the run ends.
	case x.again && x.logged():
	default:
		if err := parts.Send(x.ctx, x.awaited, own...); err != nil {
			x.sendErr = cmp.Or(x.sendErr, x.failure(err))
		}
	}
	return own
}

// whole returns the sum of n numbers of the parts of all agents. own is the agent's own part, which
// it has sent.
func (x *exchange) whole(n int, own []*dist.Buffer) device.Vector {
	var whole *dist.Buffer
	if x.reduce.parts.Pieces == nil || len(own) > 1 {
		var err error
		recv := func(agent int, check func(dist.Message) error) (dist.Message, error) {
			return x.reduce.parts.Net.RecvChecked(x.ctx, x.id, agent, x.awaited, check)
		}
		if whole, err = x.reduce.parts.Receive(recv, x.awaited, n, own...); err != nil {
			x.sendErr, whole = cmp.Or(x.sendErr, x.failure(err)), nil
		}
	}
	if whole == nil {
		whole = x.worker.pool.Get(n)
	}
	x.received = append(x.received, whole)
	return whole.V
}

// release returns the parts of an iteration.
func (d *divided) release() {
	for _, b := range d.own {
		b.Release()
	}
	d.own, d.joint = d.own[:0], joint{full: d.full[:0], got: d.got}
}

// commonMask is the mask of an all-reduce: the one of the iteration, with agent 0 as both ends.
func (r *run) commonMask(w *worker, t int) comingMask {
	users := 0
	for i := range r.setup.Graph.N {
		users += r.countOn(w, t, i)
	}
	return comingMask{maskKey{t, 0, 0}, users}
}

// countAllReduce enters the agent's share of a ring all-reduce in the ledger. Each agent but one
// sends the indices, in accountings that count them: the others know them from it.
func (x *exchange) countAllReduce() {
	if len(x.round.Links) == 0 {
		return
	}
	l, s := &x.round.Links[0], x.run.setup
	if x.codec.message != nil {
		x.countTwoSteps(l)
		return
	}
	values := config.RingShare(x.rank(), len(x.round.Links)+1, l.Len*len(l.Sent))
	x.countSent(dist.Sent{Values: values, Mask: l.Len, Indices: x.rank() > 0 && dist.Indexed(s.Mask)})
}

// rank is the place of the agent among those that exchange in this iteration, in the order of their
// numbers.
func (x *exchange) rank() (at int) {
	for _, l := range x.round.Links {
		if l.Peer < x.id {
			at++
		}
	}
	return at
}

// countTwoSteps enters the agent's share of an all-reduce of coded vectors in the ledger: each part
// of a vector goes to its owner, who sends the coded mean of it to all others.
func (x *exchange) countTwoSteps(l *algo.Link) {
	at, n, values := x.rank(), len(x.round.Links)+1, totalLen(l.Sent)
	m := x.run.setup.CodedMessage(x.codec.message, x.round.T, values, l.Len)
	m.Values = config.RingShare(at, n, m.Values)
	m.ExtraBits = 32 * config.RingShare(at, n, m.ExtraBits/32)
	x.ledger.Send(m)
	x.ledger.WireBytes += 4 * uint64(config.RingShare(at, n, values))
}
