package model

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// Factor is the step size of the tensors that Pattern matches, relative to that of the others. A
// pattern is the beginning of a name up to a dot, as "layer1" or "layer4.1.bn2"; in each of its
// parts * stands for any characters.
type Factor struct {
	Pattern string
	Factor  float64 // above 0
}

// WithFactors returns the network with the gradient of each tensor multiplied by the factor of the
// last pattern that matches it, and that of the frozen tensors zero; it is then not computed, and
// neither is what only it needs. A pattern of frozen that begins with ! excepts tensors that
// earlier ones matched.
//
// Every algorithm that moves along multiples of gradients and differences of models leaves frozen
// coordinates as they are, if all agents start from the same model. Batch norm still updates the
// running statistics of a frozen layer.
func (n *Network) WithFactors(frozen []string, factors []Factor) (*Network, error) {
	if len(frozen) == 0 && len(factors) == 0 {
		return n, nil
	}
	with := *n
	with.factors = slices.Repeat([]float64{1}, len(n.layout.tensors))
	for _, f := range factors {
		if err := with.set(f.Pattern, f.Factor); err != nil {
			return nil, err
		}
	}
	steps := slices.Clone(with.factors)
	for _, p := range frozen {
		rest, except := strings.CutPrefix(p, "!")
		if !except {
			if err := with.set(p, 0); err != nil {
				return nil, err
			}
			continue
		}
		for i := range with.factors {
			if matches(rest, n.layout.tensors[i].Name) {
				with.factors[i] = steps[i]
			}
		}
	}
	if !slices.ContainsFunc(with.factors, func(f float64) bool { return f != 0 }) {
		return nil, fmt.Errorf("model: every tensor of %s is frozen, want one to train", n.name)
	}
	return &with, nil
}

// set gives the tensors that a pattern matches a factor.
func (n *Network) set(pattern string, factor float64) error {
	found := false
	var layers []string
	for i, t := range n.layout.tensors {
		layer, _, _ := strings.Cut(t.Name, ".")
		layers = append(layers, layer)
		if matches(pattern, t.Name) {
			n.factors[i], found = factor, true
		}
	}
	if !found {
		return fmt.Errorf("model: no tensor of %s begins with %q: its layers are %s", n.name, pattern,
			strings.Join(slices.Compact(layers), ", "))
	}
	return nil
}

// matches reports whether a pattern matches the name of a tensor.
func matches(pattern, name string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(name, ".")
	if len(want) > len(got) {
		return false
	}
	for i, p := range want {
		if ok, err := path.Match(p, got[i]); !ok || err != nil {
			return false
		}
	}
	return true
}

// factor returns the factor of a parameter by its index.
func (b *builder) factor(i int) float64 {
	if b.factors == nil {
		return 1
	}
	return b.factors[i]
}

// scaled returns the gradients of all parameters, of which grads has those that are not frozen. A
// frozen one is zero times the parameter.
func (b *builder) scaled(grads gorgonia.Nodes) (all gorgonia.Nodes) {
	for i, p := range b.params {
		b.layer = b.layout.tensors[i].Name
		switch f := b.factor(i); f {
		case 0:
			all = append(all, b.apply(device.Scale, 0, p))
			continue
		case 1:
			all = append(all, grads[0])
		default:
			all = append(all, b.apply(device.Scale, f, grads[0]))
		}
		grads = grads[1:]
	}
	return all
}
