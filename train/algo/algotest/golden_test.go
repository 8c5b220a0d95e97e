package algotest

import (
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/device/devicetest"
)

// The golden models have ten printed digits, so the float64 tolerance is half a unit of the last
// digit. The float32 bound is at most a hundred times the actual error of the CPU, so a wrong
// coefficient exceeds it.
func TestGoldens(t *testing.T) {
	for _, c := range []struct {
		dev   device.Device
		bound float64
	}{{devicetest.NewFloat64(), 0.6e-10}, {cpu.New(), Float32Bound}} {
		worst := 0.0
		for _, g := range Goldens() {
			far, err := g.Error(c.dev)
			if err != nil || !(far <= c.bound) {
				t.Errorf("%s on %s: %.2g away, want %.2g at most; %v", g.Name, c.dev.Name(), far, c.bound, err)
			}
			worst = max(worst, far)
		}
		if worst < c.bound/100 {
			t.Errorf("on %s the worst is %.2g, of a bound of %.2g: the bound tells nothing", c.dev.Name(), worst,
				c.bound)
		}
	}
}
