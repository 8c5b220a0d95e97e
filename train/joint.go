package train

import (
	"errors"
	"slices"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
)

// joint is a divided all-reduce of members that may leave. It counts when each has the whole sums and
// has told all others so. If an agent leaves before, it is given up, and all send their whole vectors
// to all others that stay.
//
// An agent sends as many messages in one that is given up as in one that counts, so that a process
// that goes on from a checkpoint can repeat them: of one number, 0, in place of those that it cannot
// send.
type joint struct {
	full   []device.Vector // The agent's own vectors.
	sent   int             // The number of messages that the agent has sent to each other one.
	got    []int           // The number of messages that came, by link.
	failed bool            // It is given up.
}

// divideAmongMembers divides the all-reduce of this iteration, of vectors of a length, among the
// members.
func (x *exchange) divideAmongMembers(length int) {
	d, n := &x.reduce, len(x.round.Links)+1
	if n <= 2 || length < 2*n { // A part is longer than the one number of a message that gives up.
		return
	}
	d.parts.Members = x.run.setup.Members.Members(x.round.T)
	d.now, d.sent, d.got = true, 1, slices.Grow(d.got[:0], n)[:n-1]
	clear(d.got)
}

// givesUp reports whether a message says that its sender has given up a divided all-reduce.
func givesUp(m dist.Message) bool { return len(m.Values) == 1 && m.Values[0].V.Len() == 1 }

// errGivenUp ends a divided all-reduce that is given up.
var errGivenUp = errors.New("train: an agent has left during an all-reduce")

// reduceJointly goes on with a divided all-reduce whose parts have come. If it is given up, the links
// have whole vectors in the end.
func (x *exchange) reduceJointly(s *algo.State) error {
	d := &x.reduce
	err := errGivenUp
	if !d.failed && !x.left {
		err = x.shareSums(s)
	}
	if err == nil {
		x.Confirms(x.place())
		if err = x.tell(1); err == nil {
			err = x.hear()
		}
	}
	var others []int
	for i := range x.round.Links {
		others = append(others, x.round.Links[i].Peer)
	}
	if err == nil && x.Commits(x.ctx, x.place(), others...) {
		return nil
	}
	if err != nil && !errors.Is(err, errGivenUp) {
		return err
	}
	return x.reduceWhole()
}

// shareSums adds the parts that have come, sends the sums to all others, and receives theirs.
func (x *exchange) shareSums(s *algo.State) error {
	d, r := &x.reduce, &x.round
	var own [][]*dist.Buffer
	defer func() {
		for _, part := range own {
			dist.Message{Values: part}.Release()
		}
	}()
	r.Shared = func(which int, fill func(device.Vector)) device.Vector {
		own = append(own, x.reducePart(which, fill))
		d.sent++
		return own[which][0].V
	}
	if err := x.run.setup.Traits.Reduce(s, r); err != nil || x.sendErr != nil {
		return errors.Join(err, x.sendErr)
	}
	var sums []device.Vector
	for which, part := range own {
		whole, err := d.parts.Receive(x.recvJointly, r.T, x.shape[which], part...)
		if err != nil {
			return err
		}
		x.received = append(x.received, whole)
		sums = append(sums, whole.V)
	}
	r.Shared = func(which int, _ func(device.Vector)) device.Vector { return sums[which] }
	return nil
}

// recvJointly receives the next message of a member in a divided all-reduce.
func (x *exchange) recvJointly(agent int, check func(dist.Message) error) (dist.Message, error) {
	ctx, over := x.Watch(x.ctx, agent)
	defer over()
	m, err := x.reduce.parts.Net.RecvChecked(ctx, x.id, agent, x.round.T, func(m dist.Message) error {
		if givesUp(m) {
			return nil
		}
		return check(m)
	})
	switch {
	case err != nil && x.Gone(agent):
		return m, errGivenUp
	case err != nil:
		return m, x.failure(err)
	}
	link := slices.IndexFunc(x.round.Links, func(l algo.Link) bool { return l.Peer == agent })
	if x.reduce.got[link]++; x.reduce.got[link] < x.messages() && givesUp(m) {
		m.Release()
		return m, errGivenUp
	}
	return m, nil
}

// messages is the number of messages of a divided all-reduce to each other member: the parts, the sum
// of each vector, and that the agent has everything.
func (x *exchange) messages() int { return 2 + len(x.reduce.full) }

// hear waits until all others have said that they have everything.
func (x *exchange) hear() error {
	for i := range x.round.Links {
		m, err := x.recvJointly(x.round.Links[i].Peer, func(dist.Message) error {
			return dist.Invalidf("a vector of an all-reduce, expected one number")
		})
		if errors.Is(err, errGivenUp) {
			continue // It is agreed whether the messages of one that has left count.
		}
		if err != nil {
			return err
		}
		word := []float32{0}
		m.Values[0].Device().Read(word, m.Values[0].V)
		m.Release()
		if word[0] == 0 {
			return errGivenUp
		}
	}
	return nil
}

// tell sends a number to all others that take part.
func (x *exchange) tell(number float32) error {
	x.reduce.sent++
	for i := range x.round.Links {
		peer := x.round.Links[i].Peer
		if x.idle(peer) {
			continue
		}
		word := x.worker.pool.Get(1)
		x.dev.Write(word.V, []float32{number})
		m := dist.Message{T: x.round.T, From: x.id, To: peer, Values: []*dist.Buffer{word}}
		if err := x.run.net.Send(x.ctx, m); err != nil {
			return x.failure(err)
		}
	}
	return nil
}

// reduceWhole exchanges whole vectors in place of a divided all-reduce that is given up.
func (x *exchange) reduceWhole() error {
	d, links := &x.reduce, x.round.Links
	stay := func() bool {
		return !slices.ContainsFunc(links, func(l algo.Link) bool { return x.idle(l.Peer) })
	}
	x.run.progress.wait(x.ctx, stay, func() {}) // This process may be the last to hear that one leaves.
	for d.sent < x.messages() {
		if err := x.tell(0); err != nil {
			return err
		}
	}
	for i := range links {
		for d.got[i] < x.messages() && !x.idle(links[i].Peer) && !x.Gone(links[i].Peer) {
			m, err := x.recvJointly(links[i].Peer, func(dist.Message) error { return nil })
			if err == nil {
				m.Release()
			} else if !errors.Is(err, errGivenUp) {
				return err
			}
		}
	}
	d.now, x.round.Shared, x.left = false, nil, false
	for i := range links {
		links[i].Sent, links[i].Received, x.posts[i] = links[i].Sent[:0], nil, 0
		x.post(i, d.full...)
	}
	for i := range links {
		if err := x.receive(i); err != nil {
			return err
		}
	}
	return nil
}
