package process

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// SilentError reports that an agent without which the run cannot go on has been silent for longer
// than Options.Timeout.
type SilentError struct {
	Agent   int
	Timeout time.Duration
}

func (e *SilentError) Error() string {
	why := "the run cannot go on without it"
	if e.Agent == Coordinator {
		why = "it evaluates the run and writes its folder"
	}
	return fmt.Sprintf("process: nothing was heard of agent %d for %v, the limit of --timeout, and %s: start it "+
		"again, and then this agent, which resumes from its checkpoint; if the checkpoints of agent %d are lost, "+
		"restore its folder from a copy, or start the whole run again", e.Agent, e.Timeout, why, e.Agent)
}

const (
	warnAfter     = 15 * time.Second // silence after which a warning is given
	watchInterval = time.Second
)

// watch returns a SilentError when an agent that this process needs has been silent for too long.
// It warns earlier.
func (n *Node) watch(ctx context.Context) error {
	interval := watchInterval
	if n.opt.Timeout > 0 {
		interval = min(interval, n.opt.Timeout/4)
	}
	t := time.NewTicker(interval)
	defer t.Stop()
	warned := make([]bool, n.opt.Agents)
	began, latest := time.Now(), time.Now()
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
			silent := min(n.opt.Network.SilentFor(i), time.Since(began))
			if n.opt.Timeout > 0 && silent > n.opt.Timeout && n.needs(i) {
				return &SilentError{i, n.opt.Timeout}
			}
			if late := silent > warnAfter; late != warned[i] {
				warned[i] = late
				n.logSilence(i, late)
			}
		}
	}
}

func (n *Node) logSilence(agent int, silent bool) {
	if !silent {
		n.opt.Log.Info("an agent is heard again", zap.Int("agent", agent))
		return
	}
	n.opt.Log.Warn("nothing was heard of an agent for a while", zap.Int("agent", agent),
		zap.Duration("silent", warnAfter), zap.Duration("timeout", n.opt.Timeout))
}

// needs reports whether this process has to wait for another agent. One that drops agents trains to
// its end without them. Then it needs the coordinator, which has to receive its reports.
func (n *Node) needs(agent int) bool {
	if n.opt.DropAfter == 0 {
		return true
	}
	select {
	case <-n.done:
		return agent == Coordinator
	default:
		return false
	}
}
