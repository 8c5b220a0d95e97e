package train

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fspda/dist"
	"fspda/internal/rng"
	"fspda/train/algo"
)

// timeline plays the events of an asynchronous run in virtual time: gradients that end, and edges
// whose clocks ring. What happens, and when, depends on no vector, so the whole of it is a pure
// function of the seed: the agents only do what it says, in parallel, and a run that is resumed
// plays it again from the start, without them, to where it stood.
//
// A gradient of agent i takes slow[i] times a random time of mean 1. All edges ring at the same
// rate, so together they are one clock, and each time any of them is as likely. One unit of time is
// a mean gradient of an agent of slowness 1.
type timeline struct {
	algo  algo.Async
	edges []dist.Edge
	rate  float64 // of all clocks together
	law   func(s *rng.Stream) float64
	slow  []float64
	mail  *mail // under simulated links; nil: an exchange takes no time

	desks  []algo.LogicalClock
	queue  finishes
	clock  rng.Stream
	ring   float64 // when the next edge rings
	now    float64
	event  int // number of the last one
	latest int // the largest logical time of an agent
}

// op is what an agent does at one event.
type op struct {
	event int
	kind  opKind

	peer    int // meet, decline: the other end
	t, lag  int // meet: the common time, and what is to be caught up before
	step    algo.Step
	m       int // leave: the iteration it counts as
	eval    bool
	save    bool
	virtual float64 // leave: the time of now
}

type opKind int

const (
	opDecline opKind = iota // the other mailbox or one's own was full
	opMeet                  // exchange
	opMove                  // a step, with a gradient or without
	opLeave                 // a copy of the state for the collector
)

func newTimeline(s *Setup, a algo.Async) *timeline {
	n := s.Graph.N
	l := &timeline{algo: a, edges: s.Graph.Edges, law: s.computeTime, slow: s.Slowness, desks: make([]algo.LogicalClock, n),
		clock: rng.New(s.Config.Seed, "async-edges"), rate: s.Config.Contacts * float64(n) / 2}
	if s.Links != nil {
		l.rate /= s.Links.unit
		l.mail = newMail(s)
	}
	l.queue = newFinishes(n)
	for i := range n {
		l.queue.streams[i] = rng.New(s.Config.Seed, "async", uint64(i))
		l.start(i)
	}
	l.ring = l.gap()
	return l
}

// gap is the time from one ring to the next.
func (l *timeline) gap() float64 {
	if l.rate == 0 || len(l.edges) == 0 {
		return math.Inf(1)
	}
	return l.clock.Exp() / l.rate
}

// start begins a gradient of agent i.
func (l *timeline) start(i int) {
	l.startAt(i, l.now)
}

func (l *timeline) startAt(i int, at float64) {
	l.queue.set(i, at+l.slow[i]*l.law(&l.queue.streams[i]))
}

// advance plays the next event and gives what the agents have to do. Both ends of a meeting are
// told one after the other.
func (l *timeline) advance(tell func(i int, o op)) {
	l.event++
	if i := l.queue.first(); l.queue.at[i] <= l.ring {
		l.now = l.queue.at[i]
		l.move(i, true, tell)
		l.start(i)
		return
	}
	l.now = l.ring
	l.ring += l.gap()
	e := l.edges[l.clock.IntN(len(l.edges))]
	m := algo.EdgeOutcome{Declined: l.mail.awaited(e, l.now)}
	if !m.Declined {
		m = l.algo.EdgeEvent(&l.desks[e.I], &l.desks[e.J])
	}
	if m.Declined {
		tell(e.I, op{event: l.event, kind: opDecline, peer: e.J})
		tell(e.J, op{event: l.event, kind: opDecline, peer: e.I})
		return
	}
	lag := [2]int{}
	lag[m.Behind] = m.Lag
	tell(e.I, op{event: l.event, kind: opMeet, peer: e.J, t: m.T, lag: lag[0]})
	tell(e.J, op{event: l.event, kind: opMeet, peer: e.I, t: m.T, lag: lag[1]})
	l.mail.post(e, l.now)
	behind := [2]int{e.I, e.J}[m.Behind]
	for _, i := range [2]int{e.I, e.J} {
		switch there := l.mail.there(i, l.now); {
		case m.Lag > 0 && i == behind: // its gradient is cancelled: nobody has computed it yet
			l.move(i, false, tell)
			l.startAt(i, there)
		case there > l.queue.at[i]: // its step waits for the values
			l.queue.set(i, there)
		}
	}
}

func (l *timeline) move(i int, gradient bool, tell func(i int, o op)) {
	st := l.algo.Finish(&l.desks[i], gradient)
	tell(i, op{event: l.event, kind: opMove, step: st})
	l.latest = max(l.latest, l.desks[i].T)
}

