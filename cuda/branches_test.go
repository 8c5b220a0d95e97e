package cuda

import (
	"os"
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// languageGradients starts the gradients of some agents of a small language model together, in some
// rounds, and returns the losses and gradients of the last.
func languageGradients(t *testing.T, d *Device, agents, rounds int) (all [][]float32) {
	t.Helper()
	net, err := model.Open("gpt-nano", model.Options{Classes: 11,
		Transformer: model.Transformer{Layers: 1, Heads: 2, Width: 16, Block: 6}})
	if err != nil {
		t.Fatal(err)
	}
	e := model.NewEngine(net, d)
	var x, g []device.Vector
	for a := range agents {
		x, g = append(x, d.NewVector(net.Dim())), append(g, d.NewVector(net.Dim()))
		d.Write(x[a], net.Init(uint64(a+1)))
	}
	losses := make([]float64, agents)
	for range rounds {
		var waits []func() (float64, error)
		for a := range agents {
			b := device.Batch{Length: 6}
			for i := range 12 {
				b.X, b.Y = append(b.X, float32((i+a)%11)), append(b.Y, int32((i*5+a)%11))
			}
			waits = append(waits, e.StartGrad(g[a], x[a], nil, b))
		}
		for a, wait := range waits {
			if losses[a], err = wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for a := range agents {
		host := make([]float32, net.Dim(), net.Dim()+1)
		d.Read(host, g[a])
		all = append(all, append(host, float32(losses[a])))
	}
	return all
}

// The gradients of agents that are computed at the same time have the bits of those that take turns,
// because branches have no memory. FSPDA_LONG=1 also computes them in fp32 and fp16.
func TestBranches(t *testing.T) {
	const agents = maxBranches + 2
	precisions := []Precision{BF16}
	if os.Getenv("FSPDA_LONG") != "" {
		precisions = append(precisions, FP32, FP16)
	}
	for _, precision := range precisions {
		var want [][]float32
		for _, c := range []struct {
			memory   uintptr
			branches int
		}{{blasWorkspace + 8<<20, 0}, {0, maxBranches - 1}} {
			d, _ := openFake(t, fakegpu.Options{Memory: c.memory}, false, WithPrecision(precision))
			got := languageGradients(t, d, agents, 4)
			for a := range want {
				if !slices.Equal(got[a], want[a]) {
					t.Errorf("%s: agent %d has another gradient", precision, a)
				}
			}
			want = got
			streams := 0
			for _, b := range d.branches.all {
				if b != nil {
					streams++
				}
			}
			if streams != c.branches {
				t.Errorf("%s: %d branches beside the executor's stream, want %d", precision, streams, c.branches)
			}
		}
	}
}
