package cpu

import (
	"testing"

	"fspda/device"
)

// The workspace of a Program is that of the call that needs most.
func TestWorkspace(t *testing.T) {
	code := &device.Code{Batch: 1, Features: 32, Dim: 64, Arena: 64}
	if p, err := New().Load(code); err != nil || p.(*Program).Workspace() != 0 {
		t.Errorf("%v, a workspace without calls", err)
	}
	most := 0
	for _, dims := range [][]int{{1, 4, 4, 2, 2, 3, 3, 1, 1}, {1, 4, 4, 2, 2, 1, 1, 1, 0}} {
		in := device.Ref{Space: device.Input, Len: 32}
		weights := device.Ref{Space: device.Params, Len: 4 * dims[5] * dims[6]}
		call := device.Call{Kernel: device.Conv, Dims: dims, In: []device.Ref{in, weights},
			Out: []device.Ref{{Space: device.Arena, Len: 32}}}
		code.Calls = append(code.Calls, call)
		most = max(most, kernels.Scratch(&call, 1))
	}
	p, err := New().Load(code)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.(*Program).Workspace(); got != 4*most || most == 0 {
		t.Errorf("workspace of %d bytes, want %d", got, 4*most)
	}
}
