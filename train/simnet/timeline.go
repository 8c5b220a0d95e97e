package simnet

import (
	"math"

	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// Timeline plays the events of an asynchronous run in virtual time: gradients that end, and edges
// that fire. No event and no time depends on a vector, so the whole timeline is a pure function of
// the seed. The agents execute its operations in parallel; a resumed run replays it without them,
// from the start to its checkpoint.
//
// A gradient of agent i takes a time of [ComputeTimes]. All edges fire at the same rate, so
// together they are one Poisson process of which each event falls on any edge with equal
// probability.
//
// The exported fields are for reading.
type Timeline struct {
	Now    float64 // virtual time of the last event
	Event  int     // number of the last event
	Latest int     // the largest logical time of an agent
	Clocks []algo.LogicalClock

	algo     Protocol
	edges    []dist.Edge
	rate     float64 // rate of all edges together
	times    ComputeTimes
	inFlight *inFlight

	queue    eventQueue
	clock    rng.Stream
	nextEdge float64 // time at which the next edge fires
}

// Protocol is the effect of events on logical clocks, a part of [algo.Protocol].
type Protocol interface {
	EdgeEvent(i, j *algo.LogicalClock) algo.EdgeOutcome
	Finish(i *algo.LogicalClock, gradient bool) algo.Step
}

// TimelineOptions are the settings of a [Timeline].
type TimelineOptions struct {
	Algo   Protocol
	Agents int
	Edges  []dist.Edge
	Calls  float64 // mean number of exchanges that an agent is called to in a unit of time
	Times  ComputeTimes
	Seed   uint64
	Links  *Links  // nil: an exchange takes no time, and the unit of time is a gradient of mean 1
	Bits   float64 // bits of an exchange in each direction, for Links
}

// Op is the operation of an agent at one event.
type Op struct {
	Event int
	Kind  OpKind
	Peer  int       // Meet, Decline: the other end of the edge
	T     int       // Meet: the common logical time
	Lag   int       // Meet: logical time that the agent catches up with before the exchange
	Step  algo.Step // Move
}

// OpKind is the kind of an [Op].
type OpKind int

const (
	Decline OpKind = iota // an exchange that does not happen: one of the two mailboxes is full
	Meet                  // an exchange
	Move                  // a step, with a gradient or without
)

// NewTimeline makes a timeline at time 0.
func NewTimeline(o TimelineOptions) *Timeline {
	l := &Timeline{algo: o.Algo, edges: o.Edges, times: o.Times, Clocks: make([]algo.LogicalClock, o.Agents),
		clock: rng.New(o.Seed, "async-edges"), rate: o.Calls * float64(o.Agents) / 2}
	if o.Links != nil {
		l.rate /= o.Links.unit
	}
	l.inFlight = newInFlight(o.Links, o.Agents, o.Seed, o.Bits)
	l.queue = newEventQueue(o.Agents)
	for i := range o.Agents {
		l.queue.streams[i] = rng.New(o.Seed, "async", uint64(i))
		l.start(i, l.Now)
	}
	l.nextEdge = l.gap()
	return l
}

// gap draws the time until the next edge fires.
func (l *Timeline) gap() float64 {
	if l.rate == 0 || len(l.edges) == 0 {
		return math.Inf(1)
	}
	return l.clock.Exp() / l.rate
}

// start begins a gradient of agent i.
func (l *Timeline) start(i int, at float64) {
	l.queue.set(i, at+float64(l.times.Mean[i]*l.times.Distribution(&l.queue.streams[i])))
}

// Advance plays the next event and calls tell with the operations of the agents. Both ends of an
// exchange are told one after the other.
func (l *Timeline) Advance(tell func(agent int, o Op)) {
	l.Event++
	if i := l.queue.first(); l.queue.at[i] <= l.nextEdge {
		l.Now = l.queue.at[i]
		l.move(i, true, tell)
		l.start(i, l.Now)
		return
	}
	l.Now = l.nextEdge
	l.nextEdge += l.gap()
	e := l.edges[l.clock.IntN(len(l.edges))]
	m := algo.EdgeOutcome{Declined: l.inFlight.busy(e, l.Now)}
	if !m.Declined {
		m = l.algo.EdgeEvent(&l.Clocks[e.I], &l.Clocks[e.J])
	}
	if m.Declined {
		tell(e.I, Op{Event: l.Event, Kind: Decline, Peer: e.J})
		tell(e.J, Op{Event: l.Event, Kind: Decline, Peer: e.I})
		return
	}
	lag := [2]int{}
	lag[m.Behind] = m.Lag
	tell(e.I, Op{Event: l.Event, Kind: Meet, Peer: e.J, T: m.T, Lag: lag[0]})
	tell(e.J, Op{Event: l.Event, Kind: Meet, Peer: e.I, T: m.T, Lag: lag[1]})
	l.inFlight.send(e, l.Now)
	behind := [2]int{e.I, e.J}[m.Behind]
	for _, i := range [2]int{e.I, e.J} {
		switch arrival := l.inFlight.arrival(i, l.Now); {
		case m.Lag > 0 && i == behind: // its gradient is canceled: it has not been computed yet
			l.move(i, false, tell)
			l.start(i, arrival)
		case arrival > l.queue.at[i]: // its step waits for the values
			l.queue.set(i, arrival)
		}
	}
}

func (l *Timeline) move(i int, gradient bool, tell func(agent int, o Op)) {
	st := l.algo.Finish(&l.Clocks[i], gradient)
	tell(i, Op{Event: l.Event, Kind: Move, Step: st})
	l.Latest = max(l.Latest, l.Clocks[i].T)
}

// Drain empties the mailboxes at the end of the run. It takes no time.
func (l *Timeline) Drain(tell func(agent int, o Op)) {
	l.Event++
	for i := range l.Clocks {
		if l.Clocks[i].Full {
			l.move(i, false, tell)
		}
	}
}

// Skip plays, without telling anyone, to the moment at which an agent first reaches logical time m.
// last is the end of the run.
func (l *Timeline) Skip(m, last int) {
	ignore := func(int, Op) {}
	for l.Latest < m {
		l.Advance(ignore)
	}
	if m == last {
		l.Drain(ignore)
	}
}
