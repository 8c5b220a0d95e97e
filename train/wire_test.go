package train

import (
	"math"
	"slices"
	"testing"
)

// Half as wide values cost half the bits, train as well, and leave the duals their zero sum. A run
// over NATS is the run in one process, to the bit.
func TestWire(t *testing.T) {
	for name, wires := range map[string][]string{"fspda-sa": {"fp16", "bf16"}, "dsgd": {"fp16"}, "sgd": {"bf16"}} {
		c := small()
		c.Algo, c.Agents, c.Iterations = name, 3, 60
		full := play(t, c, Options{})
		for _, wire := range wires {
			c.Wire = wire
			one := play(t, c, Options{})
			if got := withoutWireBytes(t, (&processes{t: t, c: c, name: "wire"}).run(nil)); got != withoutWireBytes(t,
				one) {
				t.Errorf("%s %s: other rows or models over NATS", name, wire)
			}
			if slices.Equal(one.Mean, full.Mean) {
				t.Errorf("%s %s: nothing was rounded", name, wire)
			}
			a, b := one.Rows[len(one.Rows)-1], full.Rows[len(full.Rows)-1]
			if a.BitsSharedSeed*2 != b.BitsSharedSeed || a.WireBytes*2 != b.WireBytes {
				t.Errorf("%s %s: %d bits and %d bytes, %d and %d with fp32", name, wire, a.BitsSharedSeed, a.WireBytes,
					b.BitsSharedSeed, b.WireBytes)
			}
			if loss, want := float64(a.TrainLossAvg), float64(b.TrainLossAvg); math.Abs(loss-want) > 0.03*want {
				t.Errorf("%s %s: loss %g, with fp32 %g", name, wire, loss, want)
			}
			s, _ := resolve(t, c)
			if got := s.ExpectedBits() * float64(c.Iterations); math.Abs(got-float64(a.BitsSharedSeed)) > 0.02*got {
				t.Errorf("%s %s: %g bits expected, %d were sent", name, wire, got, a.BitsSharedSeed)
			}
			if sum := float64(a.DualSum); sum > 1e-4 {
				t.Errorf("%s %s: the duals sum to %g", name, wire, sum)
			}
		}
	}
}

// A short wire format rounds what is sent, and leaves the models all their bits: where agents agree
// and steps are tiny, no method changes a model by as much as that format would round it.
func TestWireKeepsModels(t *testing.T) {
	tried := 0
	for _, name := range append(Algorithms(), "sparta of all coordinates") {
		c := small()
		c.Algo, c.Agents, c.Iterations, c.EvalPoints, c.Wire, c.Alpha = name, 4, 10, 1, "bf16", 1e-30
		c.Graph = "complete"
		switch name {
		case "sparta of all coordinates":
			c.Algo, c.Mask, c.Density = "sparta", "all", 1
		case "sgp":
			c.Edges = "one-peer-exp"
		}
		full := c
		full.Wire = "fp32"
		m := labModel(t, c)
		if _, err := c.Resolve(labSet, m); err != nil {
			continue // refused with a short format, or without other settings
		}
		tried++
		got, want := play(t, c, Options{}), play(t, full, Options{})
		for i, x := range got.Models {
			for j, v := range x {
				if d := math.Abs(float64(v - want.Models[i][j])); d > 1e-6*math.Abs(float64(v))+1e-20 {
					t.Errorf("%s: coordinate %d of agent %d is %g, with fp32 %g", name, j, i, v, want.Models[i][j])
					break
				}
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d methods were tried", tried)
	}
}
