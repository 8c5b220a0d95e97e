package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/dist"
	"fspda/internal/rng"
)

// send sends values of iteration t.
func send(ctx context.Context, n *Node, to, t int, values ...[]float32) error {
	m := dist.Message{T: t, From: n.opt.Self, To: to}
	for _, v := range values {
		b := n.opt.Pool.Get(len(v))
		n.opt.Pool.Device().Write(b.V, v)
		m.Values = append(m.Values, b)
	}
	return n.Send(ctx, m)
}

// receive receives the first vector of iteration t.
func receive(ctx context.Context, n *Node, from, t int) ([]float32, error) {
	m, err := n.Recv(ctx, n.opt.Self, from, t)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	v := make([]float32, m.Values[0].V.Len())
	n.opt.Pool.Device().Read(v, m.Values[0].V)
	return v, nil
}

// nextReport waits for the next report of another agent.
func nextReport(ctx context.Context, n *Node, from int) (t int, record []byte, err error) {
	err = n.TakeReport(ctx, from, func(at int, text []byte) error {
		t, record = at, text
		return nil
	})
	return t, record, err
}

// testContext bounds a wait that should be short, generously for overloaded machines.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// ramp returns the values that agent from sends at iteration t.
func ramp(from, t, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(from*1000+t) + float32(i)/float32(n)
	}
	return v
}

// swap lets two agents exchange at iterations first to last-1.
func swap(t *testing.T, m mesh, length, first, last int) {
	t.Helper()
	ctx := testContext(t)
	var wg sync.WaitGroup
	for self := range 2 {
		wg.Go(func() {
			for k := first; k < last; k++ {
				if err := send(ctx, m[self], 1-self, k, ramp(self, k, length)); err != nil {
					t.Error(err)
					return
				}
				got, err := receive(ctx, m[self], 1-self, k)
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(got, ramp(1-self, k, length)) {
					t.Errorf("iteration %d at agent %d: received values differ from those sent", k, self)
					return
				}
			}
		})
	}
	wg.Wait()
}

var errInjected = errors.New("link: an injected fault")

// breaking returns connections that break with a probability at each read and write, and delay
// bytes as often.
func breaking(seed uint64, probability float64) func(net.Conn) net.Conn {
	var mu sync.Mutex
	s := rng.New(seed, "faults")
	return func(c net.Conn) net.Conn {
		return &faultyConn{c, func() error {
			mu.Lock()
			u := s.Float64()
			mu.Unlock()
			switch {
			case u < probability:
				_ = c.Close()
				return errInjected
			case u < 2*probability:
				time.Sleep(time.Millisecond)
			}
			return nil
		}}
	}
}

type faultyConn struct {
	net.Conn
	pass func() error
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if err := c.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil {
		err = c.pass()
	}
	return n, err
}

// A network whose connections break again and again delays a run and changes nothing else, whether
// connections are direct or relayed.
func TestConnectionsBreak(t *testing.T) {
	for name, listen := range map[string]string{"direct": "127.0.0.1:0", "relayed": ""} {
		t.Run(name, func(t *testing.T) {
			m := openMesh(t, 2, func(o *settings) {
				o.chunk, o.Listen, o.wrap = 3000, listen, breaking(7, 0.02)
			})
			swap(t, m, 10, 0, 100)
			swap(t, m, 20_000, 100, 130) // messages of many fragments
			if a, b := m[0].Stats(), m[1].Stats(); a.Reconnects < 3 || b.Reconnects < 3 || a.Resent+b.Resent == 0 {
				t.Errorf("no connection broke: %+v %+v", a, b)
			}
		})
	}
}

// What a restarted agent has missed arrives without waiting for any timer: acknowledgements pump
// it.
func TestReplayNeedsNoTimer(t *testing.T) {
	slow := func(o *settings) { o.Durable, o.Listen, o.heartbeat = true, "127.0.0.1:0", time.Hour }
	m := openMesh(t, 2, slow)
	const steps = 2000
	lines := m[1].Save()
	swap(t, m, 5, 0, steps)
	m[1].Close()
	o := options(t, 1, 2)
	slow(&o)
	o.nats.Server.Join = []string{address(m[0])}
	m[1] = open(t, o)
	if err := m[1].Start(lines, 0); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	for k := range steps {
		if got, err := receive(ctx, m[1], 0, k); err != nil || !slices.Equal(got, ramp(0, k, 5)) {
			t.Fatalf("iteration %d: %v, %v", k, got, err)
		}
	}
	if s := m[0].Stats(); s.Resent < steps-window {
		t.Errorf("%d messages were sent again, want %d", s.Resent, steps)
	}
}

