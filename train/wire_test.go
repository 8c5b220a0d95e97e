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
			if sum := float64(a.DualSum); sum > 1e-4 {
				t.Errorf("%s %s: the duals sum to %g", name, wire, sum)
			}
		}
	}
}
