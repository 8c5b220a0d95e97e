package link

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/dist"
	"fspda/internal/testing/disttest"
)

// restart closes agent 0 of two and opens it again, without starting it.
func restart(t *testing.T, m mesh, edit func(*settings)) {
	t.Helper()
	m[0].Close()
	o := options(t, 0, 2)
	o.nats.Server.Join = []string{address(m[1])}
	edit(&o)
	m[0] = open(t, o)
}

// An agent without agents of lower rank, whose checkpoint is lost, is told so by those that dial
// it.
func TestLostCheckpointOfAgent0(t *testing.T) {
	m := openMesh(t, 2, nil) // not durable: everything consumed is deleted
	swap(t, m, 5, 0, 10)
	for ctx := testContext(t); m[1].peers[0].logLength() > 0 && ctx.Err() == nil; {
		time.Sleep(5 * time.Millisecond)
	}
	restart(t, m, func(*settings) {})
	if err := m[0].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	_, err := receive(testContext(t), m[0], 1, 0)
	var h *HandshakeError
	if !errors.As(err, &h) || h.Field != fieldPosition || h.Peer != 1 || !strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("error %v", err)
	}
	if err := m[1].Failure(); err != nil {
		t.Errorf("the other agent fails, too: %v", err)
	}
}

// A node that is open but not started yet, because it still reads its checkpoint, answers nobody:
// it does not know which messages it needs.
func TestNoLinkBeforeStart(t *testing.T) {
	at := fmt.Sprint("127.0.0.1:", disttest.UnusedPort(t))
	first := func(o *settings) {
		if o.Durable = true; o.Self == 0 {
			o.Listen = at
		}
	}
	m := openMesh(t, 2, first)
	swap(t, m, 5, 0, 10)
	state := m[0].Save()
	for range 2 { // what the checkpoint has is deleted at the other end
		if err := m[0].Stable(state, 0); err != nil {
			t.Fatal(err)
		}
	}
	for ctx := testContext(t); m[1].peers[0].logLength() > 0 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	restart(t, m, first)
	if _, err := newPeer(m[1], 0).dialDirect(testContext(t), []string{at}); err == nil {
		t.Error("a node that has not started answers")
	}
	if n := m[0].ConnectedPeers(); n != 0 {
		t.Errorf("%d agents are connected to a node that has not started", n)
	}
	if err := m[0].Start(state, 0); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 10, 20)
}

// A node that closes names no address any more, at which nobody accepts.
func TestNoAddressWhileClosing(t *testing.T) {
	core, lines := observer.New(zapcore.InfoLevel)
	m := openMesh(t, 2, func(o *settings) {
		if o.Listen = "127.0.0.1:0"; o.Self == 1 {
			o.Log = zap.New(core)
		}
	})
	swap(t, m, 5, 0, 3)
	m[0].close() // the first part of Close, whose rest may take a second
	time.Sleep(500 * time.Millisecond)
	if n := lines.FilterMessageSnippet("relayed").Len(); n != 0 {
		t.Errorf("%d connections to a node that closes were tried directly", n)
	}
}

// Large messages in one direction do not wait for a heartbeat: the receiver acknowledges them.
func TestLargeMessagesOneWay(t *testing.T) {
	const length, count = 9 << 20, 5 // 36 MB each: two at a time
	m := openMesh(t, 2, func(o *settings) {
		withDirect(o)
		o.Dim, o.heartbeat = length, time.Hour
	})
	ctx, values := testContext(t), make([]float32, length)
	go func() {
		for k := range count {
			if err := send(ctx, m[0], 1, k, values); err != nil {
				t.Error(err)
			}
		}
	}()
	for k := range count {
		msg, err := m[1].Recv(ctx, 1, 0, k)
		if err != nil {
			t.Fatal(err)
		}
		dist.Message.Release(msg)
	}
}

// An agent that joins gives a report the number of its evaluation. A process that resumes awaits the
// report by this number, and gets it again.
func TestReportsOfNewMember(t *testing.T) {
	const evaluations = 5
	m := openMesh(t, 2, func(o *settings) { o.Durable = true })
	ctx := testContext(t)
	m[1].SkipReports(0, evaluations)
	m[1].SkipReports(0, evaluations-1) // No effect.
	if err := m[1].Report(ctx, 0, 50, []byte("report")); err != nil {
		t.Fatal(err)
	}
	take := func() {
		t.Helper()
		if err := m[0].TakeReport(ctx, 1, func(at int, b []byte) error {
			if at != 50 || string(b) != "report" {
				t.Errorf("report %q of iteration %d", b, at)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	take()
	if at := m[0].Reported(1); at != 50 || m[1].Reported(0) != -1 {
		t.Errorf("the latest report is of iteration %d, want 50", at)
	}
	restart(t, m, func(o *settings) { o.Durable = true })
	if err := m[0].Start(nil, evaluations); err != nil {
		t.Fatal(err)
	}
	take()
}

// A process knows the latest iteration of which it has messages of another agent. One that is
// started again is linked when it has been connected to all others.
func TestLinked(t *testing.T) {
	durable := func(o *settings) { o.Durable = true }
	m := openMesh(t, 2, durable)
	ctx := testContext(t)
	if _, messages := m[1].Arrived(0); messages != 0 {
		t.Errorf("%d messages have arrived", messages)
	}
	for _, k := range []int{3, 7, 7} {
		if err := send(ctx, m[0], 1, k, []float32{1}); err != nil {
			t.Fatal(err)
		}
	}
	for want := 1; want <= 2; want++ { // The last one is in the queue.
		msg, err := m[1].Recv(ctx, 1, 0, []int{3, 7}[want-1])
		if err != nil {
			t.Fatal(err)
		}
		msg.Release()
	}
	for at, messages := m[1].Arrived(0); at != 7 || messages != 2; at, messages = m[1].Arrived(0) {
		if ctx.Err() != nil {
			t.Fatalf("%d messages of iteration %d have arrived", messages, at)
		}
		time.Sleep(time.Millisecond)
	}
	if !m[0].Linked() || !m[1].Linked() {
		t.Error("a process that is connected to all others is not linked")
	}
	restart(t, m, durable)
	if m[0].Linked() {
		t.Error("a process that is not connected is linked")
	}
	if err := m[0].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	for !m[0].Linked() {
		if ctx.Err() != nil {
			t.Fatal("a process that was started again is not linked")
		}
		time.Sleep(time.Millisecond)
	}
	if _, messages := m[0].Arrived(1); messages != 0 || m[0].Reported(1) != -1 {
		t.Errorf("%d messages have arrived", messages)
	}
}
