package traincmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"fspda/dist/link"
	"fspda/train"
	"fspda/train/membership/agreement"
	"fspda/train/process"
	"fspda/train/runfolder"
)

// membersLog is the file in an agent's folder that keeps the log on which the processes agree.
const membersLog = "members.raft"

// runLives runs the agent, and after it has left the members, a new agent of its slot.
func (f *agentFlags) runLives(ctx context.Context, cmd *cobra.Command) error {
	for life := -1; ; {
		m := &oneAgent{agentFlags: *f, life: life}
		err := m.runLife(ctx, cmd)
		next, again := m.nextLife(err)
		if !again || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "fspda: agent %d: %v: it joins again\n", m.rank, err)
		if next > m.life {
			if err := runfolder.SetAgentAside(m.out, m.rank); err != nil {
				return err
			}
		} else {
			select {
			case <-time.After(rejoinAfter):
			case <-ctx.Done():
			}
		}
		life = next
	}
}

// rejoinAfter is the time after which an agent that the others still count as a member, though it
// cannot go on, asks again.
const rejoinAfter = 3 * time.Second

// runLife runs one agent of the slot.
func (m *oneAgent) runLife(ctx context.Context, cmd *cobra.Command) error {
	r, err := openRun(m, &m.trainFlags, cmd.Flags(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer r.close()
	return r.train(ctx, m)
}

// nextLife returns the life of the slot that goes on after an agent has ended with err. again is
// false if none does.
func (m *oneAgent) nextLife(err error) (life int, again bool) {
	late, outlived := errors.AsType[*link.LifeError](err)
	switch {
	case outlived:
		return late.Life, true
	case train.Dropped(err):
		return m.life + 1, true
	case m.elastic && link.Lost(err):
		return m.life, true
	}
	return 0, false
}

// agree takes part in the agreement about the members; nil if they do not change.
func (m *oneAgent) agree(r *run, node *link.Node, folder string) (*train.Elastic, error) {
	s := r.setup
	if m.elastic = s.DropsSilent(); !m.elastic {
		return nil, nil
	}
	drop := time.Duration(s.DropAfter() * float64(time.Second))
	g, err := agreement.Open(agreement.Options{Self: m.rank, Agents: s.Graph.N, Life: m.life,
		MinAgents: s.Config.MinAgents, DropAfter: drop, Sessions: node, File: filepath.Join(folder, membersLog),
		Log: r.display.log, Stuck: func(agent int) bool {
			for _, stall := range process.Hanging(node, m.rank, s.Graph.N, 2*drop) {
				if stall.Agent == agent && stall.Works() {
					return true
				}
			}
			return false
		}})
	if err != nil {
		return nil, err
	}
	r.onClose(g.Close)
	r.display.log.Info("members", zap.Int("life", m.life))
	return &train.Elastic{Agreement: g, Slots: node, Life: m.life}, nil
}

// keptLife returns the life of the agent whose folder is there.
func keptLife(folder string) int {
	file := filepath.Join(folder, membersLog)
	if _, err := os.Stat(file); err != nil {
		return 0
	}
	return agreement.KeptLife(file)
}
