package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
)

// The networks without batch norm have the counts of parameters that their documentation and their
// sources give, and no running statistics.
func TestNetworksWithoutBatchNorm(t *testing.T) {
	for _, c := range []struct {
		name                string
		parameters, tensors int
		first, last         string
	}{
		{"gn-lenet", 89834, 14, "conv1.weight[32 5 5 3]OHWI", "fc1.bias[10]"},
		{"vgg11", 9750922, 22, "features.0.weight[64 3 3 3]OHWI", "classifier.6.bias[10]"},
		{"resnet20-gn", 272474, 65, "conv1.weight[16 3 3 3]OHWI", "fc.bias[10]"},
		// a v for each channel of the stem and of the first norm of each block
		{"resnet20-evonorm", 272474 + 16 + 3*(16+32+64), 75, "conv1.weight[16 3 3 3]OHWI", "fc.bias[10]"},
	} {
		net, err := Open(c.name, Options{Shape: []int{32, 32, 3}, Classes: 10})
		if err != nil {
			t.Fatal(err)
		}
		all := net.Layout().Tensors()
		text := func(t Tensor) string { return fmt.Sprint(t.Name, t.Shape, t.Axes) }
		if net.Dim() != c.parameters || len(all) != c.tensors || text(all[0]) != c.first ||
			text(all[len(all)-1]) != c.last || net.Buffers().Dim() != 0 {
			t.Errorf("%s: %d parameters in %d tensors from %s to %s, %d of buffers; want %+v", c.name, net.Dim(),
				len(all),
				text(all[0]), text(all[len(all)-1]), net.Buffers().Dim(), c)
		}
	}
}

// The modules of torchvision's list: 3×3 convolutions at 0, 3, 6, 8, 11, 13, 16 and 18.
func TestVGGTensors(t *testing.T) {
	net, err := VGG11(ConvNetOptions{Height: 32, Width: 32, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range net.Layout().Tensors() {
		if name, ok := strings.CutSuffix(x.Name, ".weight"); ok {
			got = append(got, name)
		}
	}
	want := []string{"features.0", "features.3", "features.6", "features.8", "features.11", "features.13",
		"features.16",
		"features.18", "classifier.1", "classifier.4", "classifier.6"}
	if !slices.Equal(got, want) {
		t.Errorf("layers %v, want %v", got, want)
	}
}

// Their gradients agree with finite differences, and their plans on the host have the bits of
// Gorgonia's own machine.
func TestConvNetGradients(t *testing.T) {
	for _, name := range []string{"gn-lenet", "resnet20-gn", "resnet20-evonorm"} {
		t.Run(name, func(t *testing.T) {
			net, err := Open(name, Options{Shape: []int{8, 8, 1}, Classes: 3, Loss: LossOptions{WeightDecay: 0.01}})
			if err != nil {
				t.Fatal(err)
			}
			g, err := net.Graph(2, Train, cpu.Call)
			if err != nil {
				t.Fatal(err)
			}
			p, err := g.Compile()
			if err != nil {
				t.Fatal(err)
			}
			x, b := net.Init(3), device.Batch{X: round(random(128, 31)), Y: []int32{2, 0}}
			got, results := onDevice(t, p.Code(), x, b)
			want, out := make([]float32, p.Code().Dim), make([]float64, 1)
			if err := g.Evaluate(x, want, b, out); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
					t.Fatalf("derivative by parameter %d is %v, Gorgonia's machine has %v", i, got[i], want[i])
				}
			}
			if results[0] != out[0] {
				t.Errorf("loss %v, Gorgonia's machine has %v", results[0], out[0])
			}
			alongGradient(t, p.Code(), widened(x), widened(b.X), b.Y)
		})
	}
}

// alongGradient compares the slope of the loss along its gradient with a central difference, in
// float64.
func alongGradient(t *testing.T, code *device.Code, params, x []float64, labels []int32) {
	t.Helper()
	_, gradient := run64(code, params, x, labels)
	square := 0.0
	for _, g := range gradient {
		square += g * g
	}
	h := 1e-5 / math.Sqrt(square)
	at := func(step float64) float64 {
		moved := slices.Clone(params)
		for i, g := range gradient {
			moved[i] += step * g
		}
		out, _ := run64(code, moved, x, labels)
		return out[0]
	}
	slope := (at(h) - at(-h)) / (2 * h)
	if !(math.Abs(slope/square-1) < 1e-5) {
		t.Errorf("the loss rises by %v along the gradient, whose square is %v", slope, square)
	}
}
