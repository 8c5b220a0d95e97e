package live

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/device"
	"fspda/dist"
	"fspda/internal/testing/disttest"
	"fspda/train/algo"
)

// TestTranscripts replays the scripts in testdata and compares what the agents do with the
// transcripts there. After an intended change, run it with -rewrite and review the diff.
//
// A script starts with "network", which sets the parameters. Each of the following commands prints
// what the agents report and send. Messages wait until the script delivers them.
//
//	start I [fresh]       start agent I, from its checkpoint unless fresh is given
//	kill I                kill agent I; messages to and from it are lost
//	checkpoint I          save the state of agent I
//	gradient I [n=N]      complete N gradients of agent I
//	call I J              ring the clock of the edge between I and J
//	deliver [I J] [nth=K] deliver the next message (or message K) from I to J; without agents, all
//	duplicate I J         deliver the next message from I to J, and keep it
//	disconnect I J        close the session between I and J; its messages are lost
//	cut I J, heal I J     cut or restore the link between I and J
//	sleep DURATION        advance the time
//	status                print the state of all agents
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			s := new(script)
			defer s.close()
			datadriven.RunTest(t, path, s.run)
		})
	})
}

// script is the state of a script.
type script struct {
	net    *disttest.Network
	opt    Options
	graph  *dist.Graph
	agents []*scriptAgent   // by rank; nil: not running
	saved  []*scriptedState // by rank: checkpoints
	shown  map[*byte]bool   // messages that were printed

	mu     sync.Mutex
	events [][]string // by rank: reports that were not printed yet
}

type scriptedState struct {
	snapshot Snapshot
	x        []float32
	aux      [][]float32
}

// scriptAgent is one incarnation of an agent of a script.
type scriptAgent struct {
	*Agent
	s      *script
	id     int
	node   *disttest.Node
	next   chan struct{} // completes a gradient
	cancel context.CancelFunc
	done   chan error
}

// Gradient implements [Trainer]: it waits for the script, and is x - b_i with b_i = (4i, -i).
func (p *scriptAgent) Gradient(ctx context.Context, dst, x device.Vector) error {
	select {
	case <-p.next:
	case <-ctx.Done():
		return ctx.Err()
	}
	v := host(x)
	testDevice.Write(dst, []float32{v[0] - 4*float32(p.id), v[1] + float32(p.id)})
	return nil
}

// Applied implements [Trainer].
func (p *scriptAgent) Applied() {}

// Called implements [Trainer].
func (p *scriptAgent) Called() {}

// Advanced implements [Trainer].
func (p *scriptAgent) Advanced(Snapshot) bool { return false }

// Exchanged implements [Trainer].
func (p *scriptAgent) Exchanged(peer, values int) {
	p.s.report(p.id, fmt.Sprintf("commits exchange of %d values with %d", values, peer))
}

// Finished implements [Trainer].
func (p *scriptAgent) Finished(v Snapshot) { p.s.report(p.id, "finishes") }

func (s *script) report(i int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events[i] = append(s.events[i], text)
}

// run executes a command and returns its transcript.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	ranks := make([]int, len(d.CmdArgs))
	for k, a := range d.CmdArgs {
		if _, err := fmt.Sscanf(a.Key, "%d", &ranks[k]); err != nil {
			ranks = ranks[:k]
			break
		}
	}
	switch {
	case d.Cmd == "network":
		s.configure(t, d)
		return "ok"
	case d.Cmd == "sleep":
		pause, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		time.Sleep(pause)
	case d.Cmd == "status":
		s.status(&out)
	case d.Cmd == "deliver" && len(ranks) == 0:
		s.deliverAll(&out)
	case len(ranks) == 1:
		s.runAgent(t, d, ranks[0])
	case len(ranks) == 2:
		s.runEdge(t, d, ranks[0], ranks[1], &out)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	s.settle(&out)
	if out.Len() == 0 {
		return "ok"
	}
	return out.String()
}

