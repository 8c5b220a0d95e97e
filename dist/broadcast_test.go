package dist

import (
	"math"
	"slices"
	"testing"
)

var broadcasts = []string{"broadcast(0.15)", "broadcast(1)", "broadcast-one", "broadcast-rr"}

// Active returns exactly the edges at a sender.
func TestActiveIsTheEdgesOfSenders(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	for _, spec := range broadcasts {
		p := mustProcess(t, spec, g, 2)
		var senders []int
		for k := range 200 {
			senders = p.Senders(senders, k)
			if !slices.IsSorted(senders) {
				t.Fatalf("%s at %d: senders %v", spec, k, senders)
			}
			var want []int
			for edge, e := range g.Edges {
				if slices.Contains(senders, e.I) || slices.Contains(senders, e.J) {
					want = append(want, edge)
				}
			}
			var got []int
			for _, e := range p.Active(nil, k) {
				got = append(got, e.Edge)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s at %d: edges %v, want %v of senders %v", spec, k, got, want, senders)
			}
		}
	}
}

func TestSenderRates(t *testing.T) {
	g := mustGraph(t, "er10-published", 10)
	const rounds = 20000
	for _, c := range []struct {
		spec string
		rate float64
	}{{"broadcast(0.15)", 0.15}, {"broadcast(1)", 1}, {"broadcast-one", 0.1}, {"broadcast-rr", 0.1}} {
		p := mustProcess(t, c.spec, g, 6)
		var count [10]float64
		var senders []int
		for k := range rounds {
			senders = p.Senders(senders, k)
			for _, i := range senders {
				count[i]++
			}
		}
		for i, n := range count {
			if math.Abs(n/rounds-c.rate) > 5*math.Sqrt(c.rate*(1-c.rate)/rounds)+1e-12 {
				t.Errorf("%s: agent %d sends at %.4f of the iterations, want %v", c.spec, i, n/rounds, c.rate)
			}
		}
	}
}

func TestRoundRobinSender(t *testing.T) {
	p := mustProcess(t, "broadcast-rr", mustGraph(t, "ring", 7), 2)
	for k := range 20 {
		if got := p.Senders(nil, k); len(got) != 1 || got[0] != k%7 {
			t.Errorf("senders at %d: %v", k, got)
		}
	}
}

func TestSendersAllocateNothing(t *testing.T) {
	for _, spec := range broadcasts {
		p := mustProcess(t, spec, mustGraph(t, "ring", 7), 2)
		dst, round := make([]int, 0, 7), 0
		if allocs := testing.AllocsPerRun(100, func() { dst = p.Senders(dst, round); round++ }); allocs != 0 &&
			!raceEnabled {
			t.Errorf("%s: Senders allocates %v times", spec, allocs)
		}
	}
}

// Only the broadcast processes broadcast.
func TestWhoBroadcasts(t *testing.T) {
	g := mustGraph(t, "ring", 7)
	for _, spec := range processes {
		ok := mustProcess(t, spec, g, 1).Broadcasts()
		if want := len(spec) > 9 && spec[:9] == "broadcast"; ok != want {
			t.Errorf("%s: broadcasts %v, want %v", spec, ok, want)
		}
	}
}
