package nats

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"fspda/internal/testing/disttest"
)

// flipper forwards connections to an address, and flips a bit in some of the chunks that pass.
type flipper struct {
	net.Listener
	flips atomic.Int32 // chunks to come in which a bit is flipped
}

func newFlipper(t *testing.T, to string) *flipper {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	f := &flipper{Listener: l}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go f.forward(in, to)
		}
	}()
	return f
}

func (f *flipper) forward(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			defer in.Close()
			defer out.Close()
			_, _ = io.Copy(pair[0], readerFunc(func(b []byte) (int, error) {
				n, err := pair[1].Read(b)
				if n > 0 && f.flips.Add(-1) >= 0 {
					b[rand.IntN(n)] ^= 1 << rand.IntN(8)
				}
				return n, err
			}))
		})
	}
	both.Wait()
}

type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A server that stops and starts again joins the others, and relays connections again, also those
// of agents that it does not join.
func TestServerRejoins(t *testing.T) {
	m := openMesh(t, 3, certified(t, t.TempDir(), 3))
	m.check(t)
	for _, d := range m {
		if err := d.server.restart(d.opt, d.opt.Server.Join); err != nil {
			t.Fatal(err)
		}
		m.check(t)
	}
}

// The servers of agents find each other again while routes between them break, and any agent is
// killed and started again: NATS relays connections between all pairs.
func TestRoutesBreak(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: takes a minute; FSPDA_LONG=1 runs it")
	}
	const agents, rounds = 4, 40
	withTLS := certified(t, t.TempDir(), agents)
	own, public := make([]string, agents), make([]*flipper, agents)
	for i := range own {
		own[i] = fmt.Sprint("127.0.0.1:", disttest.UnusedPort(t))
		public[i] = newFlipper(t, own[i])
	}
	edit := func(o *Options) {
		withTLS(o)
		o.Server = Server{Listen: own[o.Self], Advertise: public[o.Self].Addr().String(),
			Join: []string{public[0].Addr().String()}, check: time.Second}
	}
	m := openMesh(t, agents, edit)
	m.check(t)
	draw := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		for _, f := range public {
			f.flips.Store(draw.Int32N(4))
		}
		i := draw.IntN(agents)
		m[i].Close()
		o := options(t, i, agents)
		edit(&o)
		m[i] = open(t, o)
		m.check(t)
	}
}

// An agent that nobody answers says at which address it tries to join, and why that fails, until
// another one appears there.
func TestWarnsWhereNobodyAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	core, lines := observer.New(zapcore.WarnLevel)
	o := options(t, 1, 2)
	o.Server.Join, o.Server.check, o.Log = []string{address}, 20*time.Millisecond, zap.New(core)
	d := open(t, o)
	for ctx := testContext(t); lines.Len() == 0 && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
	about := lines.All()[0].ContextMap()
	if about["join"] != address || !strings.Contains(fmt.Sprint(about["cause"]), "refused") {
		t.Errorf("%s: %v", lines.All()[0].Message, about)
	}
	first := options(t, 0, 2)
	first.Server.Listen = address
	mesh{open(t, first), d}.check(t)
}
