package signature_test

import (
	"fmt"

	"fspda/device"
	"fspda/device/signature"
)

// The product of a 2×3 matrix and a 3×4 matrix has 8 elements.
func ExampleCheck() {
	ref := func(s device.Space, n int) device.Ref { return device.Ref{Space: s, Len: n} }
	code := &device.Code{Batch: 2, Features: 3, Dim: 12, Arena: 20, Calls: []device.Call{{
		Kernel: device.LinearGradX,
		In:     []device.Ref{ref(device.Input, 6), ref(device.Params, 12)},
		Out:    []device.Ref{ref(device.Arena, 7)},
		Dims:   []int{2, 3, 4},
	}}}
	fmt.Println(signature.Check(code))
	// Output:
	// call 0, linear-grad-x: output 0 has length 7, want 8 (mk of dimensions [2 3 4])
}
