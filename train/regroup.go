package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/membership"
	"fspda/train/snapshot"
)

// regrouping is one agent in a change of the members. Its messages travel before the messages of the
// iteration, in the same streams.
type regrouping struct {
	*agent
	*membership.Change
	*takeover
	t int
}

// takeover is an attempt to take over a change of the members. It is given up if the members change
// once more in the same iteration: they then take both over at once, from the state before.
type takeover struct {
	ctx      context.Context // Ends when the attempt is given up.
	revision int             // The number of changes that the log has for this iteration and before.
	// early are messages of others that take over more changes, by their sender.
	early map[int]dist.Message
	// brought says that the agent, which is new, has the donor's state of an earlier iteration.
	brought bool
}

// regroup takes an agent that is a member from iteration t on over the change of the members there.
func (a *agent) regroup(t int) error {
	a.releaseGradient() // others may need it before this agent can go on
	if err := a.run.group.takeOver(a, t); err != nil {
		return err
	}
	a.clock.Await()
	a.time = a.clock.End()
	a.exchange.weigh(t)
	return a.reopen(t)
}

// attempt takes the agent over the changes that the log has for iteration t. keep is called before its
// state changes, and finish ends the attempt.
func (a *agent) attempt(t int, k *takeover, keep func(), finish func(*regrouping) error) error {
	c := a.run.setup.Members.Change(t)
	if a.id == c.Members[0] {
		a.run.log.Info("agents have left or joined", zap.Int("iteration", t), zap.Ints("members", c.Members),
			zap.Ints("joined", c.Joined))
	}
	r := &regrouping{a, c, k, t}
	a.round.T, a.round.Links = t, a.round.Links[:0]
	defer a.release()
	if c.Early.Gives(a.id) && !k.brought {
		if err := a.donation(c.Early); err != nil {
			return err
		}
		k.brought = true
	}
	if err := r.donate(); err != nil {
		return err
	}
	keep()
	if err := r.bring(); err != nil {
		return err
	}
	g := &algo.Group{Members: c.Members, Joined: c.Joined, Self: a.id, Sum: r.sum, Copy: r.copyDonors, Mix: r.mix,
		Acquire: a.round.Acquire}
	if err := a.run.setup.Traits.Regroup(a.state, g); err != nil {
		return err
	}
	return finish(r)
}

// takeOver implements processGroup. All changes are known before.
func (g *singleProcess) takeOver(a *agent, t int) error {
	return a.attempt(t, &takeover{ctx: a.ctx, brought: true}, func() {}, func(*regrouping) error { return nil })
}

// donation sends a state that is given early at the donor, and receives it at others.
func (a *agent) donation(d *membership.Donation) error {
	c := &membership.Change{Joined: d.To, Donor: d.Donor}
	r := &regrouping{a, c, &takeover{ctx: a.ctx, revision: len(a.run.setup.Members.Until(d.T))}, d.T}
	defer a.release()
	if a.id != d.Donor {
		return r.receive(r.donated())
	}
	a.round.T, a.round.Links = d.T, a.round.Links[:0]
	return r.donate()
}

// donated lists the vectors that a new member gets from the donor.
func (r *regrouping) donated() []device.Vector {
	all := append([]device.Vector{r.state.X}, r.state.Donated()...)
	if r.gradients.buffers != nil {
		all = append(all, r.gradients.buffers)
	}
	return all
}

// donate sends them at the donor.
func (r *regrouping) donate() error {
	to := slices.DeleteFunc(slices.Clone(r.Joined), r.Early.Gives)
	if r.id != r.Donor || len(to) == 0 {
		return nil
	}
	return r.send(to, append(r.donated(), r.counters())...)
}

// bring gives new members the state of the donor, and begins the memory of their edges anew.
func (r *regrouping) bring() error {
	a, g := r.agent, &algo.Group{Members: r.Members, Joined: r.Joined, Self: r.id}
	t := a.run.setup.Traits
	fromModel := t.EdgesFromModel && t.EdgeVectors != nil
	switch {
	case r.Joins(a.id):
		if !r.Early.Gives(a.id) {
			if err := r.receive(r.donated()); err != nil {
				return err
			}
		}
		a.state.Reset(a.run.setup.Algo, g, a.state.X)
	case len(r.Joined) > 0 && fromModel:
		model := a.state.X
		if a.id != r.Donor {
			model = a.round.Acquire(a.run.setup.Dim)
		}
		if err := r.hand(r.Donor, r.Old(), a.state.X, model); err != nil {
			return err
		}
		a.state.Reset(a.run.setup.Algo, g, model)
	default:
		a.state.Reset(a.run.setup.Algo, g, nil)
	}
	return nil
}

