package megakernel

import (
	"testing"

	"fspda/cuda/kernels"
)

// Calls that select coordinates are accepted up to fewer threads than other calls.
func TestAccepts(t *testing.T) {
	m, most := &Megakernel{MaxThreads: maxThreads}, kernels.ManyCoordinates
	term := kernels.Term{A: 1, V: 256}
	for _, c := range []struct {
		call kernels.Call
		want bool
	}{
		{kernels.Gather(256, 512, 1024, most), true}, {kernels.Gather(256, 512, 1024, most+1), false},
		{kernels.ScatterAdd(512, term, 1024, most+1), false}, {kernels.MoveCopy(256, 512, 1024, 0, 0, most+1), false},
		{kernels.AddDiff(256, 512, 1024, most, term), true}, {kernels.AddDiff(256, 512, 1024, most+1, term), false},
		{kernels.AddDiff(256, 512, 1024, most+1, term, term), false},
		{kernels.Fill(256, most+1, 0), true}, {kernels.Fill(256, maxThreads+1, 0), false}, {kernels.Call{}, false},
	} {
		if got := m.Accepts(c.call); got != c.want {
			t.Errorf("%v: accepted is %v, want %v", c.call, got, c.want)
		}
	}
}
