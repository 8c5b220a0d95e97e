package simnet

import (
	"math"
	"slices"
)

// port is the point at which the messages of one agent enter the network.
type port struct {
	id     int
	net    *Links
	seed   uint64
	uplink float64     // time from which the uplink is free
	out    []direction // directions by peer, ascending
}

// direction is the agent's direction of the link to a peer.
type direction struct {
	peer  int
	route route
	free  float64 // time from which it is free
	t     int     // the iteration of the last message
	count int     // messages of that iteration so far
	last  float64 // arrival of the last message
}

// send posts a message of iteration t at time now, and returns the time of its arrival.
func (p *port) send(now float64, t, peer int, bits float64) float64 {
	d := p.to(peer)
	rate := p.net.uplink[p.id]
	first := math.Max(now, p.uplink)
	p.uplink = first + bits/rate
	end := math.Max(math.Max(first, d.free)+bits/d.route.rate, p.uplink)
	if d.t != t {
		d.t, d.count = t, 0
	}
	lost := d.route.losses(p.seed, t, p.id, peer, d.count)
	d.count++
	d.free = end + float64(lost*(d.route.timeout+bits/math.Min(rate, d.route.rate)))
	d.last = d.free + d.route.latency
	return d.last
}

// to finds the direction to a peer, or makes it.
func (p *port) to(peer int) *direction {
	at, found := slices.BinarySearchFunc(p.out, peer, func(d direction, peer int) int { return d.peer - peer })
	if !found {
		p.out = slices.Insert(p.out, at, direction{peer: peer, route: p.net.route(p.id, peer)})
	}
	return &p.out[at]
}

// Clock is the virtual time of one agent of a synchronous run. It is a recursion on the order of
// events alone. Let b_i be the time at which agent i begins iteration t, and g the time of its
// gradients so far in that iteration. Then
//
//	a message of i to j arrives at A_ij ≥ b_i + g, as the link says
//	b_i' = max(b_i + g, max_j A_ji)        over the messages that i receives
//
// because values are posted before the gradient where the algorithm allows it, and the mixing half
// begins when gradient and messages are there. Messages that are awaited in a later iteration delay
// its end alone.
type Clock struct {
	port
	now       float64                    // begin of the iteration plus its gradients so far
	ready     float64                    // arrival of the last received message
	allReduce func(bits float64) float64 // nil: messages go to neighbours
	reducing  float64                    // seconds of the all-reduce that ends this iteration; 0: none
	flight    *Flight                    // messages that are awaited in a later iteration; nil: none
	due       *Flight                    // those that are awaited in this one
	again     *Flight                    // those that a resumed run posts again
	outages   []Outage                   // times at which the agent does nothing
}

// Flight is the messages of an agent that are awaited some iterations after they were posted.
type Flight struct {
	Posted  float64         `json:"posted"`            // time at which they were posted
	Takes   float64         `json:"takes,omitempty"`   // seconds of their all-reduce
	Arrives map[int]float64 `json:"arrives,omitempty"` // times of arrival by peer, without an all-reduce
}

// ClockState is a Clock at the head of an iteration, in seconds, as checkpoints hold it.
type ClockState struct {
	At     float64         `json:"at"`
	Uplink float64         `json:"uplink,omitempty"` // time from which the uplink is free
	Links  map[int]float64 `json:"links,omitempty"`  // time from which the link to each neighbour is free
	Flight *Flight         `json:"flight,omitempty"` // messages on their way
}

// NewClock makes the clock of an agent at time 0. If allReduce is not nil, each iteration with
// messages ends with an all-reduce of vectors as long as a message, whose seconds it returns, and
// messages take no time of their own.
func NewClock(l *Links, seed uint64, agent int, allReduce func(bits float64) float64) *Clock {
	return &Clock{port: port{id: agent, net: l, seed: seed}, allReduce: allReduce}
}

// Gradient adds the time of the agent's k-th gradient.
func (c *Clock) Gradient(k int) { c.now += c.net.compute(c.seed, c.id, k) }

// Post returns the time at which a message of iteration t arrives at the peer. With an all-reduce
// it returns the time at which the sender is ready for it.
func (c *Clock) Post(t, peer int, bits float64) float64 {
	if c.again != nil {
		if at, ok := c.again.Arrives[peer]; ok {
			return at
		}
		return c.again.Posted
	}
	if c.allReduce != nil {
		c.reducing = c.allReduce(bits)
		return c.now
	}
	return c.send(c.now, t, peer, bits)
}

// Receive records a message that arrives at the given time.
func (c *Clock) Receive(arrives float64) { c.ready = math.Max(c.ready, arrives) }

// Await waits until everything that was received has arrived.
func (c *Clock) Await() {
	if c.due != nil {
		c.ready = math.Max(c.ready, c.due.Posted) + c.due.Takes
		c.due = nil
	}
	c.now = math.Max(c.now, c.ready)
}

// Depart says that the messages posted in this iteration are awaited in a later one, in which Due
// is called.
func (c *Clock) Depart() {
	if c.again != nil {
		c.flight, c.again = c.again, nil
		return
	}
	c.flight = &Flight{Posted: c.now, Takes: c.reducing}
	if c.reducing = 0; c.allReduce == nil {
		c.flight.Arrives = map[int]float64{}
		for _, d := range c.out {
			c.flight.Arrives[d.peer] = d.last
		}
	}
}

// Due says that the messages that departed are awaited in this iteration.
func (c *Clock) Due() { c.due, c.flight = c.flight, nil }

// End ends the iteration and returns the time.
func (c *Clock) End() float64 {
	c.now, c.ready = math.Max(c.now, c.ready), 0
	c.now, c.reducing = c.resumes(c.now+c.reducing), 0
	return c.now
}

// State copies the clock for a checkpoint.
func (c *Clock) State() ClockState {
	out := ClockState{At: c.now, Uplink: c.uplink, Flight: c.flight}
	for _, d := range c.out {
		if d.free > c.now { // a link that is free already delays nothing
			if out.Links == nil {
				out.Links = map[int]float64{}
			}
			out.Links[d.peer] = d.free
		}
	}
	return out
}

// Restore sets the clock to a state of the same links and agent.
func (c *Clock) Restore(k ClockState) {
	c.now, c.uplink, c.again = k.At, k.Uplink, k.Flight
	for peer, free := range k.Links {
		c.to(peer).free = free
	}
}

// NoClock is the clock of a run without simulated links: its time stands still.
type NoClock struct{}

// Gradient takes no time.
func (NoClock) Gradient(int) {}

// Post returns time 0, as when a message takes no time.
func (NoClock) Post(int, int, float64) float64 { return 0 }

// Receive does nothing.
func (NoClock) Receive(float64) {}

// Await does not wait.
func (NoClock) Await() {}

// Depart does nothing.
func (NoClock) Depart() {}

// Due does nothing.
func (NoClock) Due() {}

// End returns time 0.
func (NoClock) End() float64 { return 0 }

// State is empty.
func (NoClock) State() (s ClockState) { return s }

// Restore does nothing.
func (NoClock) Restore(ClockState) {}
