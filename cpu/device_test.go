package cpu

import (
	"os"
	"strings"
	"testing"

	"fspda/cpu/isa"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/internal/testing/kerneltest"
)

// FSPDA_LONG=1 checks all shapes where kernels are loops in Go, which are slow.
func TestContract(t *testing.T) {
	check := devicetest.Contract
	if !isa.Assembly() && os.Getenv("FSPDA_LONG") == "" {
		check = devicetest.ShortContract
	}
	check(t, func() device.Device { return New() })
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
		"device: Combine: a term has length 3, want 4": func() {
			d.Do(device.Combine(d.NewVector(4), term(d.NewVector(3))))
		},
		"device: Dot: b has length 1, want 2": func() {
			device.InnerProduct(d, d.NewVector(2), d.NewVector(1))
		},
		"device: AddDiff: other has length 1, want 2": func() {
			d.Do(device.AddDiff(d.NewVector(2), d.NewVector(1), nil))
		},
		"cpu: Do: *devicetest.Vector64 is not a vector": func() {
			d.Do(device.Combine(devicetest.NewFloat64().NewVector(1)))
		},
		"device: Gather: dst has length 1, want 2": func() { d.Do(device.Gather(d.NewVector(1), d.NewVector(2), nil)) },
		"cpu: Do: devicetest.index64 is not an index": func() {
			d.Do(device.Gather(d.NewVector(1), d.NewVector(1), devicetest.NewFloat64().NewIndex([]uint32{0}, nil)))
		},
	} {
		if got := kerneltest.Panic(t, f); !strings.HasPrefix(got, want) {
			t.Errorf("panic %q, want %q", got, want)
		}
	}
}
