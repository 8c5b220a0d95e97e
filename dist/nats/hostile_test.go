package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/internal/rng"
)

// heap returns the memory in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A client that may publish on the subjects, but has no certificate, floods an agent with packets:
// connections that it opens and others, offers, and garbage. This is logged once and occupies no
// memory, and the run continues.
func TestFloodOfPackets(t *testing.T) {
	core, lines := observer.New(zapcore.WarnLevel)
	certified := withCertificates(t, 3)
	m := openMesh(t, 3, func(o *Options) {
		certified(o)
		o.Log = zap.New(core)
	})
	swap(t, m, 5, 0, 3)
	before := heap()
	s := rng.New(5, "flood")
	for k := range 5000 {
		b := append([]byte(magic), Version, byte(k%6), 0, 0)
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
	swap(t, m, 5, 3, 20)
	for m[0].Stats().Dropped < 1000 && testContext(t).Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if p := m[0].peers[1]; p.incarnation != m[1].incarnation {
		t.Error("a foreign client was accepted as agent 1")
	}
	if after := heap(); after > before+8<<20 {
		t.Errorf("%d bytes more are in use", after-before)
	}
	if n := lines.FilterMessageSnippet("dropped invalid").Len(); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}

// A client that sends garbage to a listener without authenticating is disconnected.
func TestGarbageStreamsUseBoundedMemory(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", 2, time.Hour); err != nil {
		t.Fatal(err)
	}
	m := openMesh(t, 2, func(o *Options) {
		withDirect(o)
		o.TLS = credentials(t, dir, "test", o.Self)
	})
	before := heap()
	noise := make([]byte, 64<<10)
	for name, address := range map[string]string{"routes": m[0].Address(), "direct links": m[0].direct.addresses[0]} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		sent := 0
		for ; err == nil && sent < 256<<20; sent += len(noise) {
			_, err = conn.Write(noise)
		}
		if failure, ok := errors.AsType[net.Error](err); err == nil || ok && failure.Timeout() {
			t.Errorf("%s: accepted %d bytes of garbage: %v", name, sent, err)
		}
		_ = conn.Close()
	}
	swap(t, m, 5, 0, 5)
	if after := heap(); after > before+8<<20 {
		t.Errorf("%d bytes more are in use", after-before)
	}
}

// A peer that ignores the limits of a stream cannot make a node keep more than they allow.
func TestStreamsAreBounded(t *testing.T) {
	n := &Node{opt: Options{Agents: 2}, bodyCodec: bodyCodec{dim: 10 << 20}}
	p := newPeer(n, 1)
	l := newLink(p, nil, true)
	p.link = l
	for k := range 3 {
		h := header{kind: kindData, seq: uint64(k), total: 40 << 20, raw: 40 << 20}
		var invalid *FrameError
		if err := l.check(&h); k < 2 && err != nil || k == 2 && !errors.As(err, &invalid) {
			t.Errorf("message %d of 40 MB: %v", k, err)
		}
		p.in[exchanges].queue = append(p.in[exchanges].queue, &recvMessage{seq: h.seq, total: int(h.total)})
	}
}

// An existing cluster grants each agent the permissions of its certificate: it publishes under its
// own rank and receives only its own messages.
func TestPermissionsInCluster(t *testing.T) {
	dir := t.TempDir()
	if err := WriteCredentials(dir, "test", 3, time.Hour); err != nil {
		t.Fatal(err)
	}
	s := cluster(t, dir, "test", 3)
	member := func(i int) Credentials { return credentials(t, dir, "test", i) }
	m := make(mesh, 2)
	for i := range m {
		o := options(t, i, 3)
		o.URL, o.Server, o.TLS = s, Server{}, member(i)
		m[i] = open(t, o)
		if err := m[i].Start(nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	swap(t, m, 5, 0, 3)
	refused := make(chan error, 10)
	spy, err := client.Connect(s, append(member(2).client(s),
		client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) { refused <- err }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer spy.Close()
	before := m[1].Stats()
	if _, err := spy.Subscribe("fspda.test.1.*",
		func(msg *client.Msg) { t.Error("agent 2 received a message to agent 1") }); err != nil {
		t.Fatal(err)
	}
	if err := spy.Publish("fspda.test.1.0", []byte("in the name of agent 0")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-refused:
		case <-time.After(10 * time.Second):
			t.Fatal("the cluster let agent 2 subscribe or publish for other agents")
		}
	}
	swap(t, m, 5, 3, 10)
	if got := m[1].Stats().Dropped; got != before.Dropped {
		t.Errorf("%d foreign frames arrived", got-before.Dropped)
	}
	if c, err := client.Connect(s, client.Secure(&tls.Config{InsecureSkipVerify: true})); err == nil {
		c.Close()
		t.Error("a client without a certificate is connected to the cluster")
	}
}

// cluster starts a NATS server that knows the agents of a run by their certificates, configured as
// in docs/many-machines.md, and returns its URL.
func cluster(t *testing.T, dir, run string, agents int) string {
	t.Helper()
	if err := WriteServerCredentials(dir, run, []string{"127.0.0.1", "cluster"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	ca, _, err := authority(dir, run, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "nats-server.pem"), filepath.Join(dir, "nats-server-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, TLS: true,
		TLSMap: true, TLSVerify: true, TLSTimeout: 5, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13,
			Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}}
	for i := range agents {
		publish, subscribe := Permissions(run, i)
		o.Users = append(o.Users, &server.User{Username: agentURI(run, i).String(), Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{publish}},
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
