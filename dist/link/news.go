package link

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"fspda/dist"
)

// Agent 0 has links to all others, and tells them in its heartbeats of agents that are silent or do
// not advance. So an agent knows of those to which it has no link. An agent of which agent 0 tells
// nothing is heard and advances.

// hub is the rank of the agent that has links to all others.
const hub = 0

const (
	newsAfter = 8 * time.Second // Agents that are silent, or do not advance, for this time are told of.
	newsLast  = time.Second     // News are used for this time.
	maxNews   = 256             // The largest number of agents that are told of at once.
	newsSize  = 32              // The bytes of the news of an agent.
)

// told is the latest news of an agent.
type told struct {
	at     time.Time // The time of the news; zero: there were none.
	late   bool      // The agent was silent or did not advance.
	silent time.Duration
	dist.Advance
}

// silentFor returns the time for which the agent has been silent, or the time since start if there
// was no news.
func (t *told) silentFor(start time.Time) time.Duration {
	switch {
	case t.at.IsZero():
		return time.Since(start)
	case t.late && t.silent > 0:
		return t.silent + time.Since(t.at)
	}
	return 0
}

// position returns how far the agent has come, as far as the news say.
func (t *told) position() dist.Advance {
	out := t.Advance
	if t.late {
		out.Since += time.Since(t.at)
	}
	return out
}

// news are the encoded news that a node tells, made now and then.
type news struct {
	mu   sync.Mutex
	made time.Time
	text []byte
}

// tells reports whether the node tells others of agents to which they have no links.
func (n *Node) tells() bool { return n.opt.Self == hub && n.opt.Near != nil }

func (n *Node) latestNews() []byte {
	n.news.mu.Lock()
	defer n.news.mu.Unlock()
	if time.Since(n.news.made) < newsLast {
		return n.news.text
	}
	n.news.made, n.news.text = time.Now(), nil
	var working, waiting []byte
	for _, p := range n.others() {
		p.mu.Lock()
		silent, at := time.Since(p.lastHeard), p.seen.of(p.seen.at)
		p.mu.Unlock()
		if silent < newsAfter {
			silent = 0
		}
		switch {
		case silent == 0 && at.Since < newsAfter:
		case silent == 0 && at.Phase == dist.Waiting:
			waiting = appendNews(waiting, p.id, silent, at)
		default:
			working = appendNews(working, p.id, silent, at)
		}
	}
	all := append(working, waiting...) // those that the others wait for come first
	n.news.text = all[:min(len(all), maxNews*newsSize)]
	return n.news.text
}

// appendNews appends the news of an agent: agent, the agent that it awaits, its phase, and
// milliseconds of silence, without an advance and of an advance, each as uint32, and its iteration
// as uint64.
func appendNews(dst []byte, agent int, silent time.Duration, at dist.Advance) []byte {
	le := binary.LittleEndian
	for _, v := range []int{agent, at.Awaits, int(at.Phase)} {
		dst = le.AppendUint32(dst, uint32(v))
	}
	for _, d := range []time.Duration{silent, at.Since, at.Pace} {
		dst = le.AppendUint32(dst, uint32(min(d.Milliseconds(), 1<<32-1)))
	}
	return le.AppendUint64(dst, uint64(at.T))
}

// hear takes the news of agent 0.
func (n *Node) hear(from int, text []byte) error {
	if from != hub || len(text)%newsSize != 0 || len(text) > maxNews*newsSize {
		return &FrameError{Got: fmt.Sprintf("news of %d bytes from agent %d", len(text), from)}
	}
	now, all := time.Now(), make(map[int]told)
	for entry := range slices.Chunk(text, newsSize) {
		le := binary.LittleEndian
		field := func(k int) int { return int(le.Uint32(entry[4*k:])) }
		lasting := func(k int) time.Duration { return time.Duration(field(k)) * time.Millisecond }
		agent, awaits, phase, t := field(0), field(1), field(2), le.Uint64(entry[24:])
		if agent >= n.opt.Agents || awaits >= n.opt.Agents || phase > int(dist.Waiting) || t>>62 != 0 {
			return &FrameError{Got: fmt.Sprintf("news of agent %d, which awaits agent %d in phase %d of iteration %d",
				agent, awaits, phase, t)}
		}
		all[agent] = told{now, true, lasting(3), dist.Advance{Since: lasting(4), Pace: lasting(5),
			Position: dist.Position{T: int(t), Phase: dist.Phase(phase), Awaits: awaits}}}
	}
	for _, p := range n.others() {
		p.mu.Lock()
		latest, late := all[p.id]
		if !late {
			latest = told{at: now, Advance: dist.Advance{Position: dist.Position{T: p.told.T, Phase: dist.Working}}}
		}
		p.told = latest
		p.mu.Unlock()
	}
	return nil
}
