package cpu

import (
	"testing"

	"fspda/device"
)

// If one call cannot read the examples as bytes, all calls get numbers.
func TestReadsBytes(t *testing.T) {
	x := device.Ref{Space: device.Input, Len: 12}
	linear := device.Call{Kernel: device.Linear, In: []device.Ref{x, {Space: device.Params}, {Space: device.Params}},
		Dims: []int{3, 2, 4}}
	code := func(calls ...device.Call) *device.Code { return &device.Code{Batch: 3, Features: 4, Calls: calls} }
	if !readsBytes(code(linear, linear)) {
		t.Error("layers do not read bytes")
	}
	conv := linear
	conv.Kernel = device.Conv
	whole := linear
	whole.Dims = []int{1, 2, 12}
	part := linear
	part.In = []device.Ref{{Space: device.Input, Len: 8}, {}, {}}
	second := linear
	second.In = []device.Ref{x, x, {}}
	for what, c := range map[string]device.Call{"a convolution": conv, "another shape": whole, "a part": part,
		"a second input": second} {
		if readsBytes(code(linear, c)) {
			t.Errorf("%s reads bytes", what)
		}
	}
}
