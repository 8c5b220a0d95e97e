package process

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"fspda/dist"
)

// Positions knows how far agents have come. A [Network] is one.
type Positions interface {
	// Position is how far an agent has come.
	Position(agent int) dist.Advance
	// SilentFor is the time since the process of another agent was heard.
	SilentFor(agent int) time.Duration
}

// Stall is an agent whose process is heard and that does not advance.
type Stall struct {
	Agent int
	dist.Advance
}

// Works reports whether the agent computes, and does not wait for another one.
func (s Stall) Works() bool { return s.Phase == dist.Working }

// String says where the agent is, as an end of a sentence.
func (s Stall) String() string {
	if s.Phase == dist.Waiting {
		return fmt.Sprintf("agent %d has waited for agent %d in iteration %d for %v", s.Agent, s.Awaits, s.T,
			s.Since.Round(time.Second))
	}
	return fmt.Sprintf("agent %d has not advanced in iteration %d for %v", s.Agent, s.T, s.Since.Round(time.Second))
}

const (
	// hangAfter is the time without an advance after which an agent is said to hang.
	hangAfter = 15 * time.Second
	// hangSteps is the number of its usual steps that must fit in this time.
	hangSteps = 8
	// ownGrace is the time for which a process with a hanging agent outlives the timeout, so that the
	// others can name it.
	ownGrace = 10 * time.Second
)

// Hanging returns the agents that have not advanced for at least a time, and for several of their
// usual steps: those that work, or, if none works, those that wait for each other or for one that
// has ended before. A time of 0 stands for 15 seconds. Agents that are not heard are not among
// them: with a short time, one may have been silent for half of it, after which its silence counts.
func Hanging(all Positions, rank, agents int, after time.Duration) (working []Stall) {
	heard := min(SilentAfter, after/2)
	if after == 0 {
		after, heard = hangAfter, SilentAfter
	}
	var waiting []Stall
	blocked := true // All that are not idle have waited for as long.
	for i := range agents {
		s := Stall{i, all.Position(i)}
		late := s.Since >= max(after, hangSteps*s.Pace)
		switch {
		case i != rank && all.SilentFor(i) > heard:
			blocked = false
		case s.Phase == dist.Idle && late:
		case s.Phase == dist.Working && late:
			working = append(working, s)
		case s.Phase == dist.Waiting && late:
			waiting = append(waiting, s)
		default:
			blocked = false
		}
	}
	if len(working) == 0 && blocked {
		return waiting
	}
	return working
}

// SilentAfter is the silence after which the position of an agent is not known any more: more than
// two heartbeats of a link that is not in use.
const SilentAfter = 12 * time.Second

// HangError reports that agents hold up the run for longer than Options.Timeout, while their
// processes live.
type HangError struct {
	Stalls  []Stall
	Timeout time.Duration
}

func (e *HangError) Error() string {
	var list []string
	for _, s := range e.Stalls {
		list = append(list, s.String())
	}
	return fmt.Sprintf("process: %s, longer than --timeout (%v), while its process is heard: look at its log, its "+
		"device and its disk, and start all agents again, which resume from their checkpoints", strings.Join(list,
		"; "), e.Timeout)
}

// Teller tells the other processes how far the local agent is.
type Teller struct {
	Net  Network
	Last int // The end of the run, from which on nothing is awaited of the agent.
	at   atomic.Int64
}

// Enter tells that the agent is at the head of iteration t.
func (o *Teller) Enter(t int) {
	o.at.Store(int64(t))
	o.Advance()
}

// Advance tells that the process has done something for the run.
func (o *Teller) Advance() {
	phase, t := dist.Working, int(o.at.Load())
	if t >= o.Last {
		phase = dist.Idle
	}
	o.Net.Advance(t, phase)
}
