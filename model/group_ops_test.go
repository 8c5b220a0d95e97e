package model

import (
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

func init() {
	norm := func(k device.Kernel, groups int, more ...string) derivativeCase {
		return derivativeCase{k, func(b *builder) *gorgonia.Node {
			in := []*gorgonia.Node{b.param("x", 1, 2, 3, 2, 4), b.param("gamma", 1, 4), b.param("beta", 1, 4)}
			for _, name := range more {
				shape := []int{4}
				if name == "z" {
					shape = []int{2, 3, 2, 4}
				}
				in = append(in, b.param(name, 1, shape...))
			}
			return b.applyAs(k, geometry{groups: groups}, 0.1, in...)
		}}
	}
	bias := func(k device.Kernel) derivativeCase {
		return derivativeCase{k, func(b *builder) *gorgonia.Node {
			return b.apply(k, 0, b.param("x", 1, 2, 3, 2, 4), b.param("b", 1, 4))
		}}
	}
	for name, c := range map[string]derivativeCase{
		"bias":                        bias(device.AddBias),
		"bias relu":                   bias(device.AddBiasReLU),
		"group norm":                  norm(device.GroupNorm, 2),
		"group norm of one group":     norm(device.GroupNorm, 1),
		"group norm of every channel": norm(device.GroupNorm, 4),
		"group norm relu":             norm(device.GroupNormReLU, 2),
		"group norm add relu":         norm(device.GroupNormAddReLU, 2, "z"),
		"evo norm":                    norm(device.EvoNorm, 2, "v"),
		"evo norm of every channel":   norm(device.EvoNorm, 4, "v"),
	} {
		opCases[name] = c
	}
}

func TestGroupsThatDoNotFit(t *testing.T) {
	image := tensor.Shape{2, 5, 4, 6}
	for _, c := range []struct {
		groups int
		in     []tensor.Shape
		want   string
	}{
		{4, []tensor.Shape{image, {6}, {6}}, "6 channels do not divide into 4 groups"},
		{2, []tensor.Shape{image, {5}, {6}}, "do not fit"},
		{2, []tensor.Shape{{2, 6}, {6}, {6}}, "do not fit"},
	} {
		_, err := definitions()[device.GroupNorm].shapes(c.in, geometry{groups: c.groups})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d groups of %v: error %v, want %q", c.groups, c.in, err, c.want)
		}
	}
}

func init() {
	opCases["dropout"] = derivativeCase{device.Dropout, func(b *builder) *gorgonia.Node {
		return b.applyAs(device.Dropout, geometry{layer: 2}, 0.4, b.param("x", 1, 3, 5), b.batchKey())
	}}
}
