package device_test

import (
	"testing"

	"fspda/device"
)

func TestRefString(t *testing.T) {
	for _, c := range []struct {
		ref  device.Ref
		want string
	}{
		{device.Ref{Space: device.Params, Off: 0, Len: 5}, "params[0:5]"},
		{device.Ref{Space: device.Grads, Off: 5, Len: 5}, "grads[5:10]"},
		{device.Ref{Space: device.Arena, Off: 16, Len: 1}, "arena[16:17]"},
		{device.Ref{Space: device.Input, Len: 2}, "input[0:2]"},
		{device.Ref{Space: device.Labels, Len: 2}, "labels[0:2]"},
		{device.Ref{Space: device.Buffers, Off: 3, Len: 2}, "buffers[3:5]"},
		{device.Ref{Space: device.Momentum, Len: 1}, "momentum[0:1]"},
	} {
		if got := c.ref.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// Operands of one space overlap where they share at least one number.
func TestRefOverlaps(t *testing.T) {
	r := device.Ref{Space: device.Arena, Off: 4, Len: 4}
	for _, c := range []struct {
		other device.Ref
		want  bool
	}{
		{device.Ref{Space: device.Arena, Off: 4, Len: 4}, true},
		{device.Ref{Space: device.Arena, Off: 5, Len: 1}, true},
		{device.Ref{Space: device.Arena, Off: 0, Len: 5}, true},
		{device.Ref{Space: device.Arena, Off: 0, Len: 4}, false},
		{device.Ref{Space: device.Arena, Off: 8, Len: 4}, false},
		{device.Ref{Space: device.Grads, Off: 4, Len: 4}, false},
	} {
		if r.Overlaps(c.other) != c.want || c.other.Overlaps(r) != c.want ||
			r.OverlapsAny([]device.Ref{c.other}) != c.want {
			t.Errorf("%s overlaps %s: %v, want %v", r, c.other, !c.want, c.want)
		}
	}
}

// Kernels lists every kernel once; tests and devices iterate over it.
func TestKernelsAreDistinct(t *testing.T) {
	seen := map[device.Kernel]bool{}
	for _, k := range device.Kernels() {
		if seen[k] || k == "" {
			t.Errorf("kernel %q is listed twice or empty", k)
		}
		seen[k] = true
	}
}
