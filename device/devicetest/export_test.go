package devicetest

import (
	"testing"

	"fspda/device"
)

// Report runs the part of the contract that has this name on d, or a kernel's if the name is one,
// and tells t. A panic is told like a failure.
func Report(t testing.TB, name string, d device.Device) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
		}
	}()
	for _, c := range append(vectorChecks, programChecks...) {
		if c.name == name {
			c.run(t, float32Arithmetic, d)
			return
		}
	}
	checkKernel(t, d, device.Kernel(name))
}

// ExactVectors runs the vector parts of the contract on a device that does not round.
func ExactVectors(t *testing.T, d device.Device) {
	for _, c := range vectorChecks {
		t.Run(c.name, func(t *testing.T) { c.run(t, func(v float64) float64 { return v }, d) })
	}
}
