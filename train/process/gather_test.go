package process_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"fspda/train/process"
	"fspda/train/snapshot"
)

// silent is a Network of agent 0 whose other agents are silent.
type silent struct{ *memory }

func (silent) SilentFor(int) time.Duration { return time.Hour }

// rowWriter is the part of a run in one process. It counts a row when it has the snapshots of both
// agents.
type rowWriter struct {
	*local
	node *process.Node
	mu   sync.Mutex
	set  [2]*snapshot.Snapshot
}

func (w *rowWriter) Collect(sn *snapshot.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.set[sn.Agent] = sn; w.set[0] != nil && w.set[1] != nil {
		w.node.RowsWritten(2, w.set[:])
	}
}

// keeping is a Store that keeps the counters of the last row.
type keeping struct{ lastRow []snapshot.Counters }

func (*keeping) Keeps() bool { return true }
func (k *keeping) Write(sn *snapshot.Snapshot, _ float64) error {
	k.lastRow = sn.LastRow
	return nil
}

// Agent 0 resumes at iteration 5 while the other agent is absent: that one counts as in the last
// row before the checkpoint, and in the next checkpoint as well.
func TestAbsentSinceTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		w, store := &rowWriter{local: newLocal(2, nil)}, &keeping{}
		n := process.New(process.Options{Agents: 2, Network: silent{newMemory(2)[0]}, Store: store, Run: w,
			Schedule: schedule{}, Log: zap.NewNop(), DropAfter: time.Second, First: 5,
			LastRow: []snapshot.Counters{{Grads: 3}, {Grads: 7}}})
		w.node = n
		n.Serve(ctx, fail)
		evaluated, saved := newSnapshot(), newSnapshot()
		evaluated.T, evaluated.Eval, evaluated.Grads = 10, true, 20
		saved.T, saved.Save = 12, true
		if err := errors.Join(n.Deliver(ctx, evaluated), n.Deliver(ctx, saved)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []snapshot.Counters{{Grads: 20}, {Grads: 7}}; !reflect.DeepEqual(store.lastRow, want) {
			t.Errorf("the checkpoint has the counters %+v, want %+v", store.lastRow, want)
		}
		fail(nil)
		n.Wait(ctx, ctx)
	})
}

// An agent that is lost after its last evaluation, before it has said that it stopped, is not
// awaited for ever.
func TestAbsentAfterLastEvaluation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		net, collected := newMemory(2), make(chan int, 4)
		n := process.New(process.Options{Agents: 2, Network: silent{net[0]}, Store: process.NoStore{},
			Run: newLocal(2, collected), Schedule: schedule{}, Log: zap.NewNop(), DropAfter: time.Second})
		lost := process.New(process.Options{Rank: 1, Agents: 2, Network: net[1], Store: process.NoStore{},
			Run: newLocal(2, nil), Schedule: schedule{}, Log: zap.NewNop(), DropAfter: time.Second})
		n.Serve(ctx, fail)
		for rank, n := range []*process.Node{n, lost} {
			for _, at := range []int{0, 10} {
				sn := newSnapshot()
				sn.Agent, sn.T, sn.Eval = rank, at, true
				if err := n.Deliver(ctx, sn); err != nil {
					t.Fatal(err)
				}
			}
		}
		ended := make(chan struct{})
		go func() { n.Wait(ctx, ctx); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Hour):
			t.Error("agent 0 still waits for an agent that was lost an hour ago")
			fail(nil)
			<-ended
		}
		if len(collected) != 4 {
			t.Errorf("%d snapshots were collected, want 4", len(collected))
		}
	})
}

// stable is a Network that counts the checkpoints that others are told of.
type stable struct {
	*memory
	told int
}

func (s *stable) Stable([]byte, int) error { s.told++; return nil }

// A process that stops at the checkpoint from which it has resumed writes none, and must not say
// that it has: the others would delete what the checkpoint before this one needs.
func TestCheckpointOfResumeIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		defer fail(nil)
		net := &stable{memory: newMemory(2)[1]}
		n := process.New(process.Options{Rank: 1, Agents: 2, Network: net, Store: &keeping{}, Run: newLocal(2, nil),
			Schedule: schedule{}, Log: zap.NewNop(), First: 5, Streams: []byte{},
			LastRow: make([]snapshot.Counters, 2)})
		n.Serve(ctx, fail)
		for k, at := range []int{5, 7} {
			sn := newSnapshot()
			sn.Agent, sn.T, sn.Save = 1, at, true
			if err := n.Deliver(ctx, sn); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if net.told != k {
				t.Errorf("others were told of %d checkpoints, want %d", net.told, k)
			}
		}
		fail(nil)
		n.Wait(ctx, ctx)
	})
}

// The coordinator has reports of iterations before the one at which it began, since it has their
// rows, and those that it has received. Another process has none.
func TestReported(t *testing.T) {
	latest := func(agent int) int { return []int{0, -1, 7}[agent] }
	for rank, want := range []map[int]int{{1: 0, 2: 7}, nil} {
		n := process.New(process.Options{Rank: rank, Agents: 3, Network: newMemory(3)[rank], Store: process.NoStore{},
			Run: newLocal(3, nil), Schedule: schedule{}, Log: zap.NewNop(), First: 5})
		if got := n.Reported(latest); !reflect.DeepEqual(got, want) {
			t.Errorf("agent %d has reports %v, want %v", rank, got, want)
		}
	}
}
