package plan

import (
	"fmt"
	"strings"
	"testing"

	"fspda/device"
)

// The values of code written by hand follow from its addresses.
func TestDataflowOfHandWrittenCode(t *testing.T) {
	at := func(off, n int) device.Ref { return device.Ref{Space: device.Arena, Off: off, Len: n} }
	x := device.Ref{Space: device.Input, Len: 4}
	call := func(out device.Ref, in ...device.Ref) device.Call {
		return device.Call{Kernel: device.Add, In: in, Out: []device.Ref{out}, Dims: []int{4}}
	}
	results := []device.Result{{Name: "last", Ref: at(2, 1)}}
	for name, c := range map[string]struct {
		calls []device.Call
		want  string // the dataflow, or an error
	}{
		"in place": {[]device.Call{call(at(0, 4), x, x), call(at(0, 4), at(0, 4), x)},
			"{[{arena[0:4] -1} {arena[0:4] 0}] [[-1 -1] [0 -1]] [[0] [1]] [1]}"},
		"overwritten": {[]device.Call{call(at(0, 4), x, x), call(at(4, 4), at(0, 4), x), call(at(0, 4), x, x)},
			"{[{arena[0:4] -1} {arena[4:8] -1} {arena[0:4] -1}] [[-1 -1] [0 -1] [-1 -1]] [[0] [1] [2]] [2]}"},
		"a part": {[]device.Call{call(at(0, 4), x, x), call(at(4, 2), at(0, 2), x)},
			"call 1, add: input 0: arena[0:2] is a part"},
		"not written": {[]device.Call{call(at(0, 4), at(4, 4), x)},
			"call 0, add: input 0: nothing was computed at arena[4:8]"},
		"a lost value": {[]device.Call{call(at(0, 4), x, x), call(at(3, 4), x, x)},
			"result last: nothing was computed at arena[2:3]"},
	} {
		flow, err := Dataflow(&device.Code{Calls: c.calls, Results: results})
		got := fmt.Sprint(flow)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
