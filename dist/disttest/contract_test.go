package disttest_test

import (
	"testing"

	"fspda/dist"
	"fspda/dist/disttest"
)

// Without faults, a Sim is a Transport like any other; delay and reordering break no promise
// either.
func TestSimKeepsTheContract(t *testing.T) {
	for name, f := range map[string]disttest.Faults{
		"no faults": {},
		"delay":     {MaxDelay: 20},
		"reorder":   {MaxDelay: 20, Reorder: true},
	} {
		t.Run(name, func(t *testing.T) {
			disttest.TestTransport(t, func(t *testing.T, n int) dist.Transport { return disttest.NewSim(n, 3, f) })
		})
	}
}
