package link

import (
	"testing"
	"time"

	"fspda/dist"
	"fspda/dist/discover"
)

// onRing returns an edit by which each node is near its two neighbours on a ring.
func onRing(n int) func(*settings) {
	return func(o *settings) {
		o.Near = []int{(o.Self + n - 1) % n, (o.Self + 1) % n}
		o.heartbeat, o.Pause = 10*time.Millisecond, 20*time.Millisecond
	}
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for ctx := testContext(t); !holds(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// On a ring an agent connects to its neighbours and to agent 0. Another link is made when a message
// needs it.
func TestLinksWhereNeeded(t *testing.T) {
	const n = 6
	m := openMesh(t, n, onRing(n))
	for i, want := range []int{5, 2, 3, 3, 3, 2} {
		if err := m[i].Ready(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if got := m[i].ConnectedPeers(); got != want {
			t.Errorf("agent %d is connected to %d agents, want %d", i, got, want)
		}
	}
	for _, pair := range [][2]int{{1, 4}, {5, 2}} { // The dialing node receives, or it sends.
		from, to := pair[0], pair[1]
		if err := send(testContext(t), m[from], to, 7, []float32{3}); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(testContext(t), m[to], from, 7); err != nil || got[0] != 3 {
			t.Errorf("from %d to %d: %v, %v", from, to, got, err)
		}
	}
}

// Of many agents on a ring, only those directly below agent 0 in the tree, and its neighbours, are
// connected to it. The links of the others to it are relayed, and carry reports.
func TestLinksToAgentZeroAreRelayed(t *testing.T) {
	const n = discover.Branches + 4
	m := openMesh(t, n, func(o *settings) {
		onRing(n)(o)
		o.Listen, o.Tree = "127.0.0.1:0", true
	})
	for i := range m {
		if err := m[i].Ready(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range m[0].Peers() {
		want := s.Agent <= discover.Branches || s.Agent == n-1
		await(t, "the links to agent 0 are direct or relayed", func() bool {
			return m[0].Peers()[s.Agent-1].Direct == want
		})
		if err := m[s.Agent].Report(testContext(t), 0, 3, []byte{byte(s.Agent)}); err != nil {
			t.Fatal(err)
		}
		err := m[0].TakeReport(testContext(t), s.Agent, func(_ int, b []byte) error {
			if int(b[0]) != s.Agent {
				t.Errorf("agent %d reports %v", s.Agent, b)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Agent 0 tells an agent of those to which it has no link: who is silent, and who does not advance
// where.
func TestNews(t *testing.T) {
	const n = 5
	m := openMesh(t, n, onRing(n))
	for i := range m {
		if err := m[i].Ready(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "agent 1 knows that agent 3 is alive", func() bool { return m[1].SilentFor(3) == 0 })
	if at := m[1].Position(3); at.Phase != dist.Working || at.Since != 0 {
		t.Errorf("agent 3 is said to be at %+v", at)
	}
	m[3].Advance(40, dist.Working)
	p := m[0].peers[3]
	late := func(silent time.Duration) func() bool {
		return func() bool { // As if it had been silent, or at the same place, for longer.
			p.mu.Lock()
			p.seen.latest = time.Now().Add(-time.Minute)
			p.lastHeard = time.Now().Add(-silent)
			p.mu.Unlock()
			at := m[1].Position(3)
			return at.T == 40 && at.Since >= time.Minute && m[1].SilentFor(3) >= silent
		}
	}
	await(t, "agent 1 knows where agent 3 stays", late(0))
	m[3].Close()
	await(t, "agent 1 knows that agent 3 is silent", late(30*time.Second))
	for _, s := range m[1].Peers() {
		if s.Linked != (s.Agent < 3) {
			t.Errorf("agent 1 and agent %d are linked: %v", s.Agent, s.Linked)
		}
	}
}

// News that agent 0 does not send are refused.
func TestInvalidNews(t *testing.T) {
	m := openMesh(t, 3, nil)
	good := appendNews(nil, 2, time.Second, dist.Advance{Position: dist.Position{T: 4, Awaits: 1}})
	if err := m[1].hear(hub, good); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"cut":            good[:newsSize-1],
		"another agent":  appendNews(nil, 3, 0, dist.Advance{}),
		"awaits another": appendNews(nil, 2, 0, dist.Advance{Position: dist.Position{Awaits: 3}}),
		"phase":          appendNews(nil, 2, 0, dist.Advance{Position: dist.Position{Phase: dist.Waiting + 1}}),
		"too many":       make([]byte, (maxNews+1)*newsSize),
	} {
		if m[1].hear(hub, bad) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if m[1].hear(2, good) == nil {
		t.Error("news of another agent than agent 0 were accepted")
	}
}

// A link that no message uses has a heartbeat now and then, and one in use more often. One end that
// waits for the other is told more often, too.
func TestHeartbeats(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.heartbeat, o.Pause = 5*time.Millisecond, time.Hour })
	if err := m[0].Ready(testContext(t)); err != nil {
		t.Fatal(err)
	}
	p := m[1].peers[0]
	interval := func() time.Duration {
		p.mu.Lock()
		l := p.link
		p.mu.Unlock()
		if l == nil {
			return 0
		}
		return l.interval()
	}
	await(t, "the link is idle", func() bool { return interval() == time.Hour })
	m[0].Advance(1, dist.Working)
	m[1].Advance(1, dist.Working)
	received := make(chan error, 1)
	go func() {
		_, err := receive(testContext(t), m[0], 1, 3)
		received <- err
	}()
	await(t, "the awaited agent sends heartbeats", func() bool { return interval() == 5*time.Millisecond })
	before := m[0].Stats().GotFrames
	await(t, "heartbeats arrive", func() bool { return m[0].Stats().GotFrames > before+5 })
	if err := send(testContext(t), m[1], 0, 3, []float32{1}); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	busy := p.busy()
	p.used = time.Now().Add(-inUse)
	p.mu.Unlock()
	if !busy {
		t.Error("a link over which a message has just gone is not in use")
	}
	await(t, "the link is idle again", func() bool { return interval() == time.Hour })
}
