package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"fspda/dist"
	"fspda/dist/link"
	"fspda/train/algo"
	"fspda/train/process"
)

// received counts what one agent gets for evaluations.
type received struct {
	*link.Node
	numbers, reports, pieces atomic.Int64 // numbers of records, bytes of parts and notes, and of pieces of vectors
	largest                  atomic.Int64 // bytes of the largest report
	last                     int          // the last iteration
	early                    atomic.Bool  // pieces came before
}

func (r *received) OpenEvaluations(ctx context.Context, with int) (dist.CheckedSession, error) {
	s, err := r.Node.OpenEvaluations(ctx, with)
	return counted{s, r}, err
}

// counted is a session of evaluations.
type counted struct {
	dist.CheckedSession
	r *received
}

func (s counted) Take(ctx context.Context, take func([]byte) error) error {
	return s.CheckedSession.Take(ctx, func(record []byte) error {
		s.r.numbers.Add(int64(len(record) / 8)) // Without its head, a multiple of 8 bytes and one.
		return take(record)
	})
}

func (r *received) TakeReport(ctx context.Context, from int, take func(int, []byte) error) error {
	return r.Node.TakeReport(ctx, from, func(t int, record []byte) error {
		n := int64(len(record))
		if n > 0 && record[0] == 'v' {
			r.pieces.Add(n)
			r.early.CompareAndSwap(false, t != r.last)
		} else {
			r.reports.Add(n)
			r.largest.Store(max(r.largest.Load(), n))
		}
		return take(t, record)
	})
}

// Agent 0 gets one mean model for an evaluation, however many agents there are, and of each other agent
// a few numbers: no vectors, but in pieces after the last one, for the checkpoint.
func TestAgentZeroGetsNoVectors(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Metrics = 5, 20, 4, "test"
	w := &processes{t: t, c: c, name: "parts", dir: runFolder(t)}
	var got *received
	w.network = func(n *link.Node) process.Network {
		got = &received{Node: n, last: c.Iterations}
		return got
	}
	w.run(nil)
	s, _ := resolve(t, c)
	rows, d := int64(c.EvalPoints+1), int64(s.Dim)
	if n := got.numbers.Load(); n < rows*d || n > rows*(d+4) { // the mean model
		t.Errorf("agent 0 got %d numbers of sums, want %d", n, rows*d)
	}
	if n := got.largest.Load(); n > 2048 || n >= d {
		t.Errorf("a report of %d bytes, of a model of %d parameters", n, d)
	}
	if n, most := got.reports.Load(), (rows+4)*int64(c.Agents)*2048; n > most {
		t.Errorf("%d bytes of reports, want at most %d", n, most)
	}
	vectors := int64(1 + len(algo.Names(s.Algo)))
	if n, want := got.pieces.Load(), 4*d*vectors*int64(c.Agents-1); got.early.Load() || n < want || n > want+want/50 {
		t.Errorf("%d bytes of vectors, before the last evaluation %t; want %d, after it", n, got.early.Load(), want)
	}
	saved, err := OpenSaved(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range w.results {
		if x, _, err := saved.Agent(i); err != nil || !slices.Equal(x, want.Models[i]) {
			t.Errorf("the checkpoint has another model of agent %d: %v", i, err)
		}
	}
}

// Rows that metrics.jsonl has lost, which no process could make again, come from their copy.
func TestProcessesKeepRows(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Checkpoint = 3, 200, 20, 10 // No checkpoint but at stops.
	want := withoutWireBytes(t, play(t, c, Options{}))
	w := &processes{t: t, c: c, name: "rows", dir: runFolder(t)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.step = func(iteration int) {
		if iteration == 105 {
			cancel()
		}
	}
	if got := w.run(func(int) context.Context { return ctx }); got.Status != Stopped {
		t.Fatal("the run was not stopped")
	}
	path := filepath.Join(w.dir, "metrics.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	err = os.WriteFile(path, text, 0o644)
	// Agent 0 is behind the rows that it had written.
	if err := errors.Join(err, os.RemoveAll(filepath.Join(w.dir, "agents", "000", "checkpoints"))); err != nil {
		t.Fatal(err)
	}
	w.step = nil
	if got := w.run(nil); withoutWireBytes(t, got) != want {
		t.Error("the rows or models differ")
	}
}
