package vec

import (
	"fmt"

	"fspda/device"
)

// Ops implements the operations of a device.Device on vectors.
type Ops struct{}

// Vector is a vector of the host. Data may be read and written directly; its length must not
// change.
type Vector struct {
	Data []float32
}

func (v *Vector) Len() int { return len(v.Data) }

// Write copies src to dst. It panics if the lengths differ.
func (Ops) Write(dst device.Vector, src []float32) {
	d := Data("Write", dst)
	CheckLen("Write", "src", len(src), len(d))
	copy(d, src)
}

// Read copies src to dst. It panics if the lengths differ.
func (Ops) Read(dst []float32, src device.Vector) {
	s := Data("Read", src)
	CheckLen("Read", "dst", len(dst), len(s))
	copy(dst, s)
}

func (Ops) Floats(v device.Vector) []float32 { return Data("Floats", v) }

// Wrap implements [device.Host]. The result is a *Vector.
func (Ops) Wrap(numbers []float32) device.Vector { return &Vector{Data: numbers} }

// Data returns the numbers of v, for the operation op. It panics if v is not a *Vector.
func Data(op string, v device.Vector) []float32 {
	if v, ok := v.(*Vector); ok {
		return v.Data
	}
	panic(fmt.Sprintf("cpu: %s: %T is not a vector of this device, want *cpu.Vector", op, v))
}

// CheckLen panics if an operand of the operation op has the length got instead of want.
func CheckLen(op, what string, got, want int) {
	if got != want {
		panicLen(op, what, got, want)
	}
}

// panicLen is separate from CheckLen so that the latter costs its callers one comparison.
func panicLen(op, what string, got, want int) {
	panic(fmt.Sprintf("cpu: %s: %s has length %d, want %d", op, what, got, want))
}
