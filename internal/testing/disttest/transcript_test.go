package disttest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"fspda/dist"
)

// TestTranscripts replays the scripts in testdata and compares the deliveries with the transcripts
// there. After an intended change, run it with -rewrite and review the diff.
//
// Scripts in testdata/sim are about a [Sim]:
//
//	sim agents=N [seed=S] [cut=P] [max-delay=D] [reorder]
//	send T I J [T I J ...]   send the message of iteration T from I to J
//	recv T I J [n=N]         try N times to receive, at I, the message of iteration T from J
//	exchange PROCESS rounds=N [graph=SPEC]   exchange over the active edges
//
// Scripts in testdata/network are about a [Network], whose records are words:
//
//	network agents=N [scripted]
//	start I, kill I          start or end the process of agent I
//	open I J                 open a session at I with J
//	send I J WORD ..., recv I J
//	deliver I J [nth=K], duplicate I J, disconnect I J, cut I J, heal I J, sleep DURATION
//	silent I J               print for how long I has not heard of J
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/sim", func(t *testing.T, path string) {
		s := simScript{fixture: newFixture()}
		datadriven.RunTest(t, path, s.run)
	})
	datadriven.Walk(t, "testdata/network", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			var s networkScript
			datadriven.RunTest(t, path, s.run)
		})
	})
}

// simScript is the state of a script about a Sim. It uses no goroutines.
type simScript struct {
	fixture
	sim *Sim
	out strings.Builder
}

func (s *simScript) run(t *testing.T, d *datadriven.TestData) string {
	s.out.Reset()
	switch d.Cmd {
	case "sim":
		n, seed, f := 2, uint64(1), Faults{Reorder: d.HasArg("reorder")}
		var cut string
		d.MaybeScanArgs(t, "agents", &n)
		d.MaybeScanArgs(t, "seed", &seed)
		d.MaybeScanArgs(t, "max-delay", &f.MaxDelay)
		if d.MaybeScanArgs(t, "cut", &cut); cut != "" {
			fmt.Sscan(cut, &f.Cut)
		}
		s.sim = NewSim(n, seed, f)
	case "send":
		for a := numbersOf(d); len(a) >= 3; a = a[3:] {
			s.send(t, a[0], a[1], a[2])
		}
	case "recv":
		a, tries := numbersOf(d), 1
		d.MaybeScanArgs(t, "n", &tries)
		for range tries {
			if s.recv(a[0], a[1], a[2]) {
				break
			}
		}
	case "exchange":
		s.exchange(t, d)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	if s.out.Len() == 0 {
		return "ok"
	}
	return s.out.String()
}

// numbersOf returns the arguments before the first one that is no number.
func numbersOf(d *datadriven.TestData) (out []int) {
	for _, a := range d.CmdArgs {
		var v int
		if _, err := fmt.Sscanf(a.Key, "%d", &v); err != nil {
			break
		}
		out = append(out, v)
	}
	return out
}

func (s *simScript) printf(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

func (s *simScript) send(t *testing.T, at, from, to int) {
	if err := send(t.Context(), s.sim, s.fixture, from, to, at); err != nil {
		t.Fatal(err)
	}
	if s.sim.IsCut(from, to, at) {
		s.printf("%d sends %d the message of iteration %d into a cut", from, to, at)
	}
}

// recv tries once to receive a message and reports whether to stop trying.
func (s *simScript) recv(at, self, from int) bool {
	if s.sim.IsCut(from, self, at) {
		s.printf("%d: the edge to %d is idle at iteration %d", self, from, at)
		return true
	}
	m, _, ok := s.sim.take(from, self)
	if !ok {
		s.printf("%d waits for iteration %d from %d (%d deliveries)", self, at, from, s.sim.Deliveries())
		return false
	}
	if err := dist.CheckIteration(m, at); err != nil {
		s.printf("%d: %v", self, err)
		return true
	}
	s.printf("%d receives iteration %d from %d (%d deliveries)", self, at, from, s.sim.Deliveries())
	m.Release()
	return true
}

// exchange lets all agents send over the active edges and then try to receive, in turns.
func (s *simScript) exchange(t *testing.T, d *datadriven.TestData) {
	spec, rounds := "complete", 1
	d.MaybeScanArgs(t, "graph", &spec)
	d.MaybeScanArgs(t, "rounds", &rounds)
	g, err := dist.ParseGraph(spec, s.sim.n, 1)
	if err != nil {
		t.Fatal(err)
	}
	process, err := dist.ParseProcess(d.CmdArgs[0].Key, g, 1)
	if err != nil {
		t.Fatal(err)
	}
	for at := range rounds {
		var open [][2]int // receiver and sender
		for _, e := range process.Active(nil, at) {
			s.send(t, at, e.From, e.To)
			s.send(t, at, e.To, e.From)
			open = append(open, [2]int{e.To, e.From}, [2]int{e.From, e.To})
		}
		for len(open) > 0 {
			if next := open[0]; !s.recv(at, next[0], next[1]) {
				open = append(open, next)
			}
			open = open[1:]
		}
	}
}

// networkScript is the state of a script about a Network.
type networkScript struct {
	net      *Network
	nodes    map[int]*Node
	sessions map[[2]int]dist.Session
}

func (s *networkScript) run(t *testing.T, d *datadriven.TestData) string {
	a := numbersOf(d)
	switch d.Cmd {
	case "network":
		n := 2
		d.MaybeScanArgs(t, "agents", &n)
		s.net, s.nodes, s.sessions = NewNetwork(n, 1, 0), map[int]*Node{}, map[[2]int]dist.Session{}
		if d.HasArg("scripted") {
			s.net = NewScriptedNetwork(n)
		}
	case "start":
		s.nodes[a[0]] = s.net.Start(a[0])
	case "kill":
		s.nodes[a[0]].Kill()
	case "sleep":
		pause, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		time.Sleep(pause)
	case "silent":
		return s.nodes[a[0]].SilentFor(a[1]).String()
	case "disconnect":
		s.net.Disconnect(a[0], a[1])
	case "cut", "heal":
		s.net.Cut(a[0], a[1], d.Cmd == "cut")
	case "deliver", "duplicate":
		k := 0
		d.MaybeScanArgs(t, "nth", &k)
		if k >= len(s.net.Held(a[0], a[1])) {
			return "nothing to deliver"
		}
		s.net.Deliver(a[0], a[1], k, d.Cmd == "duplicate")
	default:
		return s.runSession(t, d, a[0], a[1])
	}
	return "ok"
}

// runSession executes a command about the session of agent i with agent j. A command that would
// wait is given up after a second.
func (s *networkScript) runSession(t *testing.T, d *datadriven.TestData, i, j int) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var record []byte
	var err error
	switch session := s.sessions[[2]int{i, j}]; d.Cmd {
	case "open":
		s.sessions[[2]int{i, j}], err = s.nodes[i].OpenSession(ctx, j)
	case "send":
		for _, word := range d.CmdArgs[2:] {
			if err = session.Send(ctx, []byte(word.Key)); err != nil {
				break
			}
		}
	case "recv":
		record, err = session.Recv(ctx)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	switch {
	case ctx.Err() != nil:
		return "waits"
	case err != nil:
		return err.Error()
	case record != nil:
		return string(record)
	}
	return "ok"
}
