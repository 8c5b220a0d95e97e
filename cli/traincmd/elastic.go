package traincmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
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
	for life, moved := -1, false; ; {
		m := &oneAgent{agentFlags: *f, life: life, moved: moved}
		err := m.runLife(ctx, cmd)
		next, again := m.nextLife(err)
		if !again || ctx.Err() != nil {
			return err
		}
		life, moved = next, errors.Is(err, train.ErrMoved)
		if moved {
			continue
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "fspda: agent %d: %v: it joins again\n", m.rank, err)
		if next > m.life {
			if err := runfolder.SetAgentAside(m.out, m.rank); err != nil {
				return err
			}
			continue
		}
		select {
		case <-time.After(rejoinAfter):
		case <-ctx.Done():
		}
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
	case errors.Is(err, errHung): // Another process can take its place.
	case outlived:
		return late.Life, true
	case errors.Is(err, train.ErrDropped):
		return m.life + 1, true
	case errors.Is(err, train.ErrMoved), m.elastic && link.Lost(err):
		return m.life, true
	}
	return 0, false
}

// agree takes part in the agreement about the members; nil if they do not change.
func (m *oneAgent) agree(r *run, node *link.Node, folder string) (*train.Elastic, awaited, error) {
	s := r.setup
	if !m.elastic {
		return nil, fixedMembers{}, nil
	}
	drop := time.Duration(s.DropAfter() * float64(time.Second))
	g, err := agreement.Open(agreement.Options{Rules: s.MemberRules(), Self: m.rank, Life: m.life, DropAfter: drop,
		Sessions: node, File: filepath.Join(folder, membersLog), Log: r.display.log, Failure: node.Failure,
		Stuck: func(agent int) bool {
			for _, stall := range process.Hanging(node, m.rank, s.Graph.N, 2*drop) {
				if stall.Agent == agent && stall.Works() {
					return true
				}
			}
			return false
		}})
	if err != nil {
		return nil, nil, err
	}
	ctx, quit := context.WithCancel(context.Background())
	t := &membersTeller{group: g, net: node, rank: m.rank, folder: folder, address: m.address(s.Graph.N),
		log: r.display.log}
	var telling sync.WaitGroup
	telling.Go(func() { t.tell(ctx) })
	telling.Go(func() { t.takeDrops(ctx) })
	r.onClose(func() {
		quit()
		telling.Wait()
		g.Close()
	})
	v, err := g.View(context.Background())
	return &train.Elastic{Agreement: g, Slots: node, Life: m.life, Writer: v.Writer}, agreedMembers{g}, err
}

// agreedMembers is awaited of a run whose members agree on their changes.
type agreedMembers struct{ group *agreement.Group }

func (a agreedMembers) member(agent int) bool {
	return slices.Contains(a.group.Status().Members, agent)
}

func (a agreedMembers) undecided() error {
	if s := a.group.Status(); s.Leader < 0 {
		return fmt.Errorf("no majority of the members %v is heard: nothing is decided, and all wait", s.Members)
	}
	return nil
}

// writer returns the agent whose process evaluates the run and writes its folder. In an elastic run
// it also finds the life of the agent whose folder is there.
func (m *oneAgent) writer(s *train.Setup, store *runfolder.AgentStore) int {
	m.life = max(m.life, 0)
	if !s.DropsSilent() {
		return process.Coordinator
	}
	life, v := agreement.Kept(filepath.Join(store.Path, membersLog), s.MemberRules())
	m.life = max(m.life, life)
	if m.life > 0 && store.Empty() {
		return -1 // A new agent writes nothing before it is a member.
	}
	return v.Writer
}

// openFolder opens the run folder for the process that writes it, and returns its path. In an
// elastic run another process may still hold it.
func (m *oneAgent) openFolder(ctx context.Context, r *run) (path string, err error) {
	path = m.out
	for begin := time.Now(); ; {
		_, err = train.ReadConfig(path)
		r.options.Folder, err = train.OpenFolder(path, r.setup, err == nil)
		switch late := time.Since(begin) > lockTimeout; {
		case !r.setup.DropsSilent() || path != m.out || !errors.Is(err, runfolder.ErrInUse):
			return path, err
		case late && !m.moved:
			return path, fmt.Errorf("%w: another process writes %s", train.ErrDropped, path)
		case late: // The process that wrote it hangs.
			path = fmt.Sprintf("%s-agent-%03d", m.out, m.rank)
			r.display.log.Warn("the run folder is still held: rows go to another one", zap.String("folder", path))
			continue
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return path, context.Cause(ctx)
		}
	}
}

// lockTimeout is the time for which a process waits for the run folder that another one wrote, which
// has left.
const lockTimeout = 5 * time.Second
