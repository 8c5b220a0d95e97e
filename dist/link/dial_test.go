package link

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	tls "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"fspda/cpu"
	"fspda/dist"
)

// withDirect gives every node a server on this machine, and vectors from which large messages are
// sent and into which they are received without a copy.
func withDirect(o *settings) {
	o.Dim, o.Listen, o.Pool = largeDim, "127.0.0.1:0", dist.NewPool(cpu.New())
}

// largeDim values are enough for a message to be sent in place.
const largeDim = 300_000

// withCertificates writes certificates for all agents and returns an edit that gives each node its
// own.
func withCertificates(t *testing.T, agents int) func(o *settings) {
	t.Helper()
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", agents, time.Hour); err != nil {
		t.Fatal(err)
	}
	return func(o *settings) { o.TLS = credentials(t, dir, "test", o.Self) }
}

// A node connects directly where it can, and over a relay where it cannot.
func TestDirectOrRelayed(t *testing.T) {
	for name, c := range map[string]struct{ listen, advertise string }{
		"direct":      {"127.0.0.1:0", ""},
		"unreachable": {"127.0.0.1:0", "127.0.0.2"}, // no server listens there
		"no server":   {},
	} {
		t.Run(name, func(t *testing.T) {
			certified := withCertificates(t, 2)
			m := openMesh(t, 2, func(o *settings) {
				withDirect(o)
				certified(o)
				o.Listen, o.Advertise = c.listen, c.advertise
			})
			swap(t, m, largeDim, 0, 4)
			swap(t, m, 10, 4, 8)
			for _, n := range m {
				if got, want := n.Peers()[0].Direct, name == "direct"; got != want || n.Stats().Direct > 0 != want {
					t.Errorf("agent %d is connected directly: %v, want %v", n.opt.Self, got, want)
				}
			}
		})
	}
}

// A direct connection that replaces a relayed one neither repeats nor loses a message, and no agent
// is refused. Every second direct connection fails at once, so that NATS relays one meanwhile, and
// the others break after a while.
func TestDirectReplacesRelayed(t *testing.T) {
	const replaced = 12
	var direct atomic.Int64
	m := openMesh(t, 2, func(o *settings) {
		o.Listen, o.directRetry, o.maxRedial = "127.0.0.1:0", 10*time.Millisecond, 20*time.Millisecond
		o.wrap = func(c net.Conn) net.Conn {
			if _, ok := c.(*net.TCPConn); !ok {
				return c
			}
			if direct.Add(1)%2 == 1 {
				_ = c.Close()
			} else {
				time.AfterFunc(20*time.Millisecond, func() { _ = c.Close() })
			}
			return c
		}
	})
	enough := func(s Stats) bool { return s.Reconnects >= replaced && s.Direct > 0 && s.Direct < s.GotFrames }
	for k := 0; !(enough(m[0].Stats()) && enough(m[1].Stats())) && !t.Failed(); k += 20 {
		swap(t, m, 5, k, k+20)
	}
	for _, n := range m {
		if s := n.Stats(); s.Dropped != 0 || s.Refused != 0 {
			t.Errorf("agent %d dropped %d frames and refused %d connections, want none", n.opt.Self, s.Dropped,
				s.Refused)
		}
	}
}

// A frame that is being read while another connection replaces its link is not an invalid one: the
// numbers that are expected next are those of the other connection.
func TestFrameOfReplacedLink(t *testing.T) {
	n := &Node{opt: Options{Agents: 2, LogBytes: 1}, bodyCodec: bodyCodec{dim: 100}}
	p := newPeer(n, 1)
	n.peers = []*peer{nil, p}
	old := newLink(p, nil, false)
	p.link = newLink(p, nil, true)
	p.in[exchanges].next = 7
	if err := old.assemble(&header{kind: kindData, seq: 3}, &inFrame{}); !errors.Is(err, errSuperseded) {
		t.Errorf("message 3 over a replaced link: %v, want %v", err, errSuperseded)
	}
	var invalid *FrameError
	if err := p.link.assemble(&header{kind: kindData, seq: 3}, &inFrame{}); !errors.As(err, &invalid) {
		t.Errorf("message 3 in place of 7: %v, want a FrameError", err)
	}
}

