package cpu

import (
	"fmt"

	"fspda/device"
)

// Device is the host: its vectors are slices of float32 in ordinary memory. It holds no state, so any number of goroutines may
// use one Device, and all Devices are alike.
type Device struct{}

var _ device.Device = (*Device)(nil)

// New returns the host's device.
func New() *Device { return &Device{} }

// Name returns "cpu".
func (*Device) Name() string { return "cpu" }

// Vector is a vector of this device. Whoever holds one may read and write Data directly; its length must stay as it is.
type Vector struct {
	Data []float32
}

var _ device.Vector = (*Vector)(nil)

// Len is the number of elements.
func (v *Vector) Len() int { return len(v.Data) }

// NewVector returns a vector of n zeros. The result is a *Vector.
func (*Device) NewVector(n int) device.Vector { return &Vector{Data: aligned(n)} }

// Write copies src to dst. It panics if the lengths differ.
func (*Device) Write(dst device.Vector, src []float32) {
	d := data("Write", dst)
	checkLen("Write", "src", len(src), len(d))
	copy(d, src)
}

// Read copies src to dst. It panics if the lengths differ.
func (*Device) Read(dst []float32, src device.Vector) {
	s := data("Read", src)
	checkLen("Read", "dst", len(dst), len(s))
	copy(dst, s)
}

// data returns the numbers of v, for the operation op.
func data(op string, v device.Vector) []float32 {
	if v, ok := v.(*Vector); ok {
		return v.Data
	}
	panic(fmt.Sprintf("cpu: %s: %T is no vector of this device, want *cpu.Vector", op, v))
}

// checkLen panics if operand what of the operation op has got elements, not want.
func checkLen(op, what string, got, want int) {
	if got != want {
		panicLen(op, what, got, want)
	}
}

// panicLen is apart from checkLen so that the latter costs its callers one comparison.
func panicLen(op, what string, got, want int) {
	panic(fmt.Sprintf("cpu: %s: %s has length %d, want %d", op, what, got, want))
}
