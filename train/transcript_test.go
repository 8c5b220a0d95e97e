package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fspda/cpu"
	"fspda/dist"
	"fspda/train/config"
	"fspda/train/live"
)

// TestRealTimeTranscripts replays the scripts in testdata/realtime against the driver of runs in
// real time and compares what it does with the transcripts there. After an intended change, run it
// with -rewrite and review the diff.
//
// The script plays the protocol (fspda/train/live) of agent 0, without a network. Commands print
// the snapshots that the agent leaves.
//
//	run [iterations=T] [evals=P]  start a run; agent 0 stands at logical time 0
//	gradient                      compute a gradient
//	apply                         move by the gradient
//	advance T                     the logical time has grown to T
//	exchange PEER n=N             an exchange of N values took place
//	call                          an exchange was called, whatever came of it
//	checkpoint, stop              request a checkpoint, or the end of the run
//	diverge T                     another agent has diverged at time T
//	finish                        the agent has come to the end of the run
//	status                        print the agent's counters
func TestRealTimeTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/realtime", func(t *testing.T, path string) {
		s := &realTimeScript{t: t}
		datadriven.RunTest(t, path, s.command)
		s.close()
	})
}

// realTimeScript is the state of a script.
type realTimeScript struct {
	t *testing.T
	r *run
	a *realTimeAgent
	v live.Snapshot
}

// command runs a command and returns what it prints.
func (s *realTimeScript) command(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	var out strings.Builder
	switch d.Cmd {
	case "run":
		s.start(d)
	case "gradient":
		err := s.a.Gradient(t.Context(), s.a.state.Gradient(), s.a.state.X)
		fmt.Fprintf(&out, "loss above 0: %t, error %v\n", s.a.loss > 0, err)
	case "apply":
		s.a.Applied()
	case "advance":
		s.v.Clock.T = s.number(d)
		fmt.Fprintf(&out, "stop: %t\n", s.a.Advanced(s.v))
	case "exchange":
		var n int
		d.ScanArgs(t, "n", &n)
		s.a.Exchanged(s.number(d), n)
	case "call":
		s.a.Called()
	case "checkpoint", "stop":
		fmt.Fprintf(&out, "at %d\n", s.r.progress.request(d.Cmd == "stop"))
	case "diverge":
		s.r.diverged(&DivergedError{Agent: 1, T: s.number(d)})
		fmt.Fprintf(&out, "halted: %t\n", errors.Is(context.Cause(s.a.ctx), errHalted))
	case "finish":
		s.v.Clock.T = s.r.setup.Config.Iterations
		s.a.Finished(s.v)
	case "status":
		l := s.a.exchange.ledger
		fmt.Fprintf(&out, "gradients %d, evaluations %d, exchanges %d, payload %d bits, overhead %d bits\n",
			s.a.gradients.count, s.a.reported, s.a.exchanges, l.SharedSeed, l.Overhead)
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	s.snapshots(&out)
	if out.Len() == 0 {
		return "ok\n"
	}
	return out.String()
}

// number is the first argument of a command.
func (s *realTimeScript) number(d *datadriven.TestData) (n int) {
	if _, err := fmt.Sscan(d.CmdArgs[0].Key, &n); err != nil {
		s.t.Fatalf("%s: %v", d.Pos, err)
	}
	return n
}

// start makes a run of two agents, of which agent 0 is in this process.
func (s *realTimeScript) start(d *datadriven.TestData) {
	c := small()
	c.Algo, c.Clock, c.Agents, c.Graph, c.Iterations, c.EvalPoints = "fspda-async", config.ClockReal, 2, "complete",
		100, 4
	d.MaybeScanArgs(s.t, "iterations", &c.Iterations)
	d.MaybeScanArgs(s.t, "evals", &c.EvalPoints)
	setup, m := resolve(s.t, c)
	s.r = newRun(setup, Options{Device: cpu.New(), Model: m,
		Process: &Process{Network: silentNetwork{Transport: dist.NewLocal(2)}}})
	if _, err := s.r.start(); err != nil {
		s.t.Fatal(err)
	}
	a := s.r.agents[0]
	a.ctx, a.halt = context.WithCancelCause(s.t.Context())
	s.a = s.r.driver.(*realTime).agents[0]
	s.v = live.Snapshot{Edges: []live.EdgeSnapshot{{Peer: 1}}}
}

// snapshots prints and releases the snapshots that the agent has left.
func (s *realTimeScript) snapshots(out *strings.Builder) {
	for sn := s.a.out.TryNext(); sn != nil; sn = s.a.out.TryNext() {
		fmt.Fprintf(out, "snapshot at %d, eval %t, save %t, gradients %d, losses of %d\n", sn.T, sn.Eval, sn.Save,
			sn.Grads, sn.Losses.Grads)
		if sn.RealTime != nil {
			fmt.Fprintf(out, "  with logical time %d and %d edges\n", sn.RealTime.Clock.T, len(sn.RealTime.Edges))
		}
		s.a.snapshots.Release(sn)
	}
}

func (s *realTimeScript) close() {
	if s.r != nil {
		s.r.agents[0].gradients.loader.Close()
	}
}

// silentNetwork is a process.Network over which nothing is received.
type silentNetwork struct{ dist.Transport }

func (silentNetwork) Start([]byte, int) error                        { return nil }
func (silentNetwork) Save() []byte                                   { return nil }
func (silentNetwork) Stable([]byte, int) error                       { return nil }
func (silentNetwork) Report(context.Context, int, int, []byte) error { return nil }
func (silentNetwork) AwaitReports(context.Context, int) error        { return nil }
func (silentNetwork) CheckpointRequested() <-chan struct{}           { return nil }
func (silentNetwork) WireBytes() uint64                              { return 0 }
func (silentNetwork) SilentFor(int) time.Duration                    { return 0 }
func (silentNetwork) Advance(int, dist.Phase)                        {}
func (silentNetwork) Position(int) (p dist.Advance)                  { return p }
func (silentNetwork) Offence(int) (time.Duration, error)             { return 0, nil }
func (silentNetwork) TakeReport(ctx context.Context, _ int, _ func(int, []byte) error) error {
	<-ctx.Done()
	return ctx.Err()
}
func (silentNetwork) Await(int) (over func()) { return func() {} }
func (silentNetwork) OpenEvaluations(ctx context.Context, _ int) (dist.CheckedSession, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (silentNetwork) OpenSession(ctx context.Context, _ int) (dist.Session, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
