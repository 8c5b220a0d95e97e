package train

import (
	"math"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/model"
)

// Every algorithm leaves frozen coordinates as they were at the start, to the last bit, and moves
// the others.
func TestFrozenCoordinatesStay(t *testing.T) {
	for _, l := range lines {
		c := l.config()
		c.Iterations, c.EvalPoints = 30, 1
		c.Freeze = "fc1.weight"
		m := labModel(t, c)
		net, err := m.WithFactors(c.Frozen(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m = model.NewEngine(net, cpu.New())
		s, err := c.Resolve(labSet, m)
		if s == nil {
			t.Logf("%s: %v", l.name, err)
			if !slices.Contains([]string{"beer", "choco", "ticopd", "docom", "fspda-sa-ef", "fspda-sa-sketch", "gasloc",
				"sparseloco", "powergossip", "relaysgd", "sgp", "swarm"}, c.Algo) && c.Params["quantize"] == nil {
				t.Errorf("%s is refused", l.name)
			}
			continue
		}
		r, err := Run(t.Context(), s, Options{Device: cpuDevice, Model: m})
		if err != nil {
			t.Fatalf("%s: %v", l.name, err)
		}
		x := m.Init(c.Seed)
		tensor, _ := net.Layout().Tensor("fc1.weight")
		moved := 0
		for i, got := range r.Models {
			for k := range got {
				same := math.Float32bits(got[k]) == math.Float32bits(x[k])
				if frozen := k < tensor.Size; frozen && !same {
					t.Fatalf("%s: agent %d moved frozen coordinate %d from %v to %v", l.name, i, k, x[k], got[k])
				} else if !frozen && !same {
					moved++
				}
			}
		}
		if moved == 0 {
			t.Errorf("%s: nothing moved", l.name)
		}
	}
}
