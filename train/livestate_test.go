package train

import (
	"context"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Observers that read all the time, and repeated pauses, change no result.
func TestLiveStateAndControlDoNotDisturb(t *testing.T) {
	for _, algo := range []string{"fspda-sa", "choco", "fspda-async"} {
		c := small()
		c.Algo, c.Iterations = algo, 200
		want := trace(t, play(t, c, Options{}))
		w, ctl := NewLiveState(c.Agents), NewControl()
		done := make(chan struct{})
		var aside sync.WaitGroup
		aside.Go(func() { look(w, ctl, done) })
		got := trace(t, play(t, c, Options{Live: w, Control: ctl}))
		close(done)
		aside.Wait()
		if got != want {
			t.Errorf("%s: the run changed", algo)
		}
		checkStatus(t, algo, c, w)
	}
}

// look reads the state and pauses the run until done.
func look(w *LiveState, ctl *Control, done chan struct{}) {
	var status []AgentStatus
	var seen uint64
	for {
		select {
		case <-done:
			return
		default:
		}
		ctl.Pause()
		ctl.Checkpoint()
		status = w.Agents(status)
		_, seen = w.Edges(seen)
		ctl.Resume()
		time.Sleep(100 * time.Microsecond)
	}
}

func checkStatus(t *testing.T, algo string, c Config, w *LiveState) {
	t.Helper()
	if n := w.Gradients(); n == 0 || n > c.Agents*c.Iterations {
		t.Errorf("%s: %d gradients of %d agents in %d iterations", algo, n, c.Agents, c.Iterations)
	}
	sum := 0.0
	for i, a := range w.Agents(nil) {
		if a.Iteration == 0 || !(a.Loss > 0) || !(a.Accuracy >= 0) || a.Sent == 0 {
			t.Errorf("%s: agent %d has the status %+v", algo, i, a)
		}
		sum += a.Distance
	}
	if !(sum > 0) {
		t.Errorf("%s: squared distances from the mean add up to %g", algo, sum)
	}
	pairs, total := w.Edges(0)
	if total == 0 || len(pairs) == 0 {
		t.Errorf("%s: no exchange is recorded", algo)
	}
	for _, p := range pairs {
		if d := (p[0] - p[1] + c.Agents) % c.Agents; d != 1 && d != c.Agents-1 {
			t.Errorf("%s: agents %d and %d are not neighbours on the ring", algo, p[0], p[1])
		}
	}
}

// The distances are those of the row, and the bits are the ledger's.
func TestLiveStateAgreesWithRow(t *testing.T) {
	c := small()
	w := NewLiveState(c.Agents)
	res := play(t, c, Options{Live: w})
	last := res.Rows[len(res.Rows)-1]
	sum, bits := 0.0, uint64(0)
	for _, a := range w.Agents(nil) {
		sum += a.Distance
		bits += a.Sent
	}
	if sum != float64(last.Consensus) || bits != last.BitsTotal {
		t.Errorf("distances add up to %g, bits to %d; the row says %g and %d", sum, bits, float64(last.Consensus),
			last.BitsTotal)
	}
}

// A LiveState forgets the oldest exchanges, never returns a half-written one, and counts all.
func TestLiveStateForgets(t *testing.T) {
	c := small()
	c.Edges, c.Iterations = "full", 300
	w := NewLiveState(c.Agents)
	play(t, c, Options{Live: w})
	pairs, total := w.Edges(0)
	if total != uint64(c.Agents*c.Iterations) || len(pairs) != recentEdges/2 {
		t.Errorf("%d of %d exchanges, want %d of %d", len(pairs), total, recentEdges/2, c.Agents*c.Iterations)
	}
	if a := NewLiveState(1).Agents(nil)[0]; !math.IsNaN(a.Loss + a.Distance + a.Accuracy) {
		t.Errorf("before the start an agent has the status %+v", a)
	}
}

// A paused run stands still, makes a requested checkpoint after Resume, and can be stopped while
// paused.
func TestControl(t *testing.T) {
	c := small()
	c.Iterations, c.EvalPoints = 100000, 1
	w, ctl, dir := NewLiveState(c.Agents), NewControl(), runFolder(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan Status)
	go func() {
		res, err := inFolder(t, ctx, c, dir, Options{Live: w, Control: ctl})
		if err != nil {
			t.Error(err)
			ended <- ""
			return
		}
		ended <- res.Status
	}()
	until(t, "the run moves", func() bool { return w.Agents(nil)[0].Iteration > 3 })
	ctl.Pause()
	until(t, "the run stands still", func() bool {
		before, _ := w.Edges(0)
		_, a := w.Edges(0)
		time.Sleep(20 * time.Millisecond)
		_, b := w.Edges(0)
		return a == b && len(before) > 0
	})
	ctl.Checkpoint()
	ctl.Resume()
	until(t, "a checkpoint appears", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*", "*.json"))
		return len(found) > 0
	})
	ctl.Pause()
	stop()
	if s := <-ended; s != Stopped {
		t.Errorf("the run ended as %q", s)
	}
	if ctl.Pause(); ctl.Paused() {
		t.Error("a run that is over was paused")
	}
}

// until waits until ok is true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}
