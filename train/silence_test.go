package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"fspda/dist"
	"fspda/dist/link"
	"fspda/train/process"
)

// start starts the agents. end ends an agent, and ended gives how each has ended once all have.
func (w *processes) start() (end []context.CancelFunc, ended <-chan []error) {
	var running sync.WaitGroup
	errs := make([]error, w.c.Agents)
	run := func(rank int, ready func(string)) {
		ctx, cancel := context.WithCancel(context.Background())
		w.t.Cleanup(cancel)
		end = append(end, cancel)
		running.Go(func() {
			r, err := w.one(ctx, rank, ready)
			errs[rank] = err
			if err == nil && r.Status == Finished {
				w.t.Errorf("agent %d finished", rank)
			}
		})
	}
	address := make(chan string, 1)
	run(process.Coordinator, func(a string) { address <- a })
	w.join = <-address
	for rank := 1; rank < w.c.Agents; rank++ {
		run(rank, func(string) {})
	}
	all := make(chan []error, 1)
	go func() { running.Wait(); all <- errs }()
	return end, all
}

// await waits for something that happens before the agents end.
func await(t *testing.T, what <-chan struct{}, ended <-chan []error) {
	t.Helper()
	select {
	case <-what:
	case errs := <-ended:
		t.Fatalf("the agents ended too early, with %v", errs)
	}
}

// checkSilent checks that an agent has ended because another one was silent.
func checkSilent(t *testing.T, rank int, err error, of int) {
	t.Helper()
	if silent, ok := errors.AsType[*process.SilentError](err); !ok || silent.Agent != of {
		t.Errorf("agent %d ended with %v, want that agent %d was silent", rank, err, of)
	}
}

