//go:build !windows

package docscmd

import (
	"fspda/cli/setup"
	"fspda/cpu"
	"fspda/train"
	"testing"
)

// The picture shows the region that Resolve accepts as stable.
func TestStabilityPictureIsTheRule(t *testing.T) {
	dev := &setup.Devices{Device: cpu.New()}
	for _, dual := range []float64{0.01, 0.2, 0.5, 0.9, 1.3, 1.7} {
		for _, gamma := range []float64{0.1, 0.4, 0.6, 0.95, 1.05, 1.2, 1.5, 1.8, 1.95} {
			c := train.Default()
			c.Gamma, c.Beta, c.Eta = gamma, 1, train.AutoFloat{V: dual}
			c.DataTrain, c.DataTest, c.Hidden, c.Batch = 400, 100, train.Widths{4}, 8
			_, _, err := setup.Prepare(c, dev)
			if stable := radius(gamma, dual, 2) < 1; stable != (err == nil) {
				t.Errorf("gamma %v, eta·beta %v: radius %v, but %v", gamma, dual, radius(gamma, dual, 2), err)
			}
		}
	}
}
