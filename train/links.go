package train

import (
	"fmt"
	"math"
	"os"
	"slices"

	"fspda/internal/rng"
)

// Links is a simulated network between n agents, and how fast they compute. It says what a message
// or a gradient takes in virtual time and changes nothing else. Between any two agents lies a link
// of its own, as fast in both directions, which do not disturb each other:
//
//	a message leaves when it is posted, after those that were posted before it on the same link and direction
//	it occupies the link for bits/bandwidth, and arrives a latency later
//	a copy is lost with probability loss; the sender waits for timeout after its end and sends the whole message again
//
// so that a loss costs time and never the exchange. Where an agent has an uplink, all its messages
// pass it one after the other, and stream from there into their links; copies that are sent again
// go at the slower of both rates, and do not hold up the uplink. Bits are those of the shared-seed
// accounting, which is what a network would carry.
type Links struct {
	text []byte
	n    int

	base    linkSpec
	zone    []int // of an agent; -1: none
	inside  []linkSpec
	between map[[2]int]linkSpec // of zones, the smaller first
	at      []linkSpec          // by agent
	pairs   map[[2]int]linkSpec // of agents, the smaller first

	uplink   []float64 // bit/s by agent; infinite where there is none
	gradient []float64 // mean seconds of a gradient, by agent
	unit     float64   // seconds of a gradient of an agent of whom nothing is said
	law      func(s *rng.Stream) float64
}

// route is one direction of a link.
type route struct {
	latency, timeout float64 // seconds
	rate             float64 // bit/s
	loss             float64
}

// network reads the file that links names.
func (s *Setup) network() error {
	c := &s.Config
	if c.Links == "" {
		return nil
	}
	text, err := os.ReadFile(c.Links)
	if err != nil {
		return &ConfigError{Key: "links", Got: c.Links, Err: err, Want: "name a file such as docs/links.md shows"}
	}
	if s.Links, err = ParseLinks(text, c.Agents, c.Seed); err != nil {
		return &ConfigError{Key: "links", Got: c.Links, Err: err}
	}
	return nil
}

// HasClocks tells whether agents have clocks of their own. An asynchronous run has its timeline.
func (s *Setup) HasClocks() bool { return s.Links != nil && s.method.Edges != Clocks }

// route is the link between two agents, the same both ways.
func (l *Links) route(i, j int) route {
	spec := l.base
	if zi, zj := l.zone[i], l.zone[j]; zi >= 0 && zi == zj {
		spec = spec.under(l.inside[zi])
	} else if zi >= 0 && zj >= 0 {
		spec = spec.under(l.between[[2]int{min(zi, zj), max(zi, zj)}])
	}
	spec = spec.under(l.at[i].worse(l.at[j])).under(l.pairs[[2]int{min(i, j), max(i, j)}])
	return spec.route()
}

// compute draws the time of the k-th gradient of agent i.
func (l *Links) compute(seed uint64, i, k int) float64 {
	s := rng.New(seed, "links-gradient", uint64(i), uint64(k))
	return l.gradient[i] * l.law(&s)
}

// losses is how many copies of a message are lost before one arrives: geometric.
func (n route) losses(seed uint64, t, from, to int) float64 {
	if n.loss == 0 {
		return 0
	}
	s := rng.New(seed, "links-loss", uint64(t), uint64(from), uint64(to))
	return math.Floor(math.Log(1-s.Float64()) / math.Log(n.loss))
}

// allReduce is the time of a ring all-reduce of d values of so many bits, in the order of the
// agents' numbers: 2(n-1) steps in which everybody sends a chunk of ceil(d/n) values to the next
// one, and which all wait for the slowest link of the ring. A loss costs what it costs on average.
func (l *Links) allReduce(d, width int) float64 {
	if l.n == 1 {
		return 0
	}
	bits := float64(width) * float64((d+l.n-1)/l.n)
	slowest := 0.0
	for i := range l.n {
		n := l.route(i, (i+1)%l.n)
		tx := bits / math.Min(n.rate, l.uplink[i])
		again := n.loss / (1 - n.loss) * (n.timeout + tx)
		slowest = math.Max(slowest, tx+again+n.latency)
	}
	return float64(2*(l.n-1)) * slowest
}

// port is where an agent's messages enter the network.
type port struct {
	id     int
	net    *Links
	seed   uint64
	uplink float64 // when it is free
	out    []way   // by peer, ascending
}

