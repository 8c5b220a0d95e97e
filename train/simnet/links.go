package simnet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"fspda/internal/rng"
)

// Links is a simulated network between n agents, and the speed of the agents. Each pair of agents
// has a link of its own, equally fast in both directions; links do not share bandwidth:
//
//	a message leaves when it is posted, after earlier messages on the same link and direction
//	it occupies the link for bits/bandwidth, and arrives one latency later
//	a copy is lost with probability loss; the sender waits for timeout after the end of the copy
//	and sends the whole message again
//
// A loss therefore costs time but never the exchange. If an agent has an uplink, all its messages
// pass the uplink one after the other and stream from there into their links. Repeated copies
// travel at the slower of both rates and do not occupy the uplink. Bits are counted in the
// shared-seed accounting: these are the bits that a network would carry.
type Links struct {
	text []byte
	n    int

	base    linkSpec
	zone    []int // zone of each agent; -1: none
	inside  []linkSpec
	between map[[2]int]linkSpec // links by zones, the smaller first
	at      []linkSpec          // links by agent
	pairs   map[[2]int]linkSpec // links by agents, the smaller first

	uplink   []float64 // bit/s by agent; +Inf: no uplink
	gradient ComputeTimes
	unit     float64 // seconds of a gradient of an agent without an entry of its own
	outages  []Outage
}

// route is one direction of a link.
type route struct {
	latency, timeout float64 // seconds
	rate             float64 // bit/s
	loss             float64
}

func (l *Links) Source() []byte { return l.text }

// ComputeTimes returns the times of the agents' gradients, in seconds.
func (l *Links) ComputeTimes() ComputeTimes { return l.gradient }

// Unit returns the seconds of a gradient of an agent for which the file has no entry of its own.
func (l *Links) Unit() float64 { return l.unit }

// route returns the link between two agents. It is the same in both directions.
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

// compute draws the seconds of the k-th gradient of agent i.
func (l *Links) compute(seed uint64, i, k int) float64 {
	s := rng.New(seed, "links-gradient", uint64(i), uint64(k))
	return l.gradient.Mean[i] * l.gradient.Distribution(&s)
}

// losses draws how many copies of a message are lost before one arrives. The number is geometric.
// The messages of an iteration from one agent to another are counted from 0; each takes the next
// number of the same stream.
func (n route) losses(seed uint64, t, from, to, message int) float64 {
	if n.loss == 0 {
		return 0
	}
	s := rng.New(seed, "links-loss", uint64(t), uint64(from), uint64(to))
	s.Skip(uint64(message))
	return math.Floor(math.Log(1-s.Float64()) / math.Log(n.loss))
}

// AllReduce returns the seconds of a ring all-reduce of d values of the given width in bits, in the
// order of the agents' numbers: 2(n-1) steps, in each of which every agent sends a chunk of
// ceil(d/n) values to the next one, and which end when the slowest link of the ring is done. Losses
// cost their mean.
func (l *Links) AllReduce(d, width int) float64 {
	if l.n == 1 {
		return 0
	}
	bits := float64(width) * float64((d+l.n-1)/l.n)
	slowest := 0.0
	for i := range l.n {
		n := l.route(i, (i+1)%l.n)
		tx := bits / math.Min(n.rate, l.uplink[i])
		again := float64(n.loss / (1 - n.loss) * (n.timeout + tx))
		slowest = math.Max(slowest, tx+again+n.latency)
	}
	return float64(2*(l.n-1)) * slowest
}

// Digest identifies the links in checkpoints. It is "" if l is nil.
func (l *Links) Digest() string {
	if l == nil {
		return ""
	}
	sum := sha256.Sum256(l.text)
	return hex.EncodeToString(sum[:16])
}

// String describes the default link and the compute time in one line.
func (l *Links) String() string {
	n := l.base.route()
	return fmt.Sprintf("%g ms, %s and %g%% loss where nothing else is said; a gradient takes %g ms",
		1e3*n.latency, rateName(n.rate), 100*n.loss, 1e3*l.unit)
}

func rateName(rate float64) string {
	if math.IsInf(rate, 1) {
		return "no limit of bandwidth"
	}
	return fmt.Sprintf("%g Mbit/s", rate/1e6)
}
