package disttest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"fspda/dist"
)

// receivedByAgents lets n agents exchange and returns, for each, what it received: "t:peer" and
// whether the edge was idle.
func receivedByAgents(t *testing.T, net dist.Transport, n, rounds int) [][]string {
	t.Helper()
	g, err := dist.ParseGraph("complete", n, 1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dist.ParseProcess("bernoulli(0.4)", g, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := newFixture()
	heard := make([][]string, n)
	agents := make([]func(ctx context.Context) error, n)
	for self := range agents {
		agents[self] = func(ctx context.Context) (err error) {
			heard[self], err = exchangeRounds(ctx, net, b, p, self, rounds)
			return err
		}
	}
	within(t, agents...)
	return heard
}

func exchangeRounds(ctx context.Context, net dist.Transport, b fixture, p dist.Process, self,
	rounds int) (heard []string, err error) {
	for t := range rounds {
		events := p.Active(nil, t)
		for _, e := range events {
			if peer, ok := e.Peer(self); ok {
				if err := send(ctx, net, b, self, peer, t); err != nil {
					return nil, err
				}
			}
		}
		for _, e := range events {
			peer, ok := e.Peer(self)
			if !ok {
				continue
			}
			err := recv(ctx, net, b, self, peer, t)
			if err != nil && !errors.Is(err, dist.ErrIdle) {
				return nil, err
			}
			heard = append(heard, fmt.Sprint(t, ":", peer, err == nil))
		}
	}
	return heard, nil
}

// What agents receive depends on the cuts alone, not on scheduling, delays or reordering.
func TestFaultsRepeat(t *testing.T) {
	const n, rounds = 6, 60
	want := receivedByAgents(t, NewSim(n, 9, Faults{Cut: 0.2}), n, rounds)
	for _, f := range []Faults{{Cut: 0.2}, {Cut: 0.2, MaxDelay: 7}, {Cut: 0.2, MaxDelay: 50, Reorder: true}} {
		got := receivedByAgents(t, NewSim(n, 9, f), n, rounds)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%+v: agent %d receives something else", f, i)
			}
		}
	}
	other := receivedByAgents(t, NewSim(n, 10, Faults{Cut: 0.2}), n, rounds)
	if slices.Equal(other[0], want[0]) {
		t.Error("two seeds cut the same edges")
	}
}

// A cut holds for both ends, has the given probability, and releases the messages sent into it.
func TestCutsAreMutual(t *testing.T) {
	net, b := NewSim(3, 4, Faults{Cut: 0.3}), newFixture()
	ctx := context.Background()
	cuts := 0
	const rounds = 3000
	for k := range rounds {
		for from := range 2 {
			if err := send(ctx, net, b, from, 1-from, k); err != nil {
				t.Fatal(err)
			}
		}
		first, second := recv(ctx, net, b, 0, 1, k), recv(ctx, net, b, 1, 0, k)
		if errors.Is(first, dist.ErrIdle) != errors.Is(second, dist.ErrIdle) ||
			errors.Is(first, dist.ErrIdle) != net.IsCut(1, 0, k) {
			t.Fatalf("t=%d: one end gets %v, the other %v; cut is %v", k, first, second, net.IsCut(0, 1, k))
		}
		if first != nil {
			cuts++
		}
	}
	if math.Abs(float64(cuts)/rounds-0.3) > 5*math.Sqrt(0.3*0.7/rounds) {
		t.Errorf("%d cuts of %d, want about 0.3", cuts, rounds)
	}
	if all := NewSim(2, 1, Faults{Cut: 1}); !all.IsCut(0, 1, 5) {
		t.Error("an edge is active although Cut is 1")
	}
	a, c := b.buffer(1), b.buffer(2)
	a.Release()
	c.Release()
	if b.pool.Get(1) != c || b.pool.Get(1) != a { // the pool returns the latest buffer first
		t.Error("messages of cut edges were not released")
	}
}

