package nats

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"fspda/dist"
	"fspda/internal/rng"
)

// chat lets two ends of a talk say count records each, of different lengths, and checks what they
// hear.
func chat(t *testing.T, a, b dist.Session, count int) {
	t.Helper()
	ctx := patient(t)
	text := func(who, k int) string { return fmt.Sprintf("%d:%d:%0*d", who, k, 1+k*37%5000, k) }
	var wg sync.WaitGroup
	for who, talk := range [2]dist.Session{a, b} {
		wg.Go(func() {
			for k := range count {
				if err := talk.Send(ctx, []byte(text(who, k))); err != nil {
					t.Error(err)
					return
				}
				if got, err := talk.Recv(ctx); err != nil || string(got) != text(1-who, k) {
					t.Errorf("record %d at %d: %.20q, %v", k, who, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func talkOf(t *testing.T, n *Node, with int) dist.Session {
	t.Helper()
	talk, err := n.OpenSession(patient(t), with)
	if err != nil {
		t.Fatal(err)
	}
	return talk
}

// What two processes say arrives once and in order though frames are lost and doubled. A talk with
// a new life begins from nothing, and the old one is over.
func TestTalk(t *testing.T) {
	var mu sync.Mutex
	s := rng.New(9, "faults")
	m := openMesh(t, 2, func(o *Options) {
		o.firstAsk, o.Durable = 4*time.Millisecond, true
		o.fault = func(*frame) int {
			mu.Lock()
			defer mu.Unlock()
			return [6]int{0, 1, 1, 1, 1, 2}[s.IntN(6)]
		}
	})
	old := talkOf(t, m[0], 1)
	chat(t, old, talkOf(t, m[1], 0), 40)
	lines := m[1].Save()
	m[1].Close()
	o := options(t, 1, 2)
	o.Durable, o.Server.Join = true, []string{m[0].Address()}
	m[1] = open(t, o)
	if err := m[1].Start(lines, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Recv(patient(t)); !errors.Is(err, dist.ErrSessionClosed) {
		t.Errorf("the talk with a process that has ended: %v", err)
	}
	if err := old.Send(patient(t), []byte("x")); !errors.Is(err, dist.ErrSessionClosed) {
		t.Errorf("the talk with a process that has ended: %v", err)
	}
	chat(t, talkOf(t, m[0], 1), talkOf(t, m[1], 0), 40)
	if silent := m[0].SilentFor(1); silent > 5*time.Second {
		t.Errorf("silent for %v", silent)
	}
}

// Frames of another talk, such as a delayed or a recorded one, change nothing.
func TestTalkIgnoresOtherLives(t *testing.T) {
	m := openMesh(t, 2, nil)
	a, b := talkOf(t, m[0], 1), talkOf(t, m[1], 0)
	from := m[1].peers[0]
	for _, tag := range []uint64{0, 12345, m[0].talkTag()} { // none is that of node 1
		if err := from.handle(&frame{kind: kindData, stream: talks, life: m[0].life, t: tag, total: 3, raw: 3,
			piece: []byte("old")}); err != nil {
			t.Fatal(err)
		}
		late := ack{next: [streams]uint64{talks: 7}, stable: [streams]uint64{talks: 7}}
		if err := from.handle(&frame{kind: kindAck, life: m[0].life, t: tag, piece: late.append(nil)}); err != nil {
			t.Fatal(err)
		}
	}
	chat(t, a, b, 10)
}

// Silence is counted from the last sign of life.
func TestSilent(t *testing.T) {
	m := openMesh(t, 2, nil)
	m[1].Close()
	ctx := patient(t)
	for m[0].SilentFor(1) < time.Second && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Errorf("silent for %v only", m[0].SilentFor(1))
	}
}