func (s *script) configure(t *testing.T, d *datadriven.TestData) {
	n, until, graph := 2, 100, "complete"
	exchange, drop := "1s", "0s"
	d.MaybeScanArgs(t, "agents", &n)
	d.MaybeScanArgs(t, "until", &until)
	d.MaybeScanArgs(t, "graph", &graph)
	d.MaybeScanArgs(t, "exchange-timeout", &exchange)
	d.MaybeScanArgs(t, "drop", &drop)
	var err error
	if s.graph, err = dist.ParseGraph(graph, n, 1); err != nil {
		t.Fatal(err)
	}
	mask, err := dist.ParseMask("all", 1, []int{2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s.net, s.shown = disttest.NewScriptedNetwork(n), map[*byte]bool{}
	s.agents, s.saved, s.events = make([]*scriptAgent, n), make([]*scriptedState, n), make([][]string, n)
	s.opt = Options{Agents: n, Edges: len(s.graph.Edges), Until: until, Algo: testAlgo, Alpha: 0.5, Eta: 0.25,
		Mask: mask, Seed: 1}
	if s.opt.Timeouts.Exchange, err = time.ParseDuration(exchange); err != nil {
		t.Fatal(err)
	}
	if s.opt.Timeouts.Drop, err = time.ParseDuration(drop); err != nil {
		t.Fatal(err)
	}
}

// runAgent executes a command about one agent.
func (s *script) runAgent(t *testing.T, d *datadriven.TestData, i int) {
	switch p := s.agents[i]; d.Cmd {
	case "start":
		s.start(i, d.HasArg("fresh"))
	case "kill":
		s.kill(i)
	case "checkpoint":
		p.mu.Lock()
		defer p.mu.Unlock()
		c := &scriptedState{snapshot: p.snapshot(), x: host(p.state.X)}
		for k, e := range c.snapshot.Edges {
			dual := testDevice.NewVector(2)
			testDevice.Do(device.Gather(dual, e.Dual.S, nil))
			c.snapshot.Edges[k].Dual.S = dual
		}
		for _, aux := range p.state.Aux {
			c.aux = append(c.aux, host(aux))
		}
		s.saved[i] = c
	case "gradient":
		n := 1
		d.MaybeScanArgs(t, "n", &n)
		for range n {
			select {
			case p.next <- struct{}{}:
			case <-time.After(time.Second):
				s.report(i, "computes no gradient")
			}
			synctest.Wait()
		}
	default:
		d.Fatalf(t, "unknown command %s about an agent", d.Cmd)
	}
}

// runEdge executes a command about two agents.
func (s *script) runEdge(t *testing.T, d *datadriven.TestData, i, j int, out *strings.Builder) {
	switch d.Cmd {
	case "call":
		e := s.agents[i].edge(j)
		before := e.callID
		if err := e.ring(t.Context()); err != nil {
			s.report(i, "cannot call: "+err.Error())
		} else if e.callID == before {
			s.report(i, "cannot call now")
		}
		e.a.mu.Lock()
		e.a.notify() // the session sets its timer
		e.a.mu.Unlock()
	case "deliver":
		k := 0
		d.MaybeScanArgs(t, "nth", &k)
		s.deliver(i, j, k, false, out)
	case "duplicate":
		s.deliver(i, j, 0, true, out)
	case "disconnect":
		s.net.Disconnect(i, j)
	case "cut", "heal":
		s.net.Cut(i, j, d.Cmd == "cut")
	default:
		d.Fatalf(t, "unknown command %s about two agents", d.Cmd)
	}
}

func (s *script) start(i int, fresh bool) {
	opt := s.opt
	p := &scriptAgent{s: s, id: i, node: s.net.Start(i), next: make(chan struct{}), done: make(chan error, 1)}
	opt.Self, opt.Neighbours, opt.Network, opt.Trainer = i, s.graph.Neighbours(i), p.node, p
	opt.Log = zap.New(zapcore.NewNopCore()).WithOptions(zap.WrapCore(func(zapcore.Core) zapcore.Core {
		return zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m"}), logSink{s, i},
			zap.InfoLevel)
	}))
	x := testDevice.NewVector(2)
	testDevice.Write(x, []float32{float32(i), float32(i)})
	opt.State = algo.NewState(testAlgo, testDevice, x)
	p.Agent = New(opt)
	if c := s.saved[i]; c != nil && !fresh {
		testDevice.Write(p.state.X, c.x)
		for k, aux := range p.state.Aux {
			testDevice.Write(aux, c.aux[k])
		}
		p.Restore(c.snapshot)
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	s.agents[i] = p
	go func() { p.done <- p.Run(ctx) }()
}

// logSink reports what an agent logs.
type logSink struct {
	s *script
	i int
}

func (l logSink) Write(b []byte) (int, error) {
	l.s.report(l.i, "logs: "+strings.Join(strings.Fields(string(b)), " "))
	return len(b), nil
}

func (logSink) Sync() error { return nil }

func (s *script) kill(i int) {
	p := s.agents[i]
	p.node.Kill()
	p.cancel()
	<-p.done
	p.Close()
	s.agents[i] = nil
}

func (s *script) close() {
	for i, p := range s.agents {
		if p != nil {
			s.kill(i)
		}
	}
}

// settle waits until all agents wait, and prints what they have reported and sent.
func (s *script) settle(out *strings.Builder) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, events := range s.events {
		for _, text := range events {
			fmt.Fprintf(out, "%d %s\n", i, text)
		}
		s.events[i] = nil
	}
	for i := range s.agents {
		for j := range s.agents {
			for _, b := range s.net.Held(i, j) {
				if !s.shown[&b[0]] {
					s.shown[&b[0]] = true
					fmt.Fprintf(out, "%d sends %d %s\n", i, j, s.describe(b))
				}
			}
		}
	}
}

// describe returns a message as text.
func (s *script) describe(b []byte) string {
	m, invalid := decodeMessage(b, limits{dim: 2, until: s.opt.Until})
	if invalid != "" {
		return invalid
	}
	text := fmt.Sprintf("%v: epoch %d, n %d, t %d", m.kind, m.epoch, m.n, m.t)
	if m.call > 0 {
		text = fmt.Sprintf("%v %d: epoch %d, n %d, t %d", m.kind, m.call, m.epoch, m.n, m.t)
	}
	for k, name := range []string{"answer", "fresh", "at end", "want model", "joining", "final"} {
		if m.has(1 << k) {
			text += ", " + name
		}
	}
	if len(m.values) > 0 {
		text += ", " + numbers(m.values)
	}
	return text
}

func numbers(v []float32) string {
	text := make([]string, len(v))
	for k, x := range v {
		text[k] = strings.Replace(fmt.Sprintf("%.4f", x), "-0.0000", "0.0000", 1)
	}
	return "(" + strings.Join(text, " ") + ")"
}

// deliver delivers a message and prints its effects.
func (s *script) deliver(i, j, k int, keep bool, out *strings.Builder) {
	held := s.net.Held(i, j)
	if k >= len(held) {
		fmt.Fprintf(out, "nothing to deliver from %d to %d\n", i, j)
		return
	}
	s.net.Deliver(i, j, k, keep)
	fmt.Fprintf(out, "%d receives from %d %s\n", j, i, s.describe(held[k]))
	s.settle(out)
}

// deliverAll delivers messages until none is left, direction by direction.
func (s *script) deliverAll(out *strings.Builder) {
	for again := true; again; {
		again = false
		for i := range s.agents {
			for j := range s.agents {
				for len(s.net.Held(i, j)) > 0 {
					s.deliver(i, j, 0, false, out)
					again = true
				}
			}
		}
	}
}

// status prints the state of all agents, and the invariant Σ lambda + β·mail = 0.
func (s *script) status(out *strings.Builder) {
	sum := make([]float32, 2)
	for i, p := range s.agents {
		if p == nil {
			fmt.Fprintf(out, "%d is not running\n", i)
			continue
		}
		p.mu.Lock()
		lambda, mail := host(p.state.Aux[0]), host(p.state.Aux[1])
		fmt.Fprintf(out, "%d: t %d, x %s, lambda %s, mail %s\n", i, p.clock.T, numbers(host(p.state.X)),
			numbers(lambda), numbers(mail))
		for _, e := range p.edges {
			state := "not in sync"
			switch {
			case e.dropped:
				state = "dropped"
			case e.inSync:
				state = "in sync"
			}
			fmt.Fprintf(out, "   edge to %d: epoch %d, n %d, %s\n", e.peer, e.dual.Epoch, e.dual.N, state)
		}
		p.mu.Unlock()
		for k := range sum {
			sum[k] += lambda[k] + float32(testAlgo.Beta)*mail[k]
		}
	}
	fmt.Fprintf(out, "sum of lambda + beta*mail: %s\n", numbers(sum))
}
