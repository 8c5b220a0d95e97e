package link

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/internal/testing/disttest"
)

// Nodes that find each other by a file of addresses continue over connections that break, and after
// each of them was started again from a checkpoint.
func TestPeersBreakAndRestart(t *testing.T) {
	listed, certified := withPeers(t, 2), withCertificates(t, 2)
	edit := func(o *settings) {
		listed(o)
		certified(o)
		o.Durable, o.wrap = true, breaking(11, 0.01)
	}
	m := openMesh(t, 2, edit)
	swap(t, m, 10, 0, 100)
	for i := range m {
		state := m[i].Save()
		m[i].Close()
		o := options(t, i, 2)
		edit(&o)
		m[i] = open(t, o)
		if err := m[i].Start(state, 0); err != nil {
			t.Fatal(err)
		}
		swap(t, m, 10, 100+50*i, 150+50*i)
	}
	if a, b := m[0].Stats(), m[1].Stats(); a.Reconnects+b.Reconnects < 2 || a.GotFrames != a.Direct {
		t.Errorf("no connection broke, or one was relayed: %+v %+v", a, b)
	}
}

// An agent that moves is found at its new address when the file is changed. Meanwhile the other
// agent warns once that it cannot be reached, and why.
func TestPeerMoves(t *testing.T) {
	core, lines := observer.New(zapcore.WarnLevel)
	listed := withPeers(t, 2)
	edit := func(o *settings) {
		listed(o)
		if o.Durable = true; o.Self == 1 {
			o.Log, o.warnAfter = zap.New(core), 50*time.Millisecond
		}
	}
	m := openMesh(t, 2, edit)
	swap(t, m, 5, 0, 10)
	state := m[0].Save()
	m[0].Close()
	const warning = "an agent cannot be reached"
	for ctx := testContext(t); lines.FilterMessageSnippet(warning).Len() == 0 && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	o := options(t, 0, 2)
	edit(&o)
	old := o.Listen
	if why := fmt.Sprint(lines.FilterMessageSnippet(warning).All()[0].ContextMap()); !strings.Contains(why, old) ||
		!strings.Contains(why, "does it run and listen there") {
		t.Errorf("the warning says %s, want the address %s and what to check", why, old)
	}
	o.Listen = fmt.Sprint("127.0.0.1:", disttest.UnusedPort(t))
	text, err := os.ReadFile(o.peers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.peers, []byte("peers: [half of a li"), 0o600); err != nil { // it is being written
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := os.WriteFile(o.peers, []byte(strings.Replace(string(text), old, o.Listen, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	m[0] = open(t, o)
	if err := m[0].Start(state, 0); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 10, 20)
	if n := lines.FilterMessageSnippet(warning).Len(); n != 1 {
		t.Errorf("%d warnings, want one", n)
	}
	if n := lines.FilterMessageSnippet("cannot be read again").Len(); n != 1 {
		t.Errorf("%d warnings about the file, want one", n)
	}
}

// A file that exchanges the addresses of two agents does not connect anybody to the wrong one, with
// certificates or without.
func TestPeersExchanged(t *testing.T) {
	for name, certified := range map[string]func(*settings){"certificates": withCertificates(t, 3),
		"none": func(*settings) {}} {
		listed := withPeers(t, 3)
		var o settings
		o.Self = 2
		listed(&o)
		text, err := os.ReadFile(o.peers)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		_, first, _ := strings.Cut(lines[1], ": ")
		_, second, _ := strings.Cut(lines[2], ": ")
		lines[1], lines[2] = "  0: "+second, "  1: "+first
		if err := os.WriteFile(o.peers, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		m := make(mesh, 3)
		for i := range m {
			o := options(t, i, 3)
			listed(&o)
			certified(&o)
			o.Log = zap.NewNop()
			m[i] = open(t, o)
			if err := m[i].Start(nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(300 * time.Millisecond)
		connected := func() []int { return []int{m[0].ConnectedPeers(), m[1].ConnectedPeers(), m[2].ConnectedPeers()} }
		got := connected()
		for range 100 { // An agent that accepts notices a moment later that it is not the one that was meant.
			if got = connected(); slices.Equal(got, []int{0, 0, 0}) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if !slices.Equal(got, []int{0, 0, 0}) {
			t.Errorf("%s: %v agents are connected, want none", name, got)
		}
	}
}

// An address at which something else accepts connections, or nothing answers, does not stop the
// node: it is dialed again.
func TestPeerIsAStranger(t *testing.T) {
	edit := withPeers(t, 2)
	o := options(t, 0, 2)
	edit(&o)
	stranger, err := net.Listen("tcp", o.Listen)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := stranger.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example.org\r\n"))
			_ = c.Close()
		}
	}()
	other := options(t, 1, 2)
	edit(&other)
	m := mesh{nil, open(t, other)}
	if err := m[1].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	_ = stranger.Close()
	m[0] = open(t, o)
	if err := m[0].Start(nil, 0); err != nil {
		t.Fatal(err)
	}
	swap(t, m, 5, 0, 10)
}
