package train

import (
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/process"
)

// travelling holds the messages of an exchange that are on their way.
type travelling struct {
	flight  flight
	awaited int  // The iteration of the messages that are awaited.
	again   bool // Messages of an earlier iteration are posted again.
}

// flight is the exchange of an iteration whose messages are awaited in a later one.
type flight struct {
	t     int // The iteration in which its messages were posted; -1: there is none.
	links []algo.Link
	posts []int
	own   []*dist.Buffer
	held  []*mask
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
		x.flight = flight{t, x.round.Links, x.posts, x.own, x.held}
		x.round.Links, x.posts, x.own, x.held, x.shortened = nil, nil, nil, nil, nil
	}
	if x.round.Shared = nil; !due {
		return
	}
	x.awaited, x.posts = old.t, old.posts
	x.round.Links, x.own, x.held = old.links, append(x.own, old.own...), append(x.held, old.held...)
	if x.run.setup.Whole(old.t) {
		x.round.Shared = x.sharedVector
	}
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
	x.again = false
	x.release()
	return err
}