// arrivalOrder sends one message from each of agents 1..n-1 to agent 0, polls them cyclically, and
// returns the order in which they arrive.
func arrivalOrder(t *testing.T, f Faults, seed uint64) (order []int) {
	t.Helper()
	const n = 9
	net, b := NewSim(n, seed, f), newFixture()
	for from := 1; from < n; from++ {
		if err := send(context.Background(), net, b, from, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for len(order) < n-1 {
		for from := 1; from < n; from++ {
			if slices.Contains(order, from) {
				continue
			}
			if m, _, ok := net.take(from, 0); ok {
				m.Release()
				order = append(order, from)
			}
		}
	}
	return order
}

// Without Reorder, messages to one agent become visible in the order they were sent; with it they
// may overtake each other.
func TestReorder(t *testing.T) {
	sent := []int{1, 2, 3, 4, 5, 6, 7, 8}
	if got := arrivalOrder(t, Faults{}, 1); !slices.Equal(got, sent) {
		t.Errorf("without faults they arrive as %v", got)
	}
	overtook := 0
	for seed := range uint64(20) {
		// The polls of one sweep differ by a delivery each: compare when each message becomes
		// visible, not when it is polled.
		net, b := NewSim(9, seed, Faults{MaxDelay: 30}), newFixture()
		for from := 1; from < 9; from++ {
			if err := send(context.Background(), net, b, from, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		due := 0
		for from := 1; from < 9; from++ {
			if v := net.stream(from, 0).pending[0].visible; v < due {
				t.Errorf("seed %d: the message of agent %d overtakes", seed, from)
			} else {
				due = v
			}
		}
		if got := arrivalOrder(t, Faults{MaxDelay: 30, Reorder: true}, seed); !slices.Equal(got, sent) {
			overtook++
		}
	}
	if overtook < 15 {
		t.Errorf("with Reorder, messages overtook each other for %d seeds of 20", overtook)
	}
}

// A message is held back for exactly as many deliveries as were drawn.
func TestDelayIsCountedInDeliveries(t *testing.T) {
	const most = 10
	seen := map[int]bool{}
	net, b := NewSim(2, 6, Faults{MaxDelay: most}), newFixture()
	for k := range 200 {
		if err := send(context.Background(), net, b, 0, 1, k); err != nil {
			t.Fatal(err)
		}
		before := net.Deliveries()
		if err := recv(context.Background(), net, b, 1, 0, k); err != nil {
			t.Fatal(err)
		}
		held := net.Deliveries() - before - 1
		if held < 0 || held > most {
			t.Fatalf("t=%d: held back for %d deliveries", k, held)
		}
		seen[held] = true
	}
	if len(seen) != most+1 {
		t.Errorf("delays %v, want all from 0 to %d", seen, most)
	}
}

// Receivers block while there is no message for them: synctest.Wait returns when all are blocked.
func TestSimReceiversWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, b := NewSim(4, 1, Faults{MaxDelay: 3}), newFixture()
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for from := 1; from < 4; from++ {
			wg.Go(func() { errs[from] = recv(ctx, net, b, 0, from, 0) })
		}
		synctest.Wait()
		if net.Deliveries() != 0 {
			t.Errorf("%d deliveries without a message", net.Deliveries())
		}
		if err := send(ctx, net, b, 2, 0, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if net.Deliveries() == 0 {
			t.Error("the message did not wake its receiver")
		}
		cancel()
		wg.Wait()
		if errs[2] != nil || !errors.Is(errs[1], context.Canceled) || !errors.Is(errs[3], context.Canceled) {
			t.Errorf("errors %v; want none for 2, canceled for 1 and 3", errs)
		}
	})
}

func TestNewSimRefuses(t *testing.T) {
	for _, c := range []struct {
		n int
		f Faults
	}{{0, Faults{}}, {2, Faults{Cut: 1.5}}, {2, Faults{Cut: -0.1}}, {2, Faults{Cut: math.NaN()}}, {2,
		Faults{MaxDelay: -1}}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewSim(%d, %+v) did not panic", c.n, c.f)
				}
			}()
			NewSim(c.n, 1, c.f)
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("a message to no agent did not panic")
		}
	}()
	_ = NewSim(2, 1, Faults{}).Send(context.Background(), dist.Message{From: 0, To: 2})
}