// drain empties the mailboxes at the end of the run. It is no event of its own for the time.
func (l *timeline) drain(tell func(i int, o op)) {
	l.event++
	for i := range l.desks {
		if l.desks[i].Full {
			l.move(i, false, tell)
		}
	}
}

// skip plays up to the moment in which an agent first reaches logical time m, telling nobody. last
// is the end of the run.
func (l *timeline) skip(m, last int) {
	nobody := func(int, op) {}
	for l.latest < m {
		l.advance(nobody)
	}
	if m == last {
		l.drain(nobody)
	}
}

// finishes orders the agents by the end of their running gradients, the smaller number first where
// two end at once: a heap that knows where each agent is.
type finishes struct {
	at      []float64
	streams []rng.Stream
	heap    []int // agents
	where   []int // their places in heap
}

func newFinishes(n int) finishes {
	f := finishes{at: make([]float64, n), streams: make([]rng.Stream, n), heap: make([]int, n), where: make([]int, n)}
	for i := range n {
		f.heap[i], f.where[i] = i, i
	}
	return f
}

func (f *finishes) first() int { return f.heap[0] }

func (f *finishes) before(a, b int) bool {
	return f.at[a] < f.at[b] || f.at[a] == f.at[b] && a < b
}

// set gives agent i a new end.
func (f *finishes) set(i int, at float64) {
	f.at[i] = at
	k := f.where[i]
	for k > 0 && f.before(f.heap[k], f.heap[(k-1)/2]) {
		f.swap(k, (k-1)/2)
		k = (k - 1) / 2
	}
	for {
		least := k
		for c := 2*k + 1; c <= 2*k+2 && c < len(f.heap); c++ {
			if f.before(f.heap[c], f.heap[least]) {
				least = c
			}
		}
		if least == k {
			return
		}
		f.swap(k, least)
		k = least
	}
}

func (f *finishes) swap(a, b int) {
	f.heap[a], f.heap[b] = f.heap[b], f.heap[a]
	f.where[f.heap[a]], f.where[f.heap[b]] = a, b
}

// parseDistribution reads a law of compute times. All have mean 1.
func parseDistribution(spec string) (func(s *rng.Stream) float64, error) {
	name, arg, err := nameAndNumber(spec)
	switch {
	case err != nil:
	case name == "lognormal" && arg > 0:
		return func(s *rng.Stream) float64 { return math.Exp(float64(arg*s.Norm()) - arg*arg/2) }, nil
	case !math.IsNaN(arg):
	case name == "constant":
		return func(*rng.Stream) float64 { return 1 }, nil
	case name == "exp":
		return func(s *rng.Stream) float64 { return s.Exp() }, nil
	case name == "uniform":
		return func(s *rng.Stream) float64 { return 0.5 + s.Float64() }, nil
	}
	return nil, fmt.Errorf("expected constant, exp, uniform (0.5 to 1.5) or lognormal(sigma) with sigma above 0")
}

// parseSlowness reads what each agent's compute times are multiplied by.
func parseSlowness(spec string, n int, seed uint64) ([]float64, error) {
	name, most, err := nameAndNumber(spec)
	slow := slices.Repeat([]float64{1}, n)
	if err == nil && name == "equal" && math.IsNaN(most) {
		return slow, nil
	}
	if err != nil || !(most >= 1) || !slices.Contains([]string{"linear", "straggler", "random"}, name) {
		return nil, fmt.Errorf("expected equal, or with a number from 1 on: linear(f) (1 to f, in the order of the agents), straggler(f) (the last one), random(f) (1 to f)")
	}
	s := rng.New(seed, "async-slowness")
	for i := range slow {
		switch name {
		case "linear":
			slow[i] = 1 + (most-1)*float64(i)/float64(max(1, n-1))
		case "random":
			slow[i] = math.Pow(most, s.Float64())
		}
	}
	if name == "straggler" {
		slow[n-1] = most
	}
	return slow, nil
}

// nameAndNumber takes "name" or "name(number)" apart; the number of the first is NaN.
func nameAndNumber(spec string) (name string, v float64, err error) {
	name, arg, found := strings.Cut(strings.TrimSpace(spec), "(")
	if !found {
		return name, math.NaN(), nil
	}
	arg, closed := strings.CutSuffix(arg, ")")
	v, err = strconv.ParseFloat(strings.TrimSpace(arg), 64)
	if err != nil || !closed || math.IsNaN(v) || math.IsInf(v, 0) {
		return "", 0, fmt.Errorf("%q is not of the form name(number)", spec)
	}
	return name, v, nil
}
