package cpu

import (
	"math"
	"strings"
	"testing"

	"fspda/device"
)

// The contract tests which code Load refuses; this tests the text of the errors.
func TestLoadErrors(t *testing.T) {
	for want, spoil := range map[string]func(*device.Code){
		"batch is 0, want at least 1":  func(c *device.Code) { c.Batch = 0 },
		"arena is -1, want at least 0": func(c *device.Code) { c.Arena = -1 },
		"result hits is at arena[99:100], want an element of the arena of 16": func(c *device.Code) {
			c.Results[1].Ref.Off = 99
		},
		"result loss is at space 9":           func(c *device.Code) { c.Results[0].Ref.Space = 9 },
		"call 0, lin (fc): kernel is unknown": func(c *device.Code) { c.Calls[0].Kernel = "lin" },
		"call 0, linear (fc): input 1: params[4:13], want a range within params": func(c *device.Code) {
			c.Calls[0].In[1].Off = 4
		},
		"call 0, linear (fc): input 0: space 99 is unknown": func(c *device.Code) { c.Calls[0].In[0].Space = 99 },
		"call 0, linear (fc): output 0 is at params[0:6], want arena, grads or buffers": func(c *device.Code) {
			c.Calls[0].Out[0].Space = device.Params
		},
		"call 0, linear (fc): output 0: arena[11:17], want a range within arena[0:16]": func(c *device.Code) {
			c.Calls[0].Out[0].Off = 11
		},
		"call 0, linear (fc): input 0: input[9223372036854775807:-9223372036854775802], want": func(c *device.Code) {
			c.Calls[0].In[0] = device.Ref{Space: device.Input, Off: math.MaxInt, Len: 7}
		},
		"call 1, softmax-cross-entropy (loss): " +
			"output 1 at arena[5:11] overlaps input 0 at arena[0:6]": func(c *device.Code) {
			c.Calls[1].Out[1].Off = 5
		},
		"call 1, softmax-cross-entropy (loss): " +
			"output 1 at arena[6:12] overlaps output 0 at arena[8:9]": func(c *device.Code) {
			c.Calls[1].Out[0].Off = 8
		},
		"call 2, linear-grad-w (fc): output 0: grads[0:9]: this code has no gradient": func(c *device.Code) {
			c.Gradient = false
		},
	} {
		code := layer(2, 3, 3)
		if _, err := New().Load(code); err != nil {
			t.Fatal(err)
		}
		spoil(code)
		if _, err := New().Load(code); err == nil || !strings.HasPrefix(err.Error(), "cpu: load layer: "+want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// The output of a kernel that works in place may be exactly an input, but may not overlap it
// partly.
func TestOverlapInPlace(t *testing.T) {
	try := func(k device.Kernel, out int) error {
		in := device.Ref{Space: device.Arena, Off: 4, Len: 4}
		_, err := New().Load(&device.Code{Batch: 1, Arena: 12, Calls: []device.Call{
			{Kernel: k, In: []device.Ref{in}, Out: []device.Ref{{Space: device.Arena, Off: out, Len: 4}},
				Dims: []int{4}}}})
		return err
	}
	for out, ok := range map[int]bool{0: true, 1: false, 4: true, 7: false, 8: true} {
		if err := try(device.Sigmoid, out); (err == nil) != ok {
			t.Errorf("output at %d: %v", out, err)
		}
	}
}
