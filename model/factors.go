package model

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// Factor is the relative step size of the tensors that Pattern matches; others have 1. A
// pattern is the beginning of a name up to a dot, as "layer1" or "layer4.1.bn2"; in each of its
// parts * stands for any characters.
type Factor struct {
	Pattern string
	Factor  float64 // above 0
}

// WithFactors returns the network with the gradient of each tensor multiplied by the factor of the
// last pattern that matches it, and with no gradient of frozen tensors. It is not computed, nor
// is anything that only it needs. A pattern of frozen that begins with ! excepts tensors that
// earlier ones matched. It refuses patterns that change nothing: without a tensor, exceptions
// from nothing, and factors whose tensors are frozen or match later ones.
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
	last := make([]int, len(n.layout.tensors)) // the number of the factor, from 1
	for k, f := range factors {
		err := n.matching(f.Pattern, func(i int) { with.factors[i], last[i] = f.Factor, k+1 })
		if err != nil {
			return nil, err
		}
	}
	steps, numbers := slices.Clone(with.factors), slices.Clone(last)
	for _, p := range frozen {
		rest, except := strings.CutPrefix(p, "!")
		if !except {
			if err := n.matching(p, func(i int) { with.factors[i], last[i] = 0, 0 }); err != nil {
				return nil, err
			}
			continue
		}
		found := false
		for i, f := range with.factors {
			if f == 0 && matches(rest, n.layout.tensors[i].Name) {
				with.factors[i], last[i], found = steps[i], numbers[i], true
			}
		}
		if !found {
			return nil, fmt.Errorf("model: %q excepts nothing: no tensor of %s that begins with %q is frozen by the "+
				"patterns before it", p, n.name, rest)
		}
	}
	if !slices.ContainsFunc(with.factors, func(f float64) bool { return f != 0 }) {
		return nil, fmt.Errorf("model: every tensor of %s is frozen, want one to train", n.name)
	}
	for k, f := range factors {
		if !slices.Contains(last, k+1) {
			return nil, fmt.Errorf("model: the factor %g of %q changes nothing: its tensors are frozen, or match "+
				"later factors", f.Factor, f.Pattern)
		}
	}
	return &with, nil
}

// matching calls set with the index of each tensor that a pattern matches.
func (n *Network) matching(pattern string, set func(i int)) error {
	found := false
	var layers []string
	for i, t := range n.layout.tensors {
		layer, _, _ := strings.Cut(t.Name, ".")
		layers = append(layers, layer)
		if matches(pattern, t.Name) {
			set(i)
			found = true
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

// Factors returns the factors of the gradients by tensor, 0 for a frozen one; nil: all are 1.
func (n *Network) Factors() []float64 { return slices.Clone(n.factors) }