// counters are numbers of the agent that a new member takes over, as a vector: each as two numbers
// that float32 holds exactly.
func (r *regrouping) counters() device.Vector {
	v := r.round.Acquire(4)
	var host []float32
	for _, n := range []int{r.gradients.count, r.state.Count} {
		host = append(host, float32(n>>counterBits), float32(n&(1<<counterBits-1)))
	}
	r.dev.Write(v, host)
	return v
}

const counterBits = 20

// errLeft says that an agent has left whose message is needed to take a change of the members over.
var errLeft = errors.New("train: an agent has left during a change of the members")

// receive sets the state of a new member to the donor's.
func (r *regrouping) receive(state []device.Vector) error {
	r.gradients.meter, r.gradients.scale, r.gradients.scaled = snapshot.Losses{}, device.LossScale{}, nil
	m, err := r.recv(r.Donor)
	if err != nil {
		return err
	}
	defer m.Release()
	for k, v := range state {
		r.dev.Do(device.Gather(v, m.Values[k].V, nil))
	}
	host := make([]float32, 4)
	r.dev.Read(host, m.Values[len(state)].V)
	for k, n := range []*int{&r.gradients.count, &r.state.Count} {
		*n = int(host[2*k])<<counterBits + int(host[2*k+1])
	}
	return nil
}

// reopen opens the agent's batches from iteration t on, of the examples that it has from then on.
func (a *agent) reopen(t int) error {
	s := a.run.setup
	step := t
	if s.BatchPerGradient() {
		step = (a.gradients.count + s.GradientsPerBatch() - 1) / s.GradientsPerBatch()
	}
	loader, err := s.Loader(a.id, t, step)
	if err != nil {
		return err
	}
	a.gradients.release()
	a.gradients.loader.Close()
	a.gradients.loader = loader
	return nil
}

// send sends vectors to some agents, with one copy for all of them, and the revision.
func (r *regrouping) send(to []int, vs ...device.Vector) error {
	x := &r.exchange
	var values []*dist.Buffer
	add := func(n int) device.Vector {
		v := r.round.Acquire(n)
		values = append(values, x.own[len(x.own)-1])
		return v
	}
	for _, v := range vs {
		r.dev.Do(device.Gather(add(v.Len()), v, nil))
	}
	r.dev.Write(add(1), []float32{float32(r.revision)})
	for _, peer := range to {
		if peer == r.id {
			continue
		}
		m := dist.Message{T: r.t, From: r.id, To: peer, Values: slices.Clone(values), Exact: true}
		bits := 32 * float64(totalLen(vs))
		for _, b := range values {
			b.Retain(1)
		}
		m.Arrives = r.clock.Post(r.t, peer, bits)
		x.ledger.Overhead += uint64(bits)
		x.ledger.WireBytes += uint64(bits / 8)
		if err := r.run.net.Send(r.ctx, m); err != nil {
			return x.failure(err)
		}
	}
	return nil
}

// recv receives a message of this attempt. Its vectors are on the agent's device.
func (r *regrouping) recv(from int) (dist.Message, error) {
	for {
		m, err := r.next(from)
		if err != nil {
			return m, err
		}
		revision := []float32{0}
		r.dev.Read(revision, m.Values[len(m.Values)-1].V)
		switch got := int(revision[0]); {
		case got == r.revision:
			return m, nil
		case got < r.revision:
			// The message belongs to a take-over that was given up.
			m.Release()
		default: // This agent is about to hear of the change.
			r.early[from] = m
			<-r.ctx.Done()
			return m, r.ctx.Err()
		}
	}
}

// next receives a message of any attempt.
func (r *regrouping) next(from int) (dist.Message, error) {
	if m, ok := r.early[from]; ok {
		delete(r.early, from)
		return m, nil
	}
	ctx, over := r.Watch(r.ctx, from)
	defer over()
	m, err := r.run.net.Recv(ctx, r.id, from, r.t)
	if err != nil && r.Gone(from) {
		return m, errLeft
	}
	if errors.Is(err, dist.ErrIdle) {
		return m, fmt.Errorf("train: agent %d got no state from agent %d at the change of members in iteration %d",
			r.id, from, r.t)
	}
	if err != nil {
		return m, r.exchange.failure(err)
	}
	r.clock.Receive(m.Arrives)
	for i, b := range m.Values {
		m.Values[i] = r.exchange.toDevice(b)
	}
	return m, nil
}

