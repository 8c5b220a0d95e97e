package train

import (
	"cmp"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/process"
)

// travelling holds the messages of an exchange that are on their way.
type travelling struct {
	flight  flight
	awaited int  // The iteration of the messages that are awaited.
	again   bool // Messages of an earlier iteration are posted again.
	early   bool // Messages are read before the iteration in which they are received.
	taken   bool // The messages of the round's links were received before.
}

// flight is the exchange of an iteration whose messages are awaited in a later one.
type flight struct {
	t     int // The iteration in which its messages were posted; -1: there is none.
	links []algo.Link
	posts []int
	own   []*dist.Buffer
	held  []*mask

	// The rest is of an all-reduce that is divided.
	parts  []*dist.Buffer // The agent's own vectors on its part; nil: the all-reduce is not divided.
	length int            // The length of the vector that is summed.
	sum    []*dist.Buffer // The agent's part of the sum, with what its codec needs.
}

// depart follows the posts of an iteration. Where messages are awaited some iterations later, it
// takes the links of this iteration out of the round, with all that they need, and puts those into
// it whose messages are awaited now.
func (x *exchange) depart() {
	delay, t := x.run.setup.Traits.Delay, x.round.T
	if delay == 0 {
		return
	}
	old, posts := x.flight, len(x.round.Links) > 0
	due := old.t >= 0 && old.t+delay == t
	if due {
		x.clock.Due()
	}
	if due || posts {
		x.flight = flight{t: -1}
	}
	if posts {
		if !x.again {
			x.accountPosts()
		}
		x.clock.Depart()
		x.flight = flight{t: t, links: x.round.Links, posts: x.posts, own: x.own, held: x.held, parts: x.reduce.own}
		if x.reduce.own != nil {
			x.flight.length = x.shape[0]
		}
		x.round.Links, x.posts, x.own, x.held, x.shortened, x.reduce.own = nil, nil, nil, nil, nil, nil
	}
	if x.round.Shared = nil; !due {
		return
	}
	x.awaited, x.posts = old.t, old.posts
	x.round.Links, x.own, x.held = old.links, append(x.own, old.own...), append(x.held, old.held...)
	switch {
	case old.parts != nil:
		x.taken = true
		x.own = append(append(x.own, old.parts...), old.sum...)
		x.round.Shared = func(int, func(device.Vector)) device.Vector { return x.whole(old.length, old.sum) }
	case x.run.setup.Whole(old.t):
		x.round.Shared = x.sharedVector
	}
}

// halfway is the iteration at whose head an agent adds what the others have posted for its part of a
// divided all-reduce, and sends the sum: then each half of the exchange has half of the delay.
func (f *flight) halfway(delay int) int { return f.t + (delay+1)/2 }

// advance is called at the head of iteration t, before its posts. It reduces the agent's part of a
// sum that is under way, when it is time to, and takes the messages of it when it is due. Until then
// they stay where they are, so that an agent that goes on from a checkpoint reads them again.
func (x *exchange) advance(s *algo.State, t int) error {
	f, delay := &x.flight, x.run.setup.Traits.Delay
	if f.parts == nil {
		return nil
	}
	if t == f.halfway(delay) {
		if err := x.reduceEarly(s); err != nil {
			return err
		}
	}
	if t != f.t+delay {
		return nil
	}
	net, _ := x.checkedNet()
	for _, l := range f.links {
		m, err := net.RecvChecked(x.ctx, x.id, l.Peer, f.t, func(dist.Message) error { return nil })
		if err != nil {
			return x.failure(err)
		}
		m.Release()
	}
	return nil
}

// reduceEarly computes the agent's part of the sum under way, and sends it to all others.
func (x *exchange) reduceEarly(s *algo.State) error {
	f, r, before := &x.flight, &x.round, x.round
	posts := x.posts
	defer func() { r.T, r.Links, r.Shared, x.posts, x.early = before.T, before.Links, before.Shared, posts, false }()
	r.T, r.Links, x.posts, x.awaited, x.early, x.taken = f.t+x.run.setup.Traits.Delay, f.links, f.posts, f.t,
		true, false
	x.reduce.now, x.reduce.own = true, f.parts
	defer func() { x.reduce.own = nil }()
	r.Shared = func(which int, fill func(device.Vector)) device.Vector {
		f.sum = x.reducePart(which, fill)
		return f.sum[0].V
	}
	for i := range r.Links {
		if err := x.receive(i); err != nil {
			return err
		}
	}
	return cmp.Or(x.run.setup.Traits.Reduce(s, r), x.sendErr)
}

// logged reports whether the transport keeps messages for processes that are started again.
func (x *exchange) logged() bool {
	_, logged := x.run.net.(process.Network)
	return logged
}

// relaunch posts the messages again that were on their way before iteration first, when the run was
// stopped. A transport with a log of messages has them.
func (x *exchange) relaunch(s *algo.State, first int) error {
	t := first - first%x.run.setup.RoundLength() - 1
	if delay := x.run.setup.Traits.Delay; delay == 0 || t < 0 || t+delay < first || !x.run.setup.AllReducesAt(t) {
		return nil
	}
	x.again, x.round.T = true, t
	x.connect(t)
	err := x.run.setup.Traits.Repost(s, &x.round)
	x.depart()
	if f := &x.flight; err == nil && f.parts != nil && first > f.halfway(x.run.setup.Traits.Delay) {
		err = x.reduceEarly(s)
	}
	x.again = false
	x.release()
	return err
}