// An agent of a synchronous run returns without its checkpoints, and is refused: it ends at once,
// and the others within the timeout.
func TestLostAgentFolder(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Checkpoint = 3, 100_000, 1, 0.05
	w := &processes{t: t, c: c, name: "folder", dir: filepath.Join(t.TempDir(), "many"), timeout: 6 * time.Second,
		first: time.Minute}
	begun := make(chan struct{})
	w.step = func(iteration int) {
		if iteration == 400 {
			close(begun)
		}
		time.Sleep(100 * time.Microsecond) // several checkpoints
	}
	end, ended := w.start()
	await(t, begun, ended)
	end[2]()
	home, away := filepath.Join(w.dir, "agents", "002"), filepath.Join(w.dir, "away")
	l := flock.New(filepath.Join(home, ".lock")) // the agent holds it until it has written its last checkpoint
	for ok, err := l.TryLock(); !ok; ok, err = l.TryLock() {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	if err := errors.Join(os.Rename(home, away), l.Unlock()); err != nil {
		t.Fatal(err)
	}
	var refused *link.HandshakeError
	for refused == nil {
		_, err := w.one(t.Context(), 2, func(string) {})
		if !errors.As(err, &refused) && err != nil && t.Context().Err() == nil {
			t.Logf("the second process: %v", err)
			time.Sleep(100 * time.Millisecond)
		}
		if refused == nil && len(ended) > 0 {
			t.Fatalf("the others have ended with %v before the second process was refused", <-ended)
		}
	}
	if refused.Field != "stream position" {
		t.Errorf("refused because of the %s", refused.Field)
	}
	errs := <-ended
	checkSilent(t, 0, errs[0], 2)
	checkSilent(t, 1, errs[1], 2)
}

// In real time the others train to their end without agent 0, which evaluates the run, and then end
// with an error. Their last checkpoints are of the end.
func TestLostCoordinatorInRealTime(t *testing.T) {
	t.Parallel()
	c := realTimeConfig()
	c.Iterations, c.EvalPoints, c.Checkpoint, c.DropAfter = 500, 20, 0.1, 1
	w := &processes{t: t, c: c, name: "leader", dir: filepath.Join(t.TempDir(), "many"), timeout: 2 * time.Second,
		first: time.Minute}
	begun := make(chan struct{})
	var once sync.Once
	w.step = func(iteration int) {
		if iteration >= 50 {
			once.Do(func() { close(begun) })
		}
	}
	end, ended := w.start()
	await(t, begun, ended)
	end[process.Coordinator]()
	errs := <-ended
	for rank := 1; rank < c.Agents; rank++ {
		checkSilent(t, rank, errs[rank], process.Coordinator)
		ends, err := filepath.Glob(filepath.Join(w.dir, "agents", "00"+string(rune('0'+rank)), "checkpoints",
			"iter-*500"))
		if err != nil || len(ends) != 1 {
			t.Errorf("agent %d has the last checkpoints %v, %v", rank, ends, err)
		}
	}
}

// An agent that never hears of another one that it needs ends earlier, and says that it never has.
func TestNeverHeard(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents = 3
	w := &processes{t: t, c: c, name: "alone", first: 2 * time.Second, join: "127.0.0.1:1"}
	for rank := range 2 {
		_, err := w.one(t.Context(), rank, func(string) {})
		checkSilent(t, rank, err, 1-rank)
		if silent, ok := errors.AsType[*process.SilentError](err); ok && (!silent.Never || silent.Timeout != w.first) {
			t.Errorf("agent %d: %v", rank, err)
		}
	}
}

// An agent hangs in an iteration, while its process lives. The others end after the timeout, and
// name it. Its own process is told that it should end.
func TestHungAgent(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints = 3, 100_000, 1
	hung := make(chan error, 1)
	w := &processes{t: t, c: c, name: "hung", timeout: 4 * time.Second, first: time.Minute,
		abandon: func(err error) { hung <- err }}
	release := make(chan struct{})
	w.step = func(iteration int) { // Of agent 0.
		if iteration == 50 {
			<-release
		}
	}
	_, ended := w.start()
	named := func(who int, err error) {
		if e, ok := errors.AsType[*process.HangError](err); !ok || len(e.Stalls) != 1 || e.Stalls[0].Agent != 0 ||
			e.Stalls[0].T != 50 {
			t.Errorf("agent %d ended with %v, want that agent 0 hangs in iteration 50", who, err)
		}
	}
	select {
	case err := <-hung:
		named(0, err)
	case errs := <-ended:
		t.Fatalf("the agents ended with %v before agent 0 hung", errs)
	}
	close(release)
	for rank, err := range <-ended {
		named(rank, err)
	}
}

// An agent that sends values that are not finite ends the run as diverged, with its name, in all
// processes. What the others have is not touched.
func TestBadValuesEndTheRun(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Edges, c.Graph, c.Eta = 3, 60, 1, "full", "complete", AutoFloat{V: 0.001}
	w := &processes{t: t, c: c, name: "bad", timeout: time.Minute, distort: func(m dist.Message) {
		if m.From == 2 && m.T >= 30 {
			b := m.Values[0]
			b.Device().Write(b.V, slices.Repeat([]float32{float32(math.Inf(1))}, b.V.Len()))
		}
	}}
	var lost []*DivergedError
	w.run(nil)
	for _, r := range w.results {
		if r == nil || r.Diverged == nil {
			t.Fatalf("an agent ended with %+v", r)
		}
		lost = append(lost, r.Diverged)
	}
	for i, d := range lost {
		if d.Agent != 2 || d.T != 30 || !strings.Contains(d.Error(), "agent 2 has sent values that are not finite") {
			t.Errorf("agent %d: %v", i, d)
		}
	}
}

// An agent whose messages have the wrong length stops the others and does not end their processes
// before the timeout. Then they end with its name.
func TestBadMessagesEndTheRun(t *testing.T) {
	t.Parallel()
	c := small()
	c.Agents, c.Iterations, c.EvalPoints, c.Edges, c.Graph, c.Eta = 3, 60, 1, "full", "complete", AutoFloat{V: 0.001}
	w := &processes{t: t, c: c, name: "bad", timeout: 3 * time.Second, distort: func(m dist.Message) {
		if m.From == 2 && m.T >= 30 {
			dev := m.Values[0].Device()
			m.Values[0].Release()
			m.Values[0] = dist.NewPool(dev).Get(3)
		}
	}}
	_, ended := w.start()
	named := 0
	for rank, err := range <-ended {
		if bad, ok := errors.AsType[*process.OffenceError](err); ok && bad.Agent == 2 && rank != 2 {
			named++
		} else if rank != 2 && !ok {
			t.Logf("agent %d ended with %v", rank, err)
		}
	}
	if named == 0 {
		t.Error("nobody names agent 2")
	}
}
