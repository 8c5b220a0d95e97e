package process_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"fspda/cpu"
	"fspda/device"
	"fspda/dist"
	"fspda/train/process"
	"fspda/train/snapshot"
)

// Two processes of a run with evaluations at iterations 0 and 10, on a network in memory. Each
// delivers its snapshots and stops; the coordinator collects them and ends the run.
func Example() {
	net := newMemory(2)
	collected := make(chan int, 4)
	var nodes []*process.Node
	for rank := range 2 {
		nodes = append(nodes, process.New(process.Options{Rank: rank, Agents: 2, Network: net[rank],
			Store: process.NoStore{}, Run: newLocal(2, collected), Schedule: schedule{}, Log: zap.NewNop()}))
	}
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	for rank, n := range nodes {
		n.Serve(ctx, fail)
		for _, t := range []int{0, 10} {
			sn := newSnapshot()
			sn.Agent, sn.T, sn.Eval = rank, t, true
			if err := n.Deliver(ctx, sn); err != nil {
				panic(err)
			}
		}
	}
	done := make(chan struct{})
	go func() { nodes[1].Wait(ctx, ctx); close(done) }()
	nodes[0].Wait(ctx, ctx)
	nodes[0].Dismiss(process.Note{Kind: process.NoteEnd, T: 10, Status: "finished"})
	<-done
	end, ok := nodes[1].End()
	fmt.Println(len(collected), "snapshots;", "the run is", end.Status, ok)
	// Output: 4 snapshots; the run is finished true
}

// local is the part of a run in one process.
type local struct {
	pools     []*snapshot.Pool
	collected chan int
}

func newLocal(agents int, collected chan int) *local {
	l := &local{collected: collected}
	for range agents {
		p := snapshot.NewPool(4)
		p.Fill(newSnapshot)
		l.pools = append(l.pools, p)
	}
	return l
}

func newSnapshot() *snapshot.Snapshot {
	dev := cpu.New()
	return &snapshot.Snapshot{Device: dev, X: dev.NewVector(3), Aux: []device.Vector{}}
}

func (l *local) Pool(agent int) *snapshot.Pool { return l.pools[agent] }
func (l *local) Collect(sn *snapshot.Snapshot) {
	l.collected <- sn.T
	l.pools[sn.Agent].Release(sn)
}
func (l *local) Diverged(process.Note) {}
func (l *local) Halt()                 {}
func (l *local) FlushRows() error      { return nil }

// schedule evaluates iterations 0 and 10.
type schedule struct{}

func (schedule) EvalCount() int        { return 1 }
func (schedule) EvalPoint(k int) int   { return 10 * k }
func (schedule) EvalsBefore(t int) int { return min((t+9)/10, 2) }

// memory is a Network without processes: reports wait in a channel for each pair of agents.
type memory struct {
	dist.Transport
	rank    int
	reports [][]chan report // by sender and receiver
}

type report struct {
	t      int
	record []byte
}

func newMemory(n int) (all []*memory) {
	reports := make([][]chan report, n)
	for i := range reports {
		for range n {
			reports[i] = append(reports[i], make(chan report, 16))
		}
	}
	local := dist.NewLocal(n)
	for rank := range n {
		all = append(all, &memory{local, rank, reports})
	}
	return all
}

func (m *memory) Start([]byte, int) error                 { return nil }
func (m *memory) Save() []byte                            { return nil }
func (m *memory) Stable([]byte, int) error                { return nil }
func (m *memory) AwaitReports(context.Context, int) error { return nil }
func (m *memory) CheckpointRequested() <-chan struct{}    { return nil }
func (m *memory) SilentFor(int) time.Duration             { return 0 }
func (m *memory) Advance(int, dist.Phase)                 {}
func (m *memory) Position(int) (p dist.Advance)           { return p }
func (m *memory) WireBytes() uint64                       { return 0 }
func (m *memory) Await(int) (over func())                 { return func() {} }
func (m *memory) OpenEvaluations(context.Context, int) (dist.CheckedSession, error) {
	return nil, errors.ErrUnsupported // The agents report whole snapshots.
}

func (m *memory) Report(_ context.Context, to, t int, record []byte) error {
	m.reports[m.rank][to] <- report{t, record}
	return nil
}

func (m *memory) TakeReport(ctx context.Context, from int, take func(t int, record []byte) error) error {
	select {
	case r := <-m.reports[from][m.rank]:
		return take(r.t, r.record)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *memory) Offence(int) (lasting time.Duration, reason error) { return 0, nil }
