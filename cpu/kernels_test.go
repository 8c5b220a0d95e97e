package cpu

import (
	"strings"
	"testing"

	"fspda/device"
)

func TestEveryKernelIsKnown(t *testing.T) {
	for _, k := range device.Kernels() {
		if _, ok := kernels[k]; !ok {
			t.Errorf("%s is missing from the table", k)
		}
	}
	if len(kernels) != len(device.Kernels()) {
		t.Errorf("the table has %d kernels, device.Kernels %d", len(kernels), len(device.Kernels()))
	}
}

func TestCallErrors(t *testing.T) {
	f := func(n ...int) [][]float32 {
		var s [][]float32
		for _, k := range n {
			s = append(s, make([]float32, k))
		}
		return s
	}
	for _, c := range []struct {
		call    device.Call
		in, out [][]float32
		want    string
	}{
		{device.Call{Kernel: "sigmund"}, nil, nil, "cpu: sigmund: kernel is unknown"},
		{device.Call{Kernel: device.Linear, Name: "fc1", Dims: []int{1, 2}}, nil, nil,
			"cpu: linear (fc1): 2 dimensions [1 2], want 3 (mnk)"},
		{device.Call{Kernel: device.Linear, Dims: []int{1, -2, 3}}, nil, nil,
			"cpu: linear: dimension n is -2, want at least 1"},
		{device.Call{Kernel: device.Linear, Dims: []int{1, 2, 3}}, f(3, 6), f(2), "cpu: linear: 2 inputs, want 3"},
		{device.Call{Kernel: device.Linear, Dims: []int{1, 2, 3}}, f(3, 5, 2), f(2),
			"cpu: linear: input 1 has length 5, want 6 (nk of dimensions [1 2 3])"},
		{device.Call{Kernel: device.LinearGradW, Dims: []int{1, 2, 3}}, f(3, 2), f(6, 3),
			"cpu: linear-grad-w: output 1 has length 3, want 2"},
		{device.Call{Kernel: device.Score, Dims: []int{2, 3}}, f(6, 2), f(2),
			"cpu: score: output 0 has length 2, want 3"},
		{device.Call{Kernel: device.Conv, Dims: []int{2, 5, 7, 3, 4, 3, 2, 2, 1}}, f(210, 72), f(95),
			"cpu: conv: output 0 has length 95, want 96 (npqk of"},
		{device.Call{Kernel: device.Conv, Dims: []int{2, 5, 7, 3, 4, 3, 2, 0, 1}}, nil, nil,
			"cpu: conv: dimension t is 0, want at least 1"},
		{device.Call{Kernel: device.Conv, Dims: []int{2, 5, 7, 3, 4, 3, 2, 1, -1}}, nil, nil,
			"cpu: conv: dimension o is -1, want at least 0"},
		{device.Call{Kernel: device.ConvGradX, Dims: []int{1, 5, 7, 3, 4, 3, 2, 1, 2}}, nil, nil,
			"cpu: conv-grad-x: window of 3×2 with padding 2 over"},
		{device.Call{Kernel: device.ConvGradW, Dims: []int{1, 2, 9, 3, 4, 5, 3, 1, 1}}, nil, nil,
			"cpu: conv-grad-w: window of 5×3 with padding 1 over an input of 2×9"},
		{device.Call{Kernel: device.Score, Dims: []int{2, 3}}, [][]float32{make([]float32, 6), {0, 0.5}}, f(3),
			"cpu: score: label of row 1 is 0.5"},
	} {
		err := Call(&c.call, c.in, c.out)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
