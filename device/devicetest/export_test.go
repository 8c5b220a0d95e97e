package devicetest

import (
	"testing"

	"fspda/device"
)

// Report runs the named part of the contract, or the check of the named kernel, on d. It reports a
// panic as an error.
func Report(t testing.TB, name string, d device.Device) {
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
		}
	}()
	for _, c := range append(vectorChecks, programChecks...) {
		if c.name == name {
			c.on(t, float32Arithmetic, d, false)
			return
		}
	}
	check{name, func(f *field) { checkKernel(f, device.Kernel(name)) }}.on(t, float32Arithmetic, d, false)
}

// ExactVectors runs the vector checks on a device that does not round to float32.
func ExactVectors(t *testing.T, d device.Device) {
	for _, c := range vectorChecks {
		t.Run(c.name, func(t *testing.T) { c.on(t, func(v float64) float64 { return v }, d, false) })
	}
}
