package cuda

import (
	"math"
	"os"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// Evaluations in 16 bits have the CPU's loss and hits up to rounding, with the statistics of their
// batch and with running ones.
func TestHalfScores(t *testing.T) {
	for _, p := range []Precision{FP16, BF16} {
		d, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(p))
		for name, net := range exampleNetworks(t) {
			if name != "mlp" && p == BF16 && os.Getenv("FSPDA_LONG") == "" {
				continue // convolutions in host memory are slow
			}
			b := exampleBatch(net)
			want, got := scores(t, net, cpu.New(), b), scores(t, net, d, b)
			bound := map[Precision]float64{FP16: 0.005, BF16: 0.03}[p]
			for i := range want {
				// Of four examples one may be so close that a rounding decides.
				if far := math.Abs(got[i][0] - want[i][0]); !(far <= bound*want[i][0]) ||
					math.Abs(got[i][1]-want[i][1]) > 1 || math.Abs(got[i][2]-want[i][2]) > 1 {
					t.Errorf("%s, %s, evaluation %d: loss and hits %v, want %v", p, name, i, got[i], want[i])
				}
			}
		}
	}
}

// scores returns the loss and the hits of a batch with its own statistics, and with running ones
// where the network has them.
func scores(t *testing.T, net *model.Network, d device.Device, b device.Batch) (all [][3]float64) {
	t.Helper()
	m := model.NewEngine(net, d)
	x := d.NewVector(net.Dim())
	d.Write(x, net.Init(1))
	add := func(loss, hits, five float64, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, [3]float64{loss, hits, five})
	}
	add(m.Score(x, b))
	running := net.InitBuffers()
	if len(running) == 0 {
		return all
	}
	buffers := d.NewVector(len(running))
	d.Write(buffers, running)
	for range 2 {
		if err := m.Observe(x, buffers, b, 0.5); err != nil {
			t.Fatal(err)
		}
	}
	add(m.ScoreWith(x, buffers, b))
	return all
}
