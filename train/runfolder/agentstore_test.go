package runfolder

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/config"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// The manifest of many agents on a dense graph, with large numbers, is within the limit of those
// that are read.
func TestManifestLimit(t *testing.T) {
	const n, large = 300, math.MaxInt64
	g, err := dist.ParseGraph("complete", n, 0)
	if err != nil {
		t.Fatal(err)
	}
	links := map[int]float64{}
	for i := range n - 1 {
		links[i] = 12345.678901234567
	}
	m := Manifest{AgentCounters: AgentCounters{
		Ledgers: slices.Repeat([]dist.Ledger{{Messages: large, SharedSeed: large, Packed: large, Reference: large,
			WireBytes: large}}, n),
		Grads:      slices.Repeat([]int{large}, n),
		Losses:     slices.Repeat([]snapshot.Losses{{Loss: 12.345678901234567, Grads: large}}, n),
		EdgeCounts: slices.Repeat([][]int{slices.Repeat([]int{large}, n-1)}, n),
	}}
	m.Clocks = slices.Repeat([]simnet.ClockState{{At: 12345.678901234567, Links: links}}, n)
	text, err := manifestText(&m, &m.Checksum)
	if limit := manifestLimit(&config.Setup{Graph: g}); err != nil || int64(len(text)) > limit {
		t.Errorf("a manifest of %d bytes, the limit is %d, %v", len(text), limit, err)
	}
}

// While agent 0 is absent, an agent in real time keeps all its evaluations, also in its checkpoints.
func TestStreamsLimit(t *testing.T) {
	s := resolve(t)
	s.Config.Iterations, s.Config.EvalPoints, s.Dim = 2000, 1000, 1<<20
	evaluations := int64(s.EvalCount()+1) * int64(1+len(algo.Names(s.Algo))) * 4 * int64(s.Dim)
	if limit := streamsLimit(s); evaluations < 1<<32 || limit < evaluations {
		t.Errorf("evaluations of %d bytes, the limit is %d", evaluations, limit)
	}
}

// The checkpoint of agent 0 holds the counters of the others in the last row, and its own.
func TestCountersOfOthers(t *testing.T) {
	s, dev := resolve(t), cpu.New()
	store, err := OpenAgentStore(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	sn := snapshot.New(dev, algo.NewState(s.Algo, dev, dev.NewVector(s.Dim)), 0, nil)
	sn.T, sn.Grads, sn.LastRow = 5, 50, make([]snapshot.Counters, s.Graph.N)
	sn.LastRow[0].Grads, sn.LastRow[3] = 40, snapshot.Counters{Grads: 30, Ledger: dist.Ledger{Messages: 3}, Clipped: 2}
	if err := store.Write(s, sn, 0); err != nil {
		t.Fatal(err)
	}
	ck, _, _, err := store.Newest(s, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	if got := ck.Counters(3); ck.Counters(0).Grads != 50 || !reflect.DeepEqual(got, sn.LastRow[3]) {
		t.Errorf("agent 0 has %d gradients, agent 3 %+v", ck.Counters(0).Grads, got)
	}
}
