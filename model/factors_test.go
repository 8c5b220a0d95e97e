package model_test

import (
	"math"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/model"
)

// The gradient of a tensor is the factor times that of the network without factors, to the last
// bit; frozen ones are zero.
func TestFactors(t *testing.T) {
	for _, c := range []struct {
		network string
		frozen  []string
		factors []model.Factor
		want    func(name string) float32
	}{
		{"resnet20", []string{"conv1", "bn1", "layer1"}, []model.Factor{{"fc", 10}}, func(name string) float32 {
			switch {
			case strings.HasPrefix(name, "conv1.") || strings.HasPrefix(name, "bn1.") ||
				strings.HasPrefix(name, "layer1."):
				return 0
			case strings.HasPrefix(name, "fc."):
				return 10
			}
			return 1
		}},
		{"resnet20", []string{"*", "!fc"}, nil, func(name string) float32 {
			if strings.HasPrefix(name, "fc.") {
				return 1
			}
			return 0
		}},
		{"resnet20", []string{"*.*.bn?"}, []model.Factor{{"layer*", 0.5}, {"layer3.0", 0.25}},
			func(name string) float32 {
				parts := strings.Split(name, ".")
				switch {
				case len(parts) > 2 && strings.HasPrefix(parts[2], "bn"):
					return 0
				case strings.HasPrefix(name, "layer3.0."):
					return 0.25
				case strings.HasPrefix(name, "layer"):
					return 0.5
				}
				return 1
			}},
	} {
		net, err := model.Open(c.network, model.Options{Shape: []int{8, 8, 3}, Classes: 4,
			Loss: model.LossOptions{WeightDecay: 0.1}})
		if err != nil {
			t.Fatal(err)
		}
		with, err := net.WithFactors(c.frozen, c.factors)
		if err != nil {
			t.Fatal(err)
		}
		dev := cpu.New()
		x := dev.NewVector(net.Dim())
		dev.Write(x, net.Init(1))
		plain, got := ask(t, model.NewEngine(net, dev), dev, x, 3), ask(t, model.NewEngine(with, dev), dev, x, 3)
		if got.loss != plain.loss {
			t.Errorf("%v: the loss is %v, want %v", c.frozen, got.loss, plain.loss)
		}
		for _, tensor := range net.Layout().Tensors() {
			f := c.want(tensor.Name)
			for k := tensor.Offset; k < tensor.Offset+tensor.Size; k++ {
				if want := f * plain.grad[k]; math.Float32bits(got.grad[k]+0) != math.Float32bits(want+0) {
					t.Errorf("%v, %s: gradient %v, want %v", c.frozen, tensor.Name, got.grad[k], want)
					break
				}
			}
		}
	}
}

// A frozen network computes less: the backward pass ends where nothing below it is trained.
func TestFrozenLayersAreNotDifferentiated(t *testing.T) {
	net, err := model.Open("resnet20", model.Options{Shape: []int{8, 8, 3}, Classes: 4})
	if err != nil {
		t.Fatal(err)
	}
	head, err := net.WithFactors([]string{"*", "!fc"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := head.Plan(2, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range p.Code().Calls {
		switch call.Kernel {
		case device.ConvGradX, device.ConvGradW, device.BatchNormGrad, device.BatchNormReLUGrad,
			device.BatchNormAddReLUGrad:
			t.Errorf("%s is computed in layer %s", call.Kernel, call.Name)
		}
	}
}

func TestFactorsRefuse(t *testing.T) {
	net, err := model.Open("mlp", model.Options{Shape: []int{4}, Classes: 3, Hidden: []int{5}})
	if err != nil {
		t.Fatal(err)
	}
	type factors = []model.Factor
	for _, c := range []struct {
		frozen  []string
		factors factors
		want    string
	}{
		{[]string{"fc9"}, nil, `no tensor of mlp 4-5-3 sigmoid begins with "fc9": its layers are fc1, fc2`},
		{[]string{"*"}, nil, "every tensor"},
		{[]string{"fc1", "!fc2"}, nil, `"!fc2" excepts nothing`},
		{[]string{"!fc2", "fc1"}, nil, `"!fc2" excepts nothing`},
		{nil, factors{{"fc1", 2}, {"fc1", 3}}, `the factor 2 of "fc1" changes nothing`},
		{nil, factors{{"fc1.weight", 2}, {"fc1", 3}}, `the factor 2 of "fc1.weight" changes nothing`},
		{[]string{"fc1"}, factors{{"fc1", 2}}, `the factor 2 of "fc1" changes nothing`},
	} {
		if _, err := net.WithFactors(c.frozen, c.factors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: error %v, want it to say %q", c.frozen, c.factors, err, c.want)
		}
	}
	for _, frozen := range [][]string{{"fc1", "!fc1.bias"}, {"*", "!fc1.bias"}} {
		if _, err := net.WithFactors(frozen, factors{{"fc1", 2}, {"fc1.weight", 3}}); err == nil ||
			!strings.Contains(err.Error(), `the factor 3 of "fc1.weight"`) {
			t.Errorf("%v: error %v, want one of the factor of the frozen tensor", frozen, err)
		}
		if _, err := net.WithFactors(frozen, factors{{"fc1", 2}}); err != nil {
			t.Errorf("%v: %v", frozen, err)
		}
	}
}
