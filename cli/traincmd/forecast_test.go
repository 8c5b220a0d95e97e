package traincmd

import (
	"slices"
	"testing"

	"fspda/train"
	"fspda/train/memory"
)

// The memory of each GPU is listed by its use.
func TestMemoryLines(t *testing.T) {
	f := train.Forecast{Devices: []memory.Forecast{{Name: "cuda:0", Agents: 8, Need: 3e9, Opened: 2e8, Free: 84e9,
		Total: 85e9,
		Parts: []memory.Part{{What: "vectors of agents", Bytes: 2.5e9}, {What: "batches", Bytes: 5e8}}}}}
	want := []string{"cuda:0: 8 agents need 3 GB of its memory; 84 GB of 85 GB are free",
		"  vectors of agents                      2.5 GB", "  batches                                500 MB",
		"  already used: 200 MB by kernels and libraries, 800 MB by the driver and other programs"}
	if got := memoryLines(f); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
