package process

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"fspda/dist"
)

// Processes that are told to stop, all about the same time, stop at one iteration, so that their
// checkpoints fit together and nothing has to be sent again when they resume:
//
//   - Each holds its agent at the head of the first iteration that it has not entered. The
//     coordinator tells the others that it holds (NoteHold), and those that hold, too, answer with
//     their iterations (NoteStopping).
//   - When the coordinator knows all these iterations, it announces the last of them (NoteStop). All
//     agents go on to it, leave a checkpoint, and wait for the end of the run.
//
// A process that is told to stop alone, or without the coordinator, stops where it holds. Notes are
// read again after a restart. Therefore the coordinator draws a number for each stop, and a process
// ignores a NoteHold that came long before it was told to stop, and a NoteStop that it has not
// answered for.
const (
	holdTimeout  = 3 * time.Second  // time for telling the others to stop, too, and their answers one after the other
	aheadTimeout = 10 * time.Second // time for the coordinator to come to where the others are
	evalTimeout  = time.Minute      // time of an evaluation, behind which the notes of the others wait
	maxStopAhead = 1000             // iterations that an agent goes on for a common stop
)

// stopState is the knowledge of a process about a stop.
type stopState struct {
	mu        sync.Mutex
	number    int64         // number of the coordinator's latest stop; 0: none
	since     time.Time     // the time at which this process heard of it
	positions map[int]int   // iteration at which each agent holds, at the coordinator
	at        int           // the announced iteration; -1: each for itself
	announced bool          // the iteration is known
	changed   chan struct{} // receives a value after a change; capacity 1

	decided  chan struct{} // closed by Decide
	together atomic.Bool
}

func newStopState() *stopState {
	return &stopState{positions: map[int]int{}, changed: make(chan struct{}, 1), decided: make(chan struct{})}
}

// hear handles a note about a stop.
func (s *stopState) hear(note Note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case note.Kind == NoteHold:
		s.number, s.since = note.Stop, time.Now()
	case note.Stop != s.number:
	case note.Kind == NoteStopping:
		s.positions[note.Agent] = note.T
	case note.Kind == NoteStop:
		s.announced, s.at = true, note.T
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// AgreeOnStop agrees with the other processes on the iteration at which to stop. hold lets the local
// agent hold at the head of an iteration, and returns it. If there is no agreement, the agent stops
// there, and together is false.
func (n *Node) AgreeOnStop(ctx context.Context, hold func() int) (t int, together bool) {
	ctx, cancel := context.WithTimeout(ctx, evalTimeout+holdTimeout)
	defer cancel()
	var position int
	if n.Coordinates() {
		position, t = n.announceStop(ctx, hold)
	} else {
		position = hold()
		t = n.awaitAnnouncement(ctx, position)
	}
	if t < 0 {
		return position, false
	}
	return t, true
}

// announceStop is AgreeOnStop of the coordinator. It returns -1 if there is no agreement.
func (n *Node) announceStop(ctx context.Context, hold func() int) (position, t int) {
	number := 1 + rand.Int64N(1<<53) // exact in any JSON
	told := Note{Kind: NoteHold, T: n.opt.Network.Position(n.opt.Rank).T, Stop: number}
	n.stop.hear(told)
	failed := n.broadcast(ctx, told, n.opt.Rank) != nil
	n.catchUp(ctx)
	if position = hold(); failed {
		return position, -1
	}
	t = n.collectPositions(ctx, position)
	if n.broadcast(ctx, Note{Kind: NoteStop, T: t, Stop: number}, n.opt.Rank) != nil {
		return position, -1
	}
	return position, t
}

// catchUp waits until the local agent is where the one is that is the last of the others, if it is
// behind, as after a restart: the answers of the others come behind evaluations that wait for it. An
// agent of which nothing was heard is not awaited for long.
func (n *Node) catchUp(ctx context.Context) {
	for began := time.Now(); time.Since(began) < aheadTimeout; {
		last, all := math.MaxInt, true
		for i := range n.opt.Agents {
			if at := n.opt.Network.Position(i); i != n.opt.Rank && at.Phase == dist.Idle && at.T == 0 {
				all = false
			} else if i != n.opt.Rank {
				last = min(last, at.T)
			}
		}
		ahead := n.opt.Network.Position(n.opt.Rank).T >= last
		if ahead && (all || time.Since(began) > holdTimeout) || !n.awaitStop(ctx) {
			return
		}
	}
}

// awaitAnnouncement is AgreeOnStop of the others. It returns -1 if there is no agreement.
func (n *Node) awaitAnnouncement(ctx context.Context, position int) int {
	answered := int64(0)
	for began := time.Now(); ; {
		s := n.stop
		s.mu.Lock()
		number, at := s.number, s.at
		if began.Sub(s.since) > holdTimeout {
			number = 0
		}
		announced := s.announced && number == answered && answered != 0
		s.announced = announced
		s.mu.Unlock()
		switch {
		case announced:
			return at
		case number != answered:
			note := Note{Kind: NoteStopping, Agent: n.opt.Rank, T: position, Stop: number}
			if n.opt.Network.Report(ctx, n.opt.Coordinator, position, note.record()) != nil {
				return -1
			}
			answered = number
		}
		if number == 0 && time.Since(began) > holdTimeout || !n.awaitStop(ctx) {
			return -1
		}
	}
}

// collectPositions waits until all agents hold and returns the iteration at which they stop, or -1
// if no further agent has answered for a while.
func (n *Node) collectPositions(ctx context.Context, own int) int {
	for latest, answers := time.Now(), 0; ; {
		others := n.others()
		n.stop.mu.Lock()
		least, most, known := own, own, len(n.stop.positions)
		for _, t := range n.stop.positions {
			least, most = min(least, t), max(most, t)
		}
		n.stop.mu.Unlock()
		if known > answers {
			latest, answers = time.Now(), known
		}
		switch {
		case known >= others && most-least <= maxStopAhead:
			return most
		case known >= others:
			return -1
		case time.Since(latest) > holdTimeout && (n.backlog.Load() == 0 || n.anySilent()) || !n.awaitStop(ctx):
			return -1
		}
	}
}

// anySilent reports whether an agent was not heard of for a while. The reports of the others may
// wait for it.
func (n *Node) anySilent() bool {
	for i := range n.opt.Agents {
		if i != n.opt.Rank && n.needs(i) && n.opt.Network.SilentFor(i) > holdTimeout {
			return true
		}
	}
	return false
}

// awaitStop waits a while for a change of the state. It returns false when ctx or the run ends.
func (n *Node) awaitStop(ctx context.Context) bool {
	select {
	case <-n.stop.changed:
	case <-time.After(100 * time.Millisecond):
	case <-n.ended:
		return false
	case <-ctx.Done():
		return false
	case <-n.life.Done():
		return false
	}
	return true
}
