package runfolder

import (
	"math"
	"slices"
	"testing"

	"fspda/dist"
	"fspda/train/config"
	"fspda/train/simnet"
	"fspda/train/snapshot"
)

// The manifest of many agents on a dense graph, with large numbers, is within the limit of those that
// are read.
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