// A process that is killed after it has sent a report, and starts from a checkpoint before it, need
// not send the same report again: what it sends instead arrives, also at a receiver that starts
// again.
func TestReportsAfterLostOnes(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Durable = true })
	ctx := testContext(t)
	start := func(self int, state []byte) *Node {
		o := options(t, self, 2)
		o.Durable, o.nats.Server.Join = true, []string{address(m[1-self])}
		n := open(t, o)
		if err := n.Start(state, 0); err != nil {
			t.Fatal(err)
		}
		return n
	}
	report := func(want string) {
		t.Helper()
		if _, got, err := nextReport(ctx, m[0], 1); err != nil || string(got) != want {
			t.Fatalf("received %q, %v, want %q", got, err, want)
		}
	}
	send := func(text string) {
		t.Helper()
		if err := m[1].Report(ctx, 0, 1, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	send("kept")
	report("kept")
	before, receiver := m[1].Save(), m[0].Save()
	send("lost")
	report("lost")
	m[1].Close()
	m[1] = start(1, before)
	send("instead")
	report("instead")
	m[0].Close()
	m[0] = start(0, receiver)
	report("kept")
	report("instead")
	send("more")
	report("more")
}

// A large log makes a node ask the peer that it is kept for, and no other, for a checkpoint. What
// the checkpoint contains is then deleted.
func TestLongLogRequestsCheckpoint(t *testing.T) {
	m := openMesh(t, 3, func(o *settings) { o.Durable, o.LogBytes = true, 20_000 })
	swap(t, m, 100, 0, 200)
	select {
	case <-m[1].CheckpointRequested():
	case <-testContext(t).Done():
		t.Fatal("no checkpoint was requested")
	}
	for range 2 { // the checkpoint before this one must not need the messages either
		if err := m[1].Stable(m[1].Save(), 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx := testContext(t)
	for p := m[0].peers[1]; p.logLength() > 0; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d messages are kept", p.logLength())
		}
	}
	select {
	case <-m[2].CheckpointRequested():
		t.Error("a checkpoint of an agent without messages was requested")
	default:
	}
}

// The logs of agents that write checkpoints when they are asked to stay as short, however long the
// run: a few times the limit at most, whatever was sent.
func TestLogsStayShort(t *testing.T) {
	const limit, length, steps = 50_000, 100, 3000
	m := openMesh(t, 2, func(o *settings) { o.Durable, o.LogBytes = true, limit })
	ctx := testContext(t)
	var most [2]int64
	var checkpoints [2]int
	var wg sync.WaitGroup
	for self, n := range m {
		wg.Go(func() {
			for k := range steps {
				if err := send(ctx, n, 1-self, k, ramp(self, k, length)); err != nil {
					t.Error(err)
					return
				}
				if _, err := receive(ctx, n, 1-self, k); err != nil {
					t.Error(err)
					return
				}
				most[self] = max(most[self], int64(n.Peers()[0].LogBytes))
				select {
				case <-n.CheckpointRequested():
					checkpoints[self]++
					if err := n.Stable(n.Save(), 0); err != nil {
						t.Error(err)
					}
				default:
				}
			}
		})
	}
	wg.Wait()
	for self, n := range m {
		sent := n.WireBytes()
		t.Logf("agent %d: %d bytes sent, at most %d kept, %d checkpoints", self, sent, most[self], checkpoints[self])
		if most[self] > 2*limit || sent < 20*limit {
			t.Errorf("agent %d kept %d bytes of %d, with a limit of %d", self, most[self], sent, limit)
		}
		if checkpoints[self] > steps/10 {
			t.Errorf("agent %d made %d checkpoints", self, checkpoints[self])
		}
	}
}

// An agent that crashes and continues from its checkpoint receives again what it had received
// since. What it sends again is delivered once.
func TestAgentRestarts(t *testing.T) {
	durable := func(o *settings) { o.Durable = true }
	m := openMesh(t, 2, durable)
	swap(t, m, 5, 0, 10)
	lines := m[1].Save()
	if err := m[1].Stable(lines, 0); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 10, 30)
	bytes := m[1].WireBytes()
	m[1].Close()
	o := options(t, 1, 2)
	o.Durable, o.nats.Server.Join = true, []string{address(m[0])}
	m[1] = open(t, o)
	if err := m[1].Start(lines, 0); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	for k := 10; k < 30; k++ { // only agent 1 repeats these iterations
		if err := send(ctx, m[1], 0, k, ramp(1, k, 5)); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(ctx, m[1], 0, k); err != nil || !slices.Equal(got, ramp(0, k, 5)) {
			t.Fatalf("iteration %d: %v, %v", k, got, err)
		}
	}
	if m[1].WireBytes() != bytes {
		t.Errorf("%d bytes after the restart, %d before", m[1].WireBytes(), bytes)
	}
	swap(t, m, 5, 30, 40)
}

