package process

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
)

// SilentError reports that an agent without which the run cannot go on has been silent for longer
// than Options.Timeout.
type SilentError struct {
	Agent   int
	Timeout time.Duration
	Never   bool // The agent was never heard by this process.
}

func (e *SilentError) Error() string {
	if e.Never {
		return fmt.Sprintf("process: nothing was heard of agent %d in the first %v: start it, and see that the "+
			"addresses are right and that this machine may reach them; --timeout waits longer", e.Agent, e.Timeout)
	}
	why := "the run cannot go on without it"
	if e.Agent == Coordinator {
		why = "it evaluates the run and writes its folder"
	}
	return fmt.Sprintf("process: nothing was heard of agent %d for %v, the limit of --timeout, and %s: start it "+
		"again, and then this agent, which resumes from its checkpoint; if the checkpoints of agent %d are lost, "+
		"restore its folder from a copy, or start the whole run again", e.Agent, e.Timeout, why, e.Agent)
}

// OffenceError reports that the messages of an agent have been refused for longer than
// Options.Timeout.
type OffenceError struct {
	Agent   int
	Timeout time.Duration
	Reason  error
}

func (e *OffenceError) Error() string {
	return fmt.Sprintf("process: agent %d sends messages that are refused for %v, the limit of --timeout: %v: start "+
		"it with the same program, configuration and data as the others, from its own checkpoint", e.Agent, e.Timeout,
		e.Reason)
}

func (e *OffenceError) Unwrap() error { return e.Reason }

const (
	warnAfter     = 15 * time.Second // silence after which a warning is given
	watchInterval = time.Second
)

// watch returns a SilentError when an agent that this process needs has been silent for too long,
// and a HangError when one does not advance for too long. It warns earlier.
func (n *Node) watch(ctx context.Context) error {
	interval := watchInterval
	for _, limit := range []time.Duration{n.opt.Timeout, n.opt.FirstTimeout} {
		if limit > 0 {
			interval = min(interval, limit/4)
		}
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	warned, heard := make([]bool, n.opt.Agents), make([]bool, n.opt.Agents)
	hangs := make([]bool, n.opt.Agents) // Agents that were said to hang.
	start := time.Now()
	began, latest := start, start
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if time.Since(latest) > warnAfter { // this process itself was stopped for a while
			began = time.Now()
		}
		latest = time.Now()
		for i := range n.opt.Agents {
			if i == n.opt.Rank {
				continue
			}
			since := n.opt.Network.SilentFor(i)
			heard[i] = heard[i] || since < time.Since(start)
			silent, limit := min(since, time.Since(began)), n.opt.Timeout
			if !heard[i] && n.opt.FirstTimeout > 0 {
				limit = n.opt.FirstTimeout
			}
			if limit > 0 && silent > limit && n.needs(i) {
				return n.blame(&SilentError{i, limit, !heard[i]})
			}
			if lasting, reason := n.opt.Network.Offence(i); reason != nil && limit > 0 && lasting > limit {
				return &OffenceError{i, limit, reason}
			}
			if late := silent > warnAfter; late != warned[i] {
				warned[i] = late
				n.logSilence(i, late, limit)
			}
		}
		n.logHangs(hangs)
		if limit := n.opt.Timeout; limit > 0 && time.Since(began) > limit {
			if stalls := n.hanging(limit); len(stalls) > 0 {
				return &HangError{stalls, limit}
			}
		}
	}
}

// abandon abandons the process if the run has failed, for any reason, and the local agent has not
// advanced for Options.Timeout. The others may have ended because it hangs. ctx ends when the run
// has failed.
func (n *Node) abandon(ctx context.Context) {
	for <-ctx.Done(); n.opt.Timeout > 0; {
		select {
		case <-n.done:
			return
		case <-time.After(ownGrace):
		}
		own := n.opt.Network.Position(n.opt.Rank)
		if own.Phase == dist.Working && own.Since >= max(n.opt.Timeout, ownGrace, hangSteps*own.Pace) {
			n.opt.Abandon(context.Cause(ctx))
			return
		}
	}
}

// blame returns why the run ends here: because the local agent hangs, if it does, or for the reason
// err. The others may have ended because it hangs.
func (n *Node) blame(err error) error {
	own := Stall{n.opt.Rank, n.opt.Network.Position(n.opt.Rank)}
	if own.Phase == dist.Working && own.Since > n.opt.Timeout {
		return &HangError{[]Stall{own}, n.opt.Timeout}
	}
	return err
}

// hanging returns the agents that this process has to wait for and that have not advanced for a
// time.
func (n *Node) hanging(after time.Duration) []Stall {
	return slices.DeleteFunc(Hanging(n.opt.Network, n.opt.Rank, n.opt.Agents, after), func(s Stall) bool {
		if s.Agent == n.opt.Rank {
			return s.Since < after+ownGrace
		}
		return !n.needs(s.Agent)
	})
}

// logHangs warns of agents that do not advance, and tells when they do again.
func (n *Node) logHangs(told []bool) {
	now := make([]bool, len(told))
	for _, s := range Hanging(n.opt.Network, n.opt.Rank, n.opt.Agents, 0) {
		now[s.Agent] = true
		if !told[s.Agent] {
			n.opt.Log.Warn("an agent does not advance; its process is heard", zap.String("where", s.String()),
				zap.Duration("timeout", n.opt.Timeout))
		}
	}
	for i := range told {
		if told[i] && !now[i] {
			n.opt.Log.Info("an agent advances again", zap.Int("agent", i))
		}
	}
	copy(told, now)
}

func (n *Node) logSilence(agent int, silent bool, limit time.Duration) {
	if !silent {
		n.opt.Log.Info("an agent is heard again", zap.Int("agent", agent))
		return
	}
	n.opt.Log.Warn("nothing was heard of an agent for a while", zap.Int("agent", agent),
		zap.Duration("silent", warnAfter), zap.Duration("timeout", limit))
}

// needs reports whether this process has to wait for another agent. One that drops agents trains to
// its end without them. Then it needs the coordinator, which has to receive its reports.
func (n *Node) needs(agent int) bool {
	if n.opt.Absent(agent, n.opt.Network.Position(n.opt.Rank).T) {
		return false
	}
	if n.opt.DropAfter == 0 {
		return true
	}
	select {
	case <-n.done:
		return agent == n.opt.Coordinator
	default:
		return false
	}
}
