package nats

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"fspda/dist/discover"
	"fspda/dist/link"
	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
)

// mesh holds the Discovery of each agent of a run, in one process. The agents answer each relayed
// connection with the bytes that they receive.
type mesh []*Discovery

// options returns the options of agent i of n.
func options(t *testing.T, i, n int) Options {
	return Options{Run: "test", Self: i, Agents: n, Server: Server{Listen: "127.0.0.1:0"},
		Log: zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))}
}

// openMesh opens and starts the Discoveries of n agents. edit may change their options.
func openMesh(t *testing.T, n int, edit func(*Options)) mesh {
	t.Helper()
	m := make(mesh, n)
	for i := range m {
		o := options(t, i, n)
		if i > 0 {
			o.Server.Join = []string{m[0].Address()}
		}
		if edit != nil {
			edit(&o)
		}
		m[i] = open(t, o)
	}
	return m
}

// open opens and starts a Discovery.
func open(t *testing.T, o Options) *Discovery {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if err := d.Start(t.Context(), echo(o.Self)); err != nil {
		t.Fatal(err)
	}
	return d
}

// echo is an agent whose address is its rank.
func echo(rank int) discover.Agent {
	return discover.Agent{Addresses: func() []string { return []string{at(rank)} },
		Connected: func() int { return 1 }, Fail: func(error) {},
		Connect: func(context.Context) (net.Conn, error) {
			outer, inner := net.Pipe()
			go func() {
				defer inner.Close()
				_, _ = io.Copy(inner, inner)
			}()
			return outer, nil
		}}
}

func at(rank int) string { return fmt.Sprint("127.0.0.1:", 1000+rank) }

// testContext bounds a wait that should be short, generously for overloaded machines.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// check lets each agent ask all agents of lower rank for their addresses, and send bytes over
// relayed connections to them until all have come back.
func (m mesh) check(t *testing.T) {
	t.Helper()
	for i := range m {
		for j := range i {
			m.checkPair(t, i, j)
		}
	}
}

// checkPair is check of agent i and agent j, of lower rank.
func (m mesh) checkPair(t *testing.T, i, j int) {
	t.Helper()
	d := m[i]
	got, err := d.Addresses(testContext(t), j)
	if err != nil || !slices.Equal(got, []string{at(j)}) {
		t.Fatalf("agent %d is told that agent %d accepts connections at %v, %v", i, j, got, err)
	}
	for ctx := testContext(t); ; {
		if err = roundTrip(d, j); err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("agent %d to agent %d, with %d neighbours: %v", i, j, d.neighbours(), err)
		}
	}
}

// roundTrip sends bytes over a relayed connection and receives them again.
func roundTrip(d *Discovery, agent int) error {
	c, err := d.Relay(agent)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	sent, got := bytes.Repeat([]byte("fspda "), 30_000), make([]byte, 180_000)
	go func() { _, _ = c.Write(sent) }()
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if !bytes.Equal(sent, got) {
		return errors.New("the bytes that came back are not those that were sent")
	}
	return nil
}

// Agents find each other, and relay connections, over their own servers.
func TestRelay(t *testing.T) { openMesh(t, 3, nil).check(t) }

// NATS may lose, repeat or reorder the packets of a relayed connection: this ends the connection.
func TestLostPacketEndsConnection(t *testing.T) {
	m := openMesh(t, 2, nil)
	m.check(t)
	for _, lost := range []struct {
		kind byte
		seq  uint64
	}{{packetData, 0}, {packetData, 1000}, {packetEnd, 2000}} {
		c, err := m[1].Relay(0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		p := m[1].peers[0]
		if err := p.publish(lost.kind, p.relay.current.id, lost.seq, []byte("x")); err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after packet %d of kind %d: %v, want the end of the connection", lost.seq, lost.kind, err)
		}
	}
	m.check(t)
}

