package train

import (
	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/config"
)

// allReduceLinks links the agent to all others, in an iteration of an all-reduce. All links have the
// mask of the iteration.
func (x *exchange) allReduceLinks(t int) {
	s := x.run.setup
	if !s.AllReducesAt(t) {
		return
	}
	var mask device.Index
	length := s.Dim
	if s.Whole(t) {
		x.round.Shared = x.sharedVector
	} else {
		mask = x.borrowMask(x.run.commonMask(x.worker, t))
		length = mask.Len()
	}
	for peer := range s.Graph.N {
		if peer != x.id {
			x.link(peer, mask, length, 1/float64(s.Graph.N), 0)
		}
	}
}

// commonMask is the mask of an all-reduce: the one of the iteration, with agent 0 as both ends.
func (r *run) commonMask(w *worker, t int) comingMask {
	users := 0
	for i := range r.setup.Graph.N {
		users += r.countOn(w, i)
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
	values := config.RingShare(x.id, s.Graph.N, l.Len*len(l.Sent))
	x.countSent(dist.Sent{Values: values, Mask: l.Len, Indices: x.id > 0 && dist.Indexed(s.Mask)})
}

// countTwoSteps enters the agent's share of an all-reduce of coded vectors in the ledger: each part
// of a vector goes to its owner, who sends the coded mean of it to all others.
func (x *exchange) countTwoSteps(l *algo.Link) {
	n, values := x.run.setup.Graph.N, totalLen(l.Sent)
	m := x.run.setup.CodedMessage(x.codec.message, x.round.T, values, l.Len)
	m.Values = config.RingShare(x.id, n, m.Values)
	m.ExtraBits = 32 * config.RingShare(x.id, n, m.ExtraBits/32)
	x.ledger.Send(m)
	x.ledger.WireBytes += 4 * uint64(config.RingShare(x.id, n, values))
}
