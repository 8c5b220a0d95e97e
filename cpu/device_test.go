package cpu

import (
	"strings"
	"testing"

	"fspda/cpu/internal/kerneltest"
	"fspda/device"
	"fspda/device/devicetest"
)

func TestContract(t *testing.T) {
	devicetest.Contract(t, func() device.Device { return New() })
}

func term(v device.Vector) device.Term { return device.Term{A: 1, V: v} }

func TestName(t *testing.T) {
	if got := New().Name(); got != "cpu" {
		t.Errorf("name %q", got)
	}
}

// A panic names the operation, the operand and both lengths.
func TestPanicsSayWhat(t *testing.T) {
	d := New()
	for want, f := range map[string]func(){
		"cpu: Write: src has length 3, want 4": func() { d.Write(d.NewVector(4), make([]float32, 3)) },
		"cpu: Read: dst has length 5, want 4":  func() { d.Read(make([]float32, 5), d.NewVector(4)) },
		"cpu: Combine: a term has length 3, want 4": func() {
			d.Combine(d.NewVector(4), term(d.NewVector(3)))
		},
		"cpu: Dot: b has length 1, want 2":         func() { d.Dot(d.NewVector(2), d.NewVector(1)) },
		"cpu: AddDiff: other has length 1, want 2": func() { d.AddDiff(d.NewVector(2), d.NewVector(1), nil) },
		"cpu: Combine: *devicetest.Vector64 is not a vector": func() {
			d.Combine(devicetest.NewFloat64().NewVector(1))
		},
		"cpu: Gather: dst has length 1, want 2": func() { d.Gather(d.NewVector(1), d.NewVector(2), nil) },
		"cpu: Gather: devicetest.index64 is not an index": func() {
			d.Gather(d.NewVector(1), d.NewVector(1), devicetest.NewFloat64().NewIndex(nil, nil))
		},
	} {
		if got := kerneltest.Panic(t, f); !strings.HasPrefix(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
}