// A relayed connection that the other end has closed delivers the bytes that had arrived before.
func TestRelayEndsAfterItsData(t *testing.T) {
	m := openMesh(t, 2, nil)
	p := m[1].peers[0]
	outer, inner := net.Pipe()
	const id, packets = 7, 100
	p.startRelay(id, inner)
	for k := range packets {
		if err := p.receivePacket(packetData, id, uint64(k), []byte{byte(k)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.receivePacket(packetEnd, id, 0, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(outer); err != nil || len(b) != packets || b[packets-1] != packets-1 {
		t.Errorf("read %d bytes, %v, want %d", len(b), err, packets)
	}
}

// An agent that is started again accepts connections at another address. Nobody is told the address
// of its earlier process, which an answer that was not read has named.
func TestAddressOfEarlierProcess(t *testing.T) {
	m := openMesh(t, 2, nil)
	m.check(t)
	for ctx := testContext(t); len(m[1].peers[0].offers) == 0 && ctx.Err() == nil; time.Sleep(minAsk) {
		if err := m[1].peers[0].publish(packetAsk, 0, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	m[0].Close()
	o := options(t, 0, 2)
	o.Server.Join = []string{m[1].Address()}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if err := d.Start(t.Context(), echo(7)); err != nil {
		t.Fatal(err)
	}
	if got, err := m[1].Addresses(testContext(t), 0); err != nil || !slices.Equal(got, []string{at(7)}) {
		t.Errorf("%v, %v, want the address of the new process", got, err)
	}
}

// Nobody is told the addresses of an agent that closes.
func TestNoAddressWhileClosing(t *testing.T) {
	o := options(t, 0, 2)
	first, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	if err := first.Start(ctx, echo(0)); err != nil {
		t.Fatal(err)
	}
	o = options(t, 1, 2)
	o.Server.Join = []string{first.Address()}
	m := mesh{first, open(t, o)}
	m.check(t)
	end()
	for first.open.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if got, err := m[1].Addresses(short, 0); err == nil {
		t.Errorf("an agent that closes says that it accepts connections at %v", got)
	}
}

// The addresses of an agent may change while it runs. A flood of asks is not answered one by one.
func TestAsks(t *testing.T) {
	m := openMesh(t, 2, nil)
	m.check(t)
	var asked atomic.Int64
	const elsewhere = "10.0.0.7:4700"
	m[0].Close()
	o := options(t, 0, 2)
	o.Server.Join = []string{m[1].Address()}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	a := echo(0)
	a.Addresses = func() []string {
		if asked.Add(1) == 1 {
			return []string{at(0)}
		}
		return []string{elsewhere}
	}
	if err := d.Start(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for ctx := testContext(t); ; {
		got, err := m[1].Addresses(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] == elsewhere {
			break
		}
	}
	before, began := asked.Load(), time.Now()
	for range 5000 {
		if err := m[1].peers[0].publish(packetAsk, 0, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := roundTrip(m[1], 0); err != nil { // The packets before it have arrived.
		t.Fatal(err)
	}
	if n, most := asked.Load()-before, 2+int64(time.Since(began)/(minAsk/2)); n > most {
		t.Errorf("%d asks were answered in %v, want at most %d", n, time.Since(began), most)
	}
}

// Packets that are not of the run, or of another version, are dropped. Without certificates an
// agent that nobody is connected to ends if the others have another version, with certificates
// after a minute.
func TestForeignPackets(t *testing.T) {
	m := openMesh(t, 2, nil)
	m.check(t)
	other := append([]byte(magic), make([]byte, packetHeader)...)
	other[4] = discover.Version - 1
	for _, b := range [][]byte{nil, []byte("noise"), other, append([]byte(magic), discover.Version, 99)} {
		if err := m[0].conn.Publish(subject("test", 1, "0"), b); err != nil {
			t.Fatal(err)
		}
	}
	for ctx := testContext(t); m[1].Stats().Dropped < 4 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	m.check(t)
	for connected, ends := range map[int]bool{0: true, 1: false} {
		failed := make(chan error, 1)
		m[0].agent.Connected, m[0].agent.Fail = func() int { return connected }, func(err error) { failed <- err }
		m[0].receive(&client.Msg{Subject: "fspda.test.0.1", Data: other})
		select {
		case err := <-failed:
			if !ends || !strings.Contains(err.Error(), "same program") {
				t.Errorf("with %d connected: %v", connected, err)
			}
		default:
			if ends {
				t.Errorf("with %d connected the agent goes on", connected)
			}
		}
	}
	failed := make(chan error, 2)
	m[0].agent.Connected, m[0].agent.Fail = func() int { return 0 }, func(err error) { failed <- err }
	m[0].opt.TLS, m[0].versionGrace = &tls.Config{}, 50*time.Millisecond
	m[0].peers[1].foreign = time.Time{}
	for k := range 2 { // With certificates one packet is not enough.
		m[0].receive(&client.Msg{Subject: "fspda.test.0.1", Data: other})
		if len(failed) != k {
			t.Errorf("after %d packets of another version %d failures", k+1, len(failed))
		}
		time.Sleep(60 * time.Millisecond)
	}
}

// A client that may publish on the subjects floods an agent with packets: connections that it opens
// and others, offers, and garbage. This is logged once and occupies no memory, and the run
// continues.
func TestFloodOfPackets(t *testing.T) {
	core, lines := observer.New(zapcore.WarnLevel)
	m := openMesh(t, 3, func(o *Options) { o.Log = zap.New(core) })
	m.check(t)
	before := heap()
	s := rng.New(5, "flood")
	for k := range 5000 {
		b := append([]byte(magic), discover.Version, byte(k%6), 0, 0)
		b = append(b, make([]byte, 16+1000)...)
		b[8] = byte(1 + k%3) // connection
		b[16] = byte(k / 18) // packet
		if k%3 == 0 {
			b[s.IntN(8)] ^= byte(1 + s.IntN(255))
		}
		if err := m[2].conn.Publish("fspda.test.0.1", b); err != nil { // in the name of agent 1
			t.Fatal(err)
		}
	}
	if err := m[2].conn.Flush(); err != nil {
		t.Fatal(err)
	}
	m.check(t)
	ctx := testContext(t)
	for m[0].Stats().Dropped < 1000 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	// Packets that the server and the client still hold become free when they are delivered.
	for heap() > before+8<<20 {
		if ctx.Err() != nil {
			t.Fatalf("%d bytes more are in use", heap()-before)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := lines.FilterMessageSnippet("dropped invalid").Len(); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}

// heap returns the memory in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Agents can use an existing cluster, which may start after them.
func TestCluster(t *testing.T) {
	for name, late := range map[string]bool{"early": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			port := disttest.UnusedPort(t)
			start := func() {
				s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true})
				if err != nil {
					t.Fatal(err)
				}
				s.Start()
				t.Cleanup(s.Shutdown)
			}
			if !late {
				start()
			}
			m := openMesh(t, 2, func(o *Options) {
				o.URL, o.Server, o.Log = fmt.Sprint("nats://127.0.0.1:", port), Server{}, zap.NewNop()
			})
			if late {
				start()
			}
			m.check(t)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	taken := openMesh(t, 1, nil)[0].Address()
	for name, c := range map[string]struct {
		edit func(*Options)
		want string
	}{
		"run":    {func(o *Options) { o.Run = "a b" }, `the run is named "a b"`},
		"listen": {func(o *Options) { o.Server.Listen = "here" }, `"here" is not an address`},
		"join":   {func(o *Options) { o.Server.Join = []string{"there"} }, `"there" is not an address`},
		"port":   {func(o *Options) { o.Server.Listen, o.Log = taken, zap.NewNop() }, "port taken"},
	} {
		o := options(t, 0, 2)
		c.edit(&o)
		if d, err := Open(o); err == nil {
			d.Close()
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), c.want) || name == "port" && !strings.Contains(err.Error(), taken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// certified writes certificates for all agents of the run in a folder, and returns an edit that
// gives each its own.
func certified(t *testing.T, dir string, agents int) func(*Options) {
	t.Helper()
	if err := link.WriteCredentials(dir, "test", agents, time.Hour); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		c, err := link.ReadCredentials(dir, "test", o.Self)
		if err != nil {
			t.Fatal(err)
		}
		o.TLS, o.Client = c.Agents, c.Client
	}
}

// The listener for other servers accepts TLS 1.3 only, and only servers with a certificate.
func TestServerAuthenticates(t *testing.T) {
	edit := certified(t, t.TempDir(), 2)
	d := openMesh(t, 1, edit)[0]
	enter := func(c *tls.Config) error {
		conn, err := net.DialTimeout("tcp", d.Address(), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		s := tls.Client(conn, c)
		if err := s.Handshake(); err != nil {
			return err
		}
		_, err = s.Read(make([]byte, 1))
		return err
	}
	o := options(t, 1, 2)
	edit(&o)
	if err := enter(o.TLS); err != nil {
		t.Errorf("an agent of the run: %v", err)
	}
	old := o.TLS.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if enter(old) == nil {
		t.Error("TLS 1.2 was accepted")
	}
	if enter(&tls.Config{InsecureSkipVerify: true}) == nil {
		t.Error("a client without a certificate was accepted")
	}
	foreign := certified(t, t.TempDir(), 2)
	o.Server.Join, o.Log = []string{d.Address()}, zap.NewNop()
	foreign(&o)
	n := open(t, o)
	time.Sleep(300 * time.Millisecond)
	if n.neighbours() != 0 || d.neighbours() != 0 {
		t.Errorf("a server with a certificate of another authority has %d neighbours", n.neighbours())
	}
}

// An existing cluster grants each agent the permissions of its certificate: it publishes under its
// own rank and receives only its own packets.
func TestPermissionsInCluster(t *testing.T) {
	dir := t.TempDir()
	edit := certified(t, dir, 3)
	url := cluster(t, dir, 3)
	m := openMesh(t, 2, func(o *Options) {
		o.Agents, o.URL, o.Server = 3, url, Server{}
		edit(o)
	})
	m.check(t)
	third := Options{Self: 2, URL: url}
	edit(&third)
	refused := make(chan error, 10)
	spy, err := client.Connect(url, append(third.client(),
		client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) { refused <- err }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer spy.Close()
	before := m[1].Stats()
	if _, err := spy.Subscribe("fspda.test.1.*",
		func(*client.Msg) { t.Error("agent 2 received a packet to agent 1") }); err != nil {
		t.Fatal(err)
	}
	if err := spy.Publish("fspda.test.1.0", []byte("in the name of agent 0")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-refused:
		case <-time.After(2 * time.Minute):
			t.Fatal("the cluster let agent 2 subscribe or publish for other agents")
		}
	}
	m.check(t)
	if got := m[1].Stats().Dropped; got != before.Dropped {
		t.Errorf("%d foreign packets arrived", got-before.Dropped)
	}
	if c, err := client.Connect(url, client.Secure(&tls.Config{InsecureSkipVerify: true})); err == nil {
		c.Close()
		t.Error("a client without a certificate is connected to the cluster")
	}
}

// cluster starts a NATS server that knows the agents of a run by their certificates, configured as
// in docs/many-machines.md, and returns its URL.
func cluster(t *testing.T, dir string, agents int) string {
	t.Helper()
	if err := link.WriteServerCredentials(dir, "test", []string{"127.0.0.1", "cluster"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "nats-server.pem"), filepath.Join(dir, "nats-server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, TLS: true,
		TLSMap: true, TLSVerify: true, TLSTimeout: 5, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13,
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}}
	for i := range agents {
		publish, subscribe := Permissions("test", i)
		o.Users = append(o.Users, &server.User{Username: fmt.Sprint("fspda://test/agent/", i),
			Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{publish}},
				Subscribe: &server.SubjectPermission{Allow: []string{subscribe}}}})
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the cluster does not start")
	}
	return "tls://" + s.Addr().String()
}

// Packets may be anything.
func FuzzPacket(f *testing.F) {
	d := &Discovery{opt: Options{Agents: 3, Self: 1, Run: "x"}, log: zap.NewNop(),
		agent: discover.Agent{Connected: func() int { return 0 }, Fail: func(error) {}}}
	f.Add([]byte(`{"addresses":["10.0.0.1:4700"]}`))
	f.Add([]byte(magic + "\x05\x02\x00\x00................" + `{"addresses":["10.0.0.1:4700"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decodeOffer(b); err == nil && len(o.Addresses) > discover.MaxAddresses {
			t.Errorf("%d addresses", len(o.Addresses))
		}
		d.peers = []*peer{{discovery: d, offers: make(chan offer, 1)}, nil, {discovery: d, id: 2}}
		if kind := append(b, make([]byte, 6)...)[5]; kind == packetOffer { // the others are answered
			d.receive(&client.Msg{Subject: "fspda.x.1.0", Data: b})
		}
	})
}
