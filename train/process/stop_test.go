package process_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"fspda/dist"
	"fspda/train/process"
)

// slow is a Network from which reports of an agent come late, as on a machine that does too much.
type slow struct {
	*memory
	late func(from int) time.Duration
}

func (s slow) TakeReport(ctx context.Context, from int, take func(t int, record []byte) error) error {
	return s.memory.TakeReport(ctx, from, func(t int, record []byte) error {
		time.Sleep(s.late(from))
		return take(t, record)
	})
}

// ahead is a Network of agents that wait at iterations 100 and 110 for agent 0, which comes from 70 at
// 20 iterations a second.
type ahead struct {
	*memory
	began time.Time
}

func (a ahead) Position(agent int) (p dist.Advance) {
	p.T, p.Phase = 90+10*agent, dist.Waiting
	if agent == 0 {
		p.T = 70 + int(time.Since(a.began)/(50*time.Millisecond))
	}
	return p
}

// A coordinator that is behind the others, as after a restart, goes on to the last of them before it
// holds: evaluations wait for it, and the answers of the others behind them.
func TestStopCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		net := ahead{newMemory(3)[0], time.Now()}
		n := process.New(process.Options{Agents: 3, Network: net, Store: process.NoStore{}, Run: newLocal(3, nil),
			Schedule: schedule{}, Log: zap.NewNop()})
		n.Serve(ctx, fail)
		at := 0
		n.AgreeOnStop(ctx, func() int {
			at = net.Position(0).T
			return at
		})
		if at < 100 || at > 105 {
			t.Errorf("it holds at %d, want about 100", at)
		}
		n.Decide(false)
		fail(nil)
		n.Wait(ctx, ctx)
	})
}

// A process that was started again reads the notes of an earlier stop again. They do not decide of a
// stop that comes later.
func TestEarlierStopIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		net := newMemory(2)
		for _, note := range []process.Note{{Kind: process.NoteHold, T: 95, Stop: 7},
			{Kind: process.NoteStop, T: 100, Stop: 7}} {
			text, err := json.Marshal(note)
			if err != nil {
				t.Fatal(err)
			}
			if err := net[0].Report(ctx, 1, note.T, append([]byte("n"), text...)); err != nil {
				t.Fatal(err)
			}
		}
		n := process.New(process.Options{Rank: 1, Agents: 2, Network: net[1], Store: process.NoStore{},
			Run: newLocal(2, nil), Schedule: schedule{}, Log: zap.NewNop()})
		n.Serve(ctx, fail)
		time.Sleep(time.Minute)
		if at, together := n.AgreeOnStop(ctx, func() int { return 500 }); at != 500 || together {
			t.Errorf("it stops at %d, together %v; want 500, alone", at, together)
		}
		n.Decide(false)
		fail(nil)
		n.Wait(ctx, ctx)
	})
}

// Processes that are told to stop at once agree on the last of their iterations, also if their
// answers reach the coordinator one by one for longer than it waits for each. An agent that is not
// told to stop does not answer, and then each stops where it is.
func TestStopAgrees(t *testing.T) {
	const agents = 4
	parts := make([]*local, agents)
	for i := range parts {
		parts[i] = newLocal(agents, nil)
	}
	for name, told := range map[string]int{"all": agents, "all but one": agents - 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, fail := context.WithCancelCause(t.Context())
				defer fail(nil)
				var nodes []*process.Node
				for rank, net := range newMemory(agents) {
					late := func(from int) time.Duration { return time.Duration(from) * 2 * time.Second }
					nodes = append(nodes, process.New(process.Options{Rank: rank, Agents: agents,
						Network: slow{net, late}, Store: process.NoStore{}, Run: parts[rank],
						Schedule: schedule{}, Log: zap.NewNop()}))
					nodes[rank].Serve(ctx, fail)
				}
				var wg sync.WaitGroup
				for rank, n := range nodes[:told] {
					wg.Go(func() {
						at, together := n.AgreeOnStop(ctx, func() int { return 100 + rank })
						want := 100 + rank
						if told == agents {
							want = 100 + agents - 1
						}
						if at != want || together != (told == agents) {
							t.Errorf("agent %d stops at %d, together %v; want %d", rank, at, together, want)
						}
						n.Decide(together)
					})
				}
				wg.Wait()
				fail(nil)
				for _, n := range nodes {
					wg.Go(func() { n.Wait(ctx, ctx) })
				}
				wg.Wait()
			})
		})
	}
}
