package model

import (
	"slices"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     Options
		is    string
		dim   int
		image bool
	}{
		{"mlp", Options{Shape: []int{28, 28}, Classes: 10, Hidden: []int{100}}, "mlp 784-100-10 sigmoid", 79510, false},
		{"resnet20", Options{Shape: []int{32, 32, 3}, Classes: 10}, "resnet20 32×32×3 to 10", 272474, true},
		{"resnet20", Options{Shape: []int{28, 28}, Classes: 10}, "resnet20 28×28×1 to 10", 272474 - 2*9*16, true},
		{"resnet50", Options{Shape: []int{224, 224, 3}, Classes: 1000}, "resnet50 224×224×3 to 1000", 25557032, true},
	} {
		net, err := Open(c.name, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if net.Name() != c.is || net.Dim() != c.dim || (net.image != nil) != c.image {
			t.Errorf("%s is %q of %d parameters, want %q of %d", c.name, net.Name(), net.Dim(), c.is, c.dim)
		}
	}
	for _, name := range Names() {
		if slices.Contains(TransformerNames(), name) || name == ExternalName {
			continue
		}
		if _, err := Open(name, Options{Shape: []int{8, 8, 3}, Classes: 2}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	images := []int{8, 8, 3}
	for want, c := range map[string]struct {
		name string
		o    Options
	}{
		`no network "resnet51", want one of mlp, resnet18`: {"resnet51", Options{Shape: images, Classes: 2}},
		`no network "resnet+50"`:                           {"resnet+50", Options{Shape: images, Classes: 2}},
		"it has no parameters":                             {"external", Options{Shape: images, Classes: 2}},
		"tensor w has the shape [3 0]": {"external", Options{Shape: images, Classes: 2,
			External: External{Parameters: []ExternalTensor{{Name: "w", Shape: []int{3, 0}}}}}},
		`tensor 1 has the name "w"`: {"external", Options{Shape: images, Classes: 2,
			External: External{Parameters: []ExternalTensor{{Name: "w", Shape: []int{3}}, {Name: "w"}}}}},
		"label smoothing is 0.1": {"external", Options{Shape: images, Classes: 2,
			Loss:     LossOptions{LabelSmoothing: 0.1},
			External: External{Parameters: []ExternalTensor{{Name: "w", Shape: []int{3}}}}}},
		"option External is only for external": {"mlp", Options{Shape: images, Classes: 2,
			External: External{Parameters: []ExternalTensor{{Name: "w", Shape: []int{3}}}}}},
		`no network ""`: {"", Options{Shape: images, Classes: 2}},
		"option Hidden is [100]": {"resnet20", Options{Shape: images, Classes: 2,
			Hidden: []int{100}}},
		`option Activation is "sigmoid"`: {"resnet20", Options{Shape: images, Classes: 2,
			Activation: "sigmoid"}},
		"the shape [64], want height and width": {"resnet20", Options{Shape: []int{64}, Classes: 2}},
		"the shape [8 8 0]":                     {"resnet20", Options{Shape: []int{8, 8, 0}, Classes: 2}},
		"Classes is 1":                          {"resnet20", Options{Shape: images, Classes: 1}},
		"Inputs is 0":                           {"mlp", Options{Shape: []int{0}, Classes: 3}},
		"the shape [8 8 3], want windows":       {"gpt-nano", Options{Shape: images, Classes: 65}},
		"128 heads of 1 numbers, want an even number": {"llama-nano", Options{Classes: 65,
			Transformer: Transformer{Heads: 128}}},
		"width 130 does not divide into 4 heads": {"gpt-nano", Options{Classes: 65,
			Transformer: Transformer{Width: 130, Heads: 4}}},
		"windows of 65 tokens, want 1 to 64": {"gpt-nano", Options{Shape: []int{65}, Classes: 65}},
		"a vocabulary of 1 tokens":           {"gpt-nano", Options{Classes: 1}},
		"a vocabulary of 65537 tokens":       {"gpt2", Options{Classes: 65537}},
		`option GELU is "fast"`:              {"gpt-nano", Options{Classes: 65, Transformer: Transformer{GELU: "fast"}}},
		"option Layers is -1":                {"gpt-nano", Options{Classes: 65, Transformer: Transformer{Layers: -1}}},
		"option Layers is 1025": {"gpt-nano", Options{Classes: 65,
			Transformer: Transformer{Layers: 1025}}},
		"option Hidden has 1025": {"mlp", Options{Shape: []int{4}, Classes: 3,
			Hidden: slices.Repeat([]int{1}, 1025)}},
		"options GELU and NoBias " +
			"belong": {"llama-nano", Options{Classes: 65, Transformer: Transformer{NoBias: true}}},
		"options Hidden [5]": {"gpt2", Options{Classes: 65, Hidden: []int{5}}},
		"want 0 to 16777216": {"gpt2", Options{Classes: 65, Transformer: Transformer{Hidden: -4}}},
		"option Transformer is " +
			"{Layers:3": {"mlp", Options{Shape: images, Classes: 2, Transformer: Transformer{Layers: 3}}},
		`option Recompute is "all"`: {"gpt2", Options{Classes: 65, Recompute: "all"}},
	} {
		if net, err := Open(c.name, c.o); net != nil || err == nil || !strings.HasPrefix(err.Error(), "model: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("network %v, error %v, want it to say %q", net, err, want)
		}
	}
}