// confirm tells the other members that this one has all messages of the change, and waits until all
// have said so, or have left.
func (r *regrouping) confirm() error {
	if err := r.send(r.Members); err != nil {
		return err
	}
	for _, peer := range r.Members {
		if peer == r.id {
			continue
		}
		m, err := r.recv(peer)
		if err == nil {
			m.Release()
		} else if !errors.Is(err, errLeft) {
			return err
		}
	}
	return nil
}

// vectors lists the vectors of the agent's state, and the counts of its edges.
func (a *agent) vectors() (vs []device.Vector, counts []int) {
	vs = append([]device.Vector{a.state.X}, a.state.Aux...)
	for _, e := range a.state.Edges {
		vs, counts = append(vs, e.Vectors...), append(counts, e.Count)
	}
	if a.gradients.buffers != nil {
		vs = append(vs, a.gradients.buffers)
	}
	return vs, counts
}

// rehearse computes a gradient that nobody uses, and writes to all vectors of the agent's state.
// Both take longer the first time, when memory gets its pages and a device its programs. Once the
// agent is a member, others would wait for that.
func (a *agent) rehearse() error {
	defer a.release()
	if err := a.gradients.take(); err != nil {
		return err
	}
	wait, err := a.gradients.start(a.round.Acquire(a.run.setup.Dim), a.state.X)
	if err == nil {
		_, err = wait()
	}
	vs, _ := a.vectors()
	for _, v := range vs {
		b := a.round.Acquire(v.Len())
		a.dev.Do(device.Gather(b, v, nil), device.Gather(v, b, nil))
		a.exchange.release()
	}
	return err
}

// keep copies the agent's state but its ledger, and returns a function that sets the agent back to
// it.
func (a *agent) keep() (restore func()) {
	vs, counts := a.vectors()
	host := make([][]float32, len(vs))
	for k, v := range vs {
		host[k] = make([]float32, v.Len())
		a.dev.Read(host[k], v)
	}
	scalars, directions, grads := slices.Clone(a.state.Scalars), a.state.Count, a.gradients.count
	return func() {
		for k, v := range vs {
			a.dev.Write(v, host[k])
		}
		for k, e := range a.state.Edges {
			e.Count = counts[k]
		}
		copy(a.state.Scalars, scalars)
		a.state.Count, a.gradients.count = directions, grads
	}
}

// hand sends v from one agent to others, which have it in dst then.
func (r *regrouping) hand(from int, to []int, v, dst device.Vector) error {
	switch {
	case r.id == from:
		return r.send(to, v)
	case !slices.Contains(to, r.id):
		return nil
	}
	m, err := r.recv(from)
	if err != nil {
		return err
	}
	r.dev.Do(device.Gather(dst, m.Values[0].V, nil))
	m.Release()
	return nil
}

// copyDonors is algo.Group.Copy.
func (r *regrouping) copyDonors(vs ...device.Vector) error {
	for _, v := range vs {
		if err := r.hand(r.Donor, r.Joined, v, v); err != nil {
			return err
		}
	}
	return nil
}

// sum is algo.Group.Sum.
func (r *regrouping) sum(dst, v device.Vector) error {
	return r.combine(dst, v, r.Old(), r.Members, func(int) float64 { return 1 })
}

// mix is algo.Group.Mix.
func (r *regrouping) mix(dst, v device.Vector) error {
	s := r.run.setup
	near := []int{r.id}
	weights := map[int]float64{r.id: r.exchange.selfWeight(r.t)}
	for k, peer := range s.Graph.Neighbours(r.id) {
		if slices.Contains(r.Members, peer) {
			near, weights[peer] = append(near, peer), s.Mixing.Edge(s.Graph.Incident(r.id)[k])
		}
	}
	slices.Sort(near)
	return r.combine(dst, v, near, near, func(i int) float64 { return weights[i] })
}

// combine sets dst to the weighted sum of the v of some agents, which send it to others.
func (r *regrouping) combine(dst, v device.Vector, from, to []int, weight func(int) float64) error {
	if slices.Contains(from, r.id) {
		if err := r.send(to, v); err != nil {
			return err
		}
	}
	var terms []device.Term
	for _, i := range from {
		if i == r.id {
			terms = append(terms, device.Term{A: weight(i), V: v})
			continue
		}
		m, err := r.recv(i)
		if err != nil {
			return err
		}
		defer m.Release()
		terms = append(terms, device.Term{A: weight(i), V: m.Values[0].V})
	}
	sum := r.round.Acquire(dst.Len())
	r.dev.Do(device.Combine(sum, terms...), device.Gather(dst, sum, nil))
	return nil
}
