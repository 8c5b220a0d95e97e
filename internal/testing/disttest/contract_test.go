package disttest_test

import (
	"testing"

	"fspda/dist"
	"fspda/internal/testing/disttest"
)

// A Sim fulfils the contract without faults, and with delay and reordering.
func TestSimContract(t *testing.T) {
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