// Both agents crash. What one must receive again is in the checkpoint of the other.
func TestAllRestart(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Durable = true })
	swap(t, m, 5, 0, 10)
	early := m[1].Save()
	if err := m[1].Stable(early, 0); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 10, 20)
	late := m[0].Save()
	if err := m[0].Stable(late, 0); err != nil {
		t.Fatal(err)
	}
	m[0].Close()
	m[1].Close()
	for i, lines := range [][]byte{late, early} {
		o := options(t, i, 2)
		o.Durable = true
		if i > 0 {
			o.nats.Server.Join = []string{address(m[0])}
		}
		m[i] = open(t, o)
		if err := m[i].Start(lines, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx := testContext(t)
	for k := 10; k < 20; k++ {
		if err := send(ctx, m[1], 0, k, ramp(1, k, 5)); err != nil {
			t.Fatal(err)
		}
		if got, err := receive(ctx, m[1], 0, k); err != nil || !slices.Equal(got, ramp(0, k, 5)) {
			t.Fatalf("iteration %d: %v, %v", k, got, err)
		}
	}
	swap(t, m, 5, 20, 25)
}

// An agent that has lost its checkpoint cannot continue and is told why. The others are not
// disturbed.
func TestLostCheckpointIsRefused(t *testing.T) {
	m := openMesh(t, 3, nil) // not durable: everything consumed is deleted
	swap(t, m, 5, 0, 10)
	deadline := time.Now().Add(time.Minute)
	for m[0].peers[1].logLength() > 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	m[1].Close()
	o := options(t, 1, 3)
	o.nats.Server.Join = []string{address(m[0])}
	m[1] = open(t, o)
	if err := m[1].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	_, err := receive(testContext(t), m[1], 0, 0)
	var h *HandshakeError
	if !errors.As(err, &h) || h.Field != fieldPosition || !strings.Contains(err.Error(), "checkpoint") {
		t.Errorf("error %v", err)
	}
	ctx := testContext(t)
	if err := send(ctx, m[2], 0, 99, ramp(2, 99, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := receive(ctx, m[0], 2, 99); err != nil {
		t.Error(err)
	}
}

func (p *peer) logLength() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.out[exchanges].log)
}

// A node with another seed, layout or program is refused with the name of the property, and not
// dialed again in another way. The run continues.
func TestForeignNodesAreRefused(t *testing.T) {
	m := make(mesh, 2)
	for i := range m {
		o := options(t, i, 3)
		o.Identity, o.Listen = identity("1", "784x10"), "127.0.0.1:0"
		if i > 0 {
			o.nats.Server.Join = []string{address(m[0])}
		}
		m[i] = open(t, o)
		if err := m[i].Start(nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	swap(t, m, 5, 0, 1)
	for name, theirs := range map[string][]Field{
		"seed":    identity("2", "784x10"),
		"layout":  identity("1", "784x20"),
		"program": {{"run", "test"}, {"moon", "full"}},
	} {
		core, lines := observer.New(zapcore.InfoLevel)
		o := options(t, 2, 3)
		o.Identity, o.nats.Server.Join, o.Log = theirs, []string{address(m[0])}, zap.New(core)
		n := open(t, o)
		if err := n.Start(nil, 0); err != nil {
			t.Fatal(err)
		}
		err := n.Ready(testContext(t))
		if h, ok := errors.AsType[*HandshakeError](err); !ok || h.Field != name {
			t.Errorf("%s: error %v", name, err)
		}
		n.Close()
		if relayed := lines.FilterMessageSnippet("relayed").Len(); relayed != 0 {
			t.Errorf("%s: %d relayed connections were tried after the refusal, want none", name, relayed)
		}
	}
	swap(t, m, 5, 1, 5)
	// A node that has heard of one refusal ends, before another node has refused it perhaps.
	first, second := m[0].Stats().Refused, m[1].Stats().Refused
	if first > 1 || second > 1 || first+second == 0 {
		t.Errorf("%d and %d refusals logged, want at most one each, and one at least", first, second)
	}
}

func identity(seed, layout string) []Field {
	return []Field{{"run", "test"}, {"seed", seed}, {"layout", layout}}
}

// A second process of an agent takes its place. The first one ends with an error.
func TestSecondProcessOfAnAgent(t *testing.T) {
	m := openMesh(t, 2, nil)
	swap(t, m, 5, 0, 3)
	o := options(t, 1, 2)
	o.nats.Server.Join = []string{address(m[0])}
	second := open(t, o)
	if err := second.Start(m[1].Save(), 0); err != nil {
		t.Fatal(err)
	}
	_, err := receive(testContext(t), m[1], 0, 99)
	if h, ok := errors.AsType[*HandshakeError](err); !ok || h.Field != fieldProcess {
		t.Errorf("error %v", err)
	}
	m[1] = second
	swap(t, m, 5, 3, 10)
}

// A second process of agent 0, which dials nobody, takes its place when the first one ends.
func TestSecondProcessOfAgent0(t *testing.T) {
	// A relayed heartbeat would reach both processes, and end the connection to the first one.
	m := openMesh(t, 2, func(o *settings) { o.heartbeat = time.Hour })
	swap(t, m, 5, 0, 3)
	o := options(t, 0, 2)
	o.nats.Server.Join = []string{address(m[1])}
	second := open(t, o)
	if err := second.Start(m[0].Save(), 0); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if m[0].ConnectedPeers() != 1 || second.ConnectedPeers() != 0 {
		t.Errorf("%d agents are connected to the first process, %d to the second", m[0].ConnectedPeers(),
			second.ConnectedPeers())
	}
	m[0].Close()
	m[0] = second
	swap(t, m, 5, 3, 10)
}

// Reports are delivered in order, independently of exchanges, and are bounded in size.
func TestReports(t *testing.T) {
	m := openMesh(t, 2, nil)
	ctx := testContext(t)
	go func() {
		for k := range 30 {
			if err := m[1].Report(ctx, 0, 10*k, []byte(fmt.Sprint("report ", k))); err != nil {
				t.Error(err)
			}
		}
	}()
	for k := range 30 {
		at, text, err := nextReport(ctx, m[0], 1)
		if err != nil || at != 10*k || string(text) != fmt.Sprint("report ", k) {
			t.Fatalf("%d %q %v", at, text, err)
		}
	}
	if err := m[1].AwaitReports(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := m[1].Report(ctx, 0, 0, make([]byte, 1<<30)); err == nil {
		t.Error("a report above the limit was sent")
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, edit := range map[string]func(*settings){
		"run":     func(o *settings) { o.Run = "a b" },
		"address": func(o *settings) { o.Listen = "here" },
		"4 GB":    func(o *settings) { o.Dim = math.MaxInt32 },
	} {
		o := options(t, 0, 2)
		edit(&o)
		if n, err := tryOpen(o); err == nil {
			n.Close()
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The error for a port in use names the port.
func TestPortTaken(t *testing.T) {
	m := openMesh(t, 1, func(o *settings) { o.Listen = "127.0.0.1:0" })
	at := m[0].addresses()[0]
	o := options(t, 1, 2)
	o.Listen = at
	n, err := tryOpen(o)
	if err == nil {
		n.Close()
	}
	if err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "port taken") {
		t.Errorf("%v", err)
	}
}
