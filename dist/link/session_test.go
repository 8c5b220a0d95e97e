package link

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"fspda/dist"
)

// chat lets two ends of a session send count records each, of different lengths, and checks what
// they receive.
func chat(t *testing.T, a, b dist.Session, count int) {
	t.Helper()
	ctx := testContext(t)
	text := func(who, k int) string { return fmt.Sprintf("%d:%d:%0*d", who, k, 1+k*37%5000, k) }
	var wg sync.WaitGroup
	for who, session := range [2]dist.Session{a, b} {
		wg.Go(func() {
			for k := range count {
				if err := session.Send(ctx, []byte(text(who, k))); err != nil {
					t.Error(err)
					return
				}
				if got, err := session.Recv(ctx); err != nil || string(got) != text(1-who, k) {
					t.Errorf("record %d at %d: %.20q, %v", k, who, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func openSession(t *testing.T, n *Node, with int) dist.Session {
	t.Helper()
	session, err := n.OpenSession(testContext(t), with)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// Records arrive once and in order though connections break. A session with a new process starts
// from scratch, and the old one is closed.
func TestSession(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) {
		o.Durable, o.Listen, o.wrap = true, "127.0.0.1:0", breaking(9, 0.02)
	})
	old := openSession(t, m[0], 1)
	chat(t, old, openSession(t, m[1], 0), 40)
	lines := m[1].Save()
	m[1].Close()
	o := options(t, 1, 2)
	o.Durable, o.nats.Server.Join = true, []string{address(m[0])}
	m[1] = open(t, o)
	if err := m[1].Start(lines, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Recv(testContext(t)); !errors.Is(err, dist.ErrSessionClosed) {
		t.Errorf("the session with a process that has ended: %v", err)
	}
	if err := old.Send(testContext(t), []byte("x")); !errors.Is(err, dist.ErrSessionClosed) {
		t.Errorf("the session with a process that has ended: %v", err)
	}
	chat(t, openSession(t, m[0], 1), openSession(t, m[1], 0), 40)
	if silent := m[0].SilentFor(1); silent > 5*time.Second {
		t.Errorf("silent for %v", silent)
	}
}

// A handshake that arrives after a later one of the same process starts the session of the
// answering node anew. The other node learns of it, and both go on with one session.
func TestLateHandshake(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Listen = "127.0.0.1:0" })
	chat(t, openSession(t, m[0], 1), openSession(t, m[1], 0), 20)
	late := hello{Run: "test", From: 1, Incarnation: m[1].incarnation, Identity: m[1].opt.Identity}
	if err := tryHandshake(t, m[0].addresses()[0], nil, late); err != nil {
		t.Fatal(err)
	}
	there := openSession(t, m[1], 0)
	chat(t, openSession(t, m[0], 1), there, 20)
}

// Silence is counted from the last frame.
func TestSilentFor(t *testing.T) {
	m := openMesh(t, 2, nil)
	m[1].Close()
	ctx := testContext(t)
	for m[0].SilentFor(1) < time.Second && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Errorf("silent for %v only", m[0].SilentFor(1))
	}
}

// Agent 0 may have a checkpoint with more rows than another agent has sent reports, because it was
// absent. That agent still connects, and its reports arrive.
func TestCheckpointWithoutReports(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Durable, o.Listen = true, "127.0.0.1:0" })
	for range 2 { // checkpoints: what the first needs is stable after the second
		if err := m[0].Stable(m[0].Save(), 2); err != nil {
			t.Fatal(err)
		}
	}
	swap(t, m, 5, 0, 3)
	if err := m[1].Report(testContext(t), 0, 0, []byte("late")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := nextReport(testContext(t), m[0], 1); err != nil || string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
	if n := m[1].Stats().Reconnects; n != 0 {
		t.Errorf("%d reconnects", n)
	}
}
