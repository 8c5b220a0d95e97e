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