// way is what an agent knows of its direction of a link.
type way struct {
	peer  int
	route route
	free  float64 // when it is
}

// send posts a message of iteration t at time now, and returns when it arrives.
func (p *port) send(now float64, t, peer int, bits float64) float64 {
	w := p.way(peer)
	rate := p.net.uplink[p.id]
	first := math.Max(now, p.uplink)
	p.uplink = first + bits/rate
	end := math.Max(math.Max(first, w.free)+bits/w.route.rate, p.uplink)
	lost := w.route.losses(p.seed, t, p.id, peer)
	w.free = end + lost*(w.route.timeout+bits/math.Min(rate, w.route.rate))
	return w.free + w.route.latency
}

// way finds the direction to a peer, or makes it.
func (p *port) way(peer int) *way {
	at, found := slices.BinarySearchFunc(p.out, peer, func(w way, peer int) int { return w.peer - peer })
	if !found {
		p.out = slices.Insert(p.out, at, way{peer: peer, route: p.net.route(p.id, peer)})
	}
	return &p.out[at]
}

// Clock is an agent's virtual time at the head of an iteration, with what is still on its links, in
// seconds.
type Clock struct {
	At     float64         `json:"at"`
	Uplink float64         `json:"uplink,omitempty"` // when it is free
	Links  map[int]float64 `json:"links,omitempty"`  // when the direction to a neighbour is free
}

// clock is the virtual time of one agent. It is a recursion on the order of events alone: with b_i
// the time at which agent i begins iteration t, and g its gradients so far in it,
//
//	what i posts then arrives at A_ij ≥ b_i + g, as the link says
//	b_i' = max(b_i + g, max_j A_ji)        over the messages that i hears
//
// since values are posted before the gradient where the algorithm can, and the mixing half begins
// when gradient and messages are there. Times travel with the messages, and so no agent looks at
// another's.
type clock struct {
	port
	now   float64 // begin of the iteration, and its gradients so far
	ready float64 // when all that was heard was there
	whole float64 // of an all-reduce: what it takes; else 0
}

func newClock(s *Setup, id int) *clock {
	c := &clock{port: port{id: id, net: s.Links, seed: s.Config.Seed}}
	if s.Collective {
		c.whole = s.Links.allReduce(s.Dim, s.WireFormat().Bits())
	}
	return c
}

// gradient passes the time of the agent's k-th gradient.
func (c *clock) gradient(k int) {
	if c != nil {
		c.now += c.net.compute(c.seed, c.id, k)
	}
}

// post returns when a message arrives. Those of an all-reduce carry when their sender is ready for
// it.
func (c *clock) post(t, peer int, bits float64) float64 {
	if c.whole > 0 {
		return c.now
	}
	return c.send(c.now, t, peer, bits)
}

// hear waits for a message.
func (c *clock) hear(arrives float64) {
	if c != nil {
		c.ready = math.Max(c.ready, arrives)
	}
}

// end ends the iteration and returns its time.
func (c *clock) end() float64 {
	if c == nil {
		return 0
	}
	c.now, c.ready = math.Max(c.now, c.ready)+c.whole, 0
	return c.now
}

// save copies the clock for a checkpoint.
func (c *clock) save() Clock {
	if c == nil {
		return Clock{}
	}
	out := Clock{At: c.now, Uplink: c.uplink}
	for _, w := range c.out {
		if w.free > c.now { // what is free already plays no part any more
			if out.Links == nil {
				out.Links = map[int]float64{}
			}
			out.Links[w.peer] = w.free
		}
	}
	return out
}

// restore puts a clock back to where it was saved.
func (c *clock) restore(k Clock) {
	c.now, c.uplink = k.At, k.Uplink
	for peer, free := range k.Links {
		c.way(peer).free = free
	}
}

// digest identifies the network. It is "" where there is none.
func (l *Links) digest() string {
	if l == nil {
		return ""
	}
	return sha256Hex(l.text)
}

// String says what the network is, in a line.
func (l *Links) String() string {
	n := l.base.route()
	return fmt.Sprintf("%g ms, %s and %g%% loss where nothing else is said; a gradient takes %g ms", 1e3*n.latency,
		rateName(n.rate), 100*n.loss, 1e3*l.unit)
}

func rateName(rate float64) string {
	if math.IsInf(rate, 1) {
		return "no limit of bandwidth"
	}
	return fmt.Sprintf("%g Mbit/s", rate/1e6)
}
