package link

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/dist/discover"
	"fspda/dist/discover/nats"
	"fspda/internal/testing/disttest"
)

// mesh holds the nodes of all agents, each with its own server, in one process.
type mesh []*Node

func (m mesh) Send(ctx context.Context, msg dist.Message) error { return m[msg.From].Send(ctx, msg) }

func (m mesh) Recv(ctx context.Context, self, from, t int) (dist.Message, error) {
	return m[self].Recv(ctx, self, from, t)
}

const testDim = 100_000

// settings are the options of a node, and of the NATS server by which it finds others, or the file
// with their addresses.
type settings struct {
	Options
	nats  nats.Options
	peers string
}

// options returns the options of agent i of n.
func options(t *testing.T, i, n int) settings {
	log := zaptest.NewLogger(t, zaptest.Level(zap.WarnLevel))
	return settings{Options{Run: "test", Self: i, Agents: n, Dim: testDim, Log: log,
		Pool:      dist.NewPool(devicetest.NewFloat64()),
		Identity:  []Field{{"run", "test"}, {"seed", "1"}, {"layout", "784x10"}},
		intervals: intervals{maxRedial: 2 * minRedial}},
		nats.Options{Run: "test", Self: i, Agents: n, Log: log, Server: nats.Server{Listen: "127.0.0.1:0"}}, ""}
}

// address returns the address of the NATS server of a node, if it has one.
func address(n *Node) string {
	if d, ok := n.opt.Discovery.(*nats.Discovery); ok {
		return d.Address()
	}
	return ""
}

// withPeers writes a file with an address for each agent, and returns an edit by which the nodes
// use it in place of NATS.
func withPeers(t *testing.T, agents int) func(*settings) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peers.yaml")
	ports := make([]int, agents)
	text := "peers:\n"
	for i := range ports {
		ports[i] = disttest.UnusedPort(t)
		text += fmt.Sprintf("  %d: 127.0.0.1:%d\n", i, ports[i])
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *settings) { o.peers, o.Listen = file, fmt.Sprint("127.0.0.1:", ports[o.Self]) }
}

// openMesh opens n nodes. edit may change their options.
func openMesh(t *testing.T, n int, edit func(*settings)) mesh {
	t.Helper()
	m := make(mesh, n)
	for i := range m {
		o := options(t, i, n)
		if i > 0 {
			o.nats.Server.Join = []string{address(m[0])}
		}
		if edit != nil {
			edit(&o)
		}
		m[i] = open(t, o)
	}
	m.start(t)
	return m
}

func open(t *testing.T, o settings) *Node {
	t.Helper()
	n, err := tryOpen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// tryOpen opens the Discovery of a node and the node.
func tryOpen(o settings) (*Node, error) {
	var err error
	if o.peers != "" {
		o.Discovery, err = discover.OpenFile(o.peers, o.Agents, o.Log)
	} else {
		o.nats.TLS, o.nats.Client = o.TLS.Agents, o.TLS.Client
		o.Discovery, err = nats.Open(o.nats)
	}
	if err != nil {
		return nil, err
	}
	return Open(o.Options)
}

func (m mesh) start(t *testing.T) {
	t.Helper()
	for _, n := range m {
		if err := n.Start(nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	ctx := testContext(t)
	for _, n := range m {
		if err := n.Ready(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func TestContract(t *testing.T) {
	always := func(edit func(*settings)) func(*testing.T, int) func(*settings) {
		return func(*testing.T, int) func(*settings) { return edit }
	}
	for _, c := range []struct {
		name string
		edit func(t *testing.T, agents int) func(*settings)
	}{
		{"relayed", always(nil)},
		{"direct, compressed, durable", always(func(o *settings) {
			o.Listen, o.Compression, o.Durable = "127.0.0.1:0", Zstd, true
		})},
		{"file of addresses", withPeers},
		{"file of addresses, certificates", func(t *testing.T, agents int) func(*settings) {
			listed, certified := withPeers(t, agents), withCertificates(t, agents)
			return func(o *settings) { listed(o); certified(o) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			disttest.TestTransport(t, func(t *testing.T, n int) dist.Transport {
				began := time.Now()
				m := openMesh(t, n, c.edit(t, n))
				t.Log(fmt.Sprint(n, " nodes after ", time.Since(began)))
				return m
			})
		})
	}
}