// A server accepts only agents of the run, each under its own rank, and its dialers accept only the
// agent that they expect.
func TestHandshakeAuthenticates(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for d, run := range map[string]string{dir: "test", other: "test2"} {
		if err := WriteCredentials(d, run, 4, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	m := openMesh(t, 2, func(o *settings) {
		o.TLS, o.Listen = credentials(t, dir, "test", o.Self), "127.0.0.1:0"
	})
	swap(t, m, 5, 0, 3)
	abroad := credentials(t, other, "test2", 1)
	abroad.agent.run = "test" // it accepts any server
	abroad.agent.pool = credentials(t, dir, "test", 1).agent.pool
	valid := hello{Run: "test", From: 1, Incarnation: 7, Identity: m[1].opt.Identity}
	as := func(h hello, edit func(h *hello)) hello { edit(&h); return h }
	for name, c := range map[string]struct {
		by    *Credentials // nil: none
		hello hello
	}{
		"no certificate":       {nil, valid},
		"of another authority": {&abroad, valid},
		"another's rank":       {by(credentials(t, dir, "test", 2)), valid},
		"the server's rank":    {by(credentials(t, dir, "test", 0)), as(valid, func(h *hello) { h.From = 0 })},
		"rank out of range":    {by(credentials(t, dir, "test", 3)), as(valid, func(h *hello) { h.From = 3 })},
		"another run":          {by(credentials(t, dir, "test", 1)), as(valid, func(h *hello) { h.Run = "x" })},
		"no incarnation":       {by(credentials(t, dir, "test", 1)), as(valid, func(h *hello) { h.Incarnation = 0 })},
		"impossible position":  {by(credentials(t, dir, "test", 1)), as(valid, func(h *hello) { h.Next[0] = 1 })},
	} {
		if err := tryHandshake(t, m[0].addresses()[0], c.by, c.hello); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	p := newPeer(m[1], 0) // the agent at the address of agent 0 must be agent 0
	p.id = 2
	if _, err := p.dialDirect(testContext(t), m[0].addresses()); err == nil {
		t.Error("agent 0 was accepted as agent 2")
	}
	swap(t, m, 5, 3, 10)
}

func by(c Credentials) *Credentials { return &c }

// tryHandshake sends a handshake to the server of agent 0 and returns an error unless it is
// answered by one.
func tryHandshake(t *testing.T, address string, c *Credentials, h hello) error {
	creds := insecure.NewCredentials()
	if c != nil {
		creds = tls.NewTLS(c.linkTo(0))
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewStream(testContext(t), &streamDesc, methodPath, grpc.ForceCodecV2(frameCodec{}))
	if err != nil {
		return err
	}
	l := newLink(nil, s, true)
	if err := l.writeControl(kindHello, h); err != nil {
		return err
	}
	_, _, err = l.readControl()
	return err
}

// When the server of an agent closes, its link ends; the dialer comes back when there is one again.
func TestServerRestarts(t *testing.T) {
	direct := func(o *settings) { o.Durable, o.Listen = true, "127.0.0.1:0" }
	m := openMesh(t, 2, direct)
	swap(t, m, 5, 0, 5)
	lines := m[0].Save()
	m[0].Close()
	o := options(t, 0, 2)
	direct(&o)
	o.nats.Server.Join = []string{address(m[1])}
	m[0] = open(t, o)
	if err := m[0].Start(lines, 0); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 5, 20)
	if s := m[1].Stats(); s.Reconnects != 1 {
		t.Errorf("%d reconnects, want 1", s.Reconnects)
	}
}

// The last messages before Close arrive, from either end, direct or relayed.
func TestDrainsOnClose(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", ""} {
		for closes := range 2 {
			m := openMesh(t, 2, func(o *settings) { withDirect(o); o.Listen = listen })
			swap(t, m, 5, 0, 3)
			ctx := testContext(t)
			for i := range 3 {
				if err := send(ctx, m[closes], 1-closes, 3+i, ramp(0, 3+i, largeDim)); err != nil {
					t.Fatal(err)
				}
			}
			m[closes].Close()
			for i := range 3 {
				if _, err := receive(ctx, m[1-closes], closes, 3+i); err != nil {
					t.Fatal(err)
				}
			}
			m[1-closes].Close()
		}
	}
}

// Garbage over a link of an agent ends the link and has no other effect.
func TestGarbageEndsLink(t *testing.T) {
	m := openMesh(t, 2, func(o *settings) { o.Listen = "127.0.0.1:0" })
	swap(t, m, 5, 0, 3)
	for k, f := range []outFrame{
		{header: []byte("short")},
		{header: make([]byte, headerSize)},
		{header: (&header{kind: kindData, seq: 1000}).append(nil)},
		{header: (&header{kind: kindData, total: 1 << 31, raw: 1 << 31}).append(nil)},
		{header: (&header{kind: kindAck, ack: ack{next: [numStreams]uint64{1 << 40}}}).append(nil)},
		{header: (&header{kind: kindHello}).append(nil)},
		{header: make([]byte, headerSize), payload: make([]byte, maxChunk+1)},
	} {
		p := m[1].peers[0]
		p.mu.Lock()
		l := p.link
		p.mu.Unlock()
		_ = l.stream.SendMsg(&f)
		select {
		case <-l.done:
		case <-testContext(t).Done():
			t.Fatalf("garbage %d did not end the link", k)
		}
		swap(t, m, 5, 3+10*k, 13+10*k)
	}
}

// The addresses of a server that listens everywhere include that of this machine.
func TestListenAddresses(t *testing.T) {
	at := &net.TCPAddr{Port: 7}
	for _, c := range []struct{ host, advertise, want string }{
		{"0.0.0.0", "", "127.0.0.1:7"}, {"10.1.2.3", "", "10.1.2.3:7"}, {"0.0.0.0", "far", "far:7"},
	} {
		if got := listenAddresses(c.host, c.advertise, at); got[len(got)-1] != c.want {
			t.Errorf("%s, %q: %v", c.host, c.advertise, got)
		}
	}
}

// BenchmarkReplay measures how fast a restarted agent receives again what it has missed, as a
// multiple of the speed at which two agents that compute nothing exchange the same messages. x_live
// is without the time to connect, which x_live_connecting includes. Both speeds are measured in
// turns.
func BenchmarkReplay(b *testing.B) {
	const size, steps = 1000, 2000
	var live, replay, connecting time.Duration
	for range b.N {
		m := benchMesh(b, size, true)
		begin := time.Now()
		benchExchange(b, m, size, steps)
		live += time.Since(begin)
		m[1].Close()
		begin = time.Now()
		m[1] = benchNode(b, 1, size, true, address(m[0]))
		for k := range steps {
			got, err := m[1].Recv(context.Background(), 1, 0, k)
			if err != nil {
				b.Fatal(err)
			}
			got.Release()
			if k == 0 {
				connecting += time.Since(begin)
				begin = time.Now()
			}
		}
		replay += time.Since(begin)
		m[0].Close()
		m[1].Close()
	}
	b.ReportMetric(live.Seconds()/replay.Seconds(), "x_live")
	b.ReportMetric(live.Seconds()/(connecting+replay).Seconds(), "x_live_connecting")
	b.ReportMetric(float64(replay.Microseconds())/float64(b.N*(steps-1)), "µs/message")
}
