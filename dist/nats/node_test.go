package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"

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

// A network that loses a third of all frames of every kind, and duplicates a sixth, delays a run
// and changes nothing else.
func TestLostAndDuplicatedFrames(t *testing.T) {
	var mu sync.Mutex
	s := rng.New(7, "faults")
	m := openMesh(t, 2, func(o *Options) {
		o.requestDelay = 4 * time.Millisecond
		o.chunk = 3000
		o.fault = func(*frame) int {
			mu.Lock()
			defer mu.Unlock()
			switch k := s.IntN(6); k {
			case 0, 1:
				return 0
			case 2:
				return 2
			}
			return 1
		}
	})
	swap(t, m, 10, 0, 40)
	swap(t, m, 2000, 40, 50) // messages of many fragments
	if a, b := m[0].Stats(), m[1].Stats(); a.Retransmitted+b.Retransmitted == 0 || a.Requested+b.Requested == 0 {
		t.Errorf("nothing was requested again: %+v %+v", a, b)
	}
}

// An agent that crashes and continues from its checkpoint receives again what it had received
// since. What it sends again is delivered once.
func TestAgentRestarts(t *testing.T) {
	durable := func(o *Options) { o.Durable = true }
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
	o.Durable, o.Server.Join = true, []string{m[0].Address()}
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
	m := openMesh(t, 2, func(o *Options) { o.Durable = true })
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
			o.Server.Join = []string{m[0].Address()}
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
	deadline := time.Now().Add(10 * time.Second)
	for m[0].peers[1].logLength() > 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	m[1].Close()
	o := options(t, 1, 3)
	o.Server.Join = []string{m[0].Address()}
	m[1] = open(t, o)
	if err := m[1].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	_, err := receive(testContext(t), m[1], 0, 0)
	var h *HandshakeError
	if !errors.As(err, &h) || h.Field != "stream position" || !strings.Contains(err.Error(), "checkpoint") {
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

// A node with another seed, layout or program is refused with the name of the property. The run
// continues.
func TestForeignNodesAreRefused(t *testing.T) {
	m := make(mesh, 2)
	for i := range m {
		o := options(t, i, 3)
		o.Identity = identity("1", "784x10")
		if i > 0 {
			o.Server.Join = []string{m[0].Address()}
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
		o := options(t, 2, 3)
		o.Identity, o.Server.Join = theirs, []string{m[0].Address()}
		n := open(t, o)
		if err := n.Start(nil, 0); err != nil {
			t.Fatal(err)
		}
		err := n.Ready(testContext(t))
		var h *HandshakeError
		if !errors.As(err, &h) || h.Field != name {
			t.Errorf("%s: error %v", name, err)
		}
		n.Close()
	}
	swap(t, m, 5, 1, 5)
	if m[0].Stats().Refused != 1 {
		t.Errorf("%d refusals logged, want one", m[0].Stats().Refused)
	}
}

func identity(seed, layout string) []Field {
	return []Field{{"run", "test"}, {"seed", seed}, {"layout", layout}}
}

// Replays of an earlier incarnation and invented frames change nothing.
func TestReplaysAndGarbage(t *testing.T) {
	var mu sync.Mutex
	var old [][]byte
	m := openMesh(t, 2, nil)
	record := func(msg *client.Msg) {
		mu.Lock()
		old = append(old, slices.Clone(msg.Data))
		mu.Unlock()
	}
	spy, err := m[1].conn.Subscribe(m[1].subject(1, "*"), record)
	if err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 0, 10)
	if err := spy.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	m[1].Close()
	m[0].Close()
	m = openMesh(t, 2, nil) // another incarnation of both
	swap(t, m, 5, 0, 3)
	mu.Lock()
	defer mu.Unlock()
	s := rng.New(3, "noise")
	for _, b := range old {
		if err := m[0].conn.Publish(m[0].subject(1, "0"), b); err != nil {
			t.Fatal(err)
		}
		b = slices.Clone(b)
		b[s.IntN(len(b))] ^= byte(1 + s.IntN(255))
		if err := m[0].conn.Publish(m[0].subject(1, "0"), b); err != nil {
			t.Fatal(err)
		}
	}
	swap(t, m, 5, 3, 20)
	if got := m[1].Stats().Dropped; got < uint64(len(old))*9/10 {
		t.Errorf("%d frames dropped of %d that were damaged", got, len(old))
	}
}

// A node can use an existing cluster.
func TestCluster(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	m := make(mesh, 2)
	for i := range m {
		o := options(t, i, 2)
		o.URL, o.Server = s.ClientURL(), Server{}
		m[i] = open(t, o)
	}
	m.start(t)
	swap(t, m, testDim, 0, 3)
	if _, err := Open(Options{Run: "test", Agents: 1, Dim: 1, Pool: m[0].opt.Pool,
		URL: "nats://127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("connected to a server that does not exist: %v", err)
	}
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
		at, text, err := m[0].NextReport(ctx, 1)
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
	for name, edit := range map[string]func(*Options){
		"run":     func(o *Options) { o.Run = "a b" },
		"address": func(o *Options) { o.Server.Listen = "here" },
		"join":    func(o *Options) { o.Server.Join = []string{"there"} },
		"4 GB":    func(o *Options) { o.Dim = math.MaxInt32 },
	} {
		o := options(t, 0, 2)
		edit(&o)
		if n, err := Open(o); err == nil {
			n.Close()
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), name) && name != "join" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The error for a port in use names the port.
func TestPortTaken(t *testing.T) {
	m := openMesh(t, 1, nil)
	o := options(t, 1, 2)
	o.Server.Listen, o.Log = m[0].Address(), zap.NewNop()
	n, err := Open(o)
	if err == nil {
		n.Close()
	}
	if err == nil || !strings.Contains(err.Error(), m[0].Address()) || !strings.Contains(err.Error(), "port taken") {
		t.Errorf("%v", err)
	}
}
