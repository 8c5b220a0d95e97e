package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// LossOptions describes the loss besides the cross entropy.
type LossOptions struct {
	WeightDecay float64 // adds WeightDecay/2·Σw² over the decayed tensors
	Decay       Decay   // which tensors decay; empty is DecayAll
	// fraction of the target distributed over all classes, in [0, 1)
	LabelSmoothing float64
}

// Decay selects the tensors with weight decay.
type Decay string

// The values of Decay.
const (
	DecayAll Decay = "all" // every tensor
	// all but biases and batch norm: matrices and filters
	DecayWeights Decay = "weights"
	// all but the parameters of norms
	DecayNoNorm Decay = "no-norm"
	// by-name(conv1,layer*.bn1): those whose names match, as in [Factor]; by-name(*,!fc): all but fc
	decayByName = "by-name("
)

// patterns lists the patterns of by-name.
func (d Decay) patterns() []string {
	list, ok := strings.CutPrefix(strings.TrimSuffix(string(d), ")"), decayByName)
	if !ok {
		return nil
	}
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func (d Decay) decays(t Tensor) bool {
	switch d {
	case "", DecayAll:
		return true
	case DecayWeights:
		return len(t.Shape) > 1
	case DecayNoNorm:
		return !t.norm
	}
	in := false
	for _, p := range d.patterns() { // the last that matches counts
		if rest, except := strings.CutPrefix(p, "!"); matches(rest, t.Name) {
			in = !except
		}
	}
	return in
}

// decayed returns an error if a pattern of by-name matches no tensor.
func (n *Network) decayed() error {
	for _, p := range n.loss.Decay.patterns() {
		p = strings.TrimPrefix(p, "!")
		if !slices.ContainsFunc(n.layout.tensors, func(t Tensor) bool { return matches(p, t.Name) }) {
			return fmt.Errorf("model: option Decay: no tensor of %s begins with %q", n.name, p)
		}
	}
	return nil
}

// Undecayed lists the coordinates to which weight decay does not apply, ascending: tensors that
// Decay leaves out, and frozen ones.
func (n *Network) Undecayed() (at []uint32) {
	for i, t := range n.layout.tensors {
		if t.Decay && (n.factors == nil || n.factors[i] != 0) {
			continue
		}
		for k := range t.Size {
			at = append(at, uint32(t.Offset+k))
		}
	}
	return at
}

func (o LossOptions) validate() error {
	if !(o.WeightDecay >= 0) || math.IsInf(o.WeightDecay, 1) {
		return fmt.Errorf("option WeightDecay is %v, want a finite number that is not negative", o.WeightDecay)
	}
	if !slices.Contains([]Decay{"", DecayAll, DecayWeights, DecayNoNorm}, o.Decay) && len(o.Decay.patterns()) == 0 {
		return fmt.Errorf("option Decay is %q, want %s, %s, %s or by-name(PATTERN,...)", o.Decay, DecayAll,
			DecayWeights, DecayNoNorm)
	}
	if !(o.LabelSmoothing >= 0 && o.LabelSmoothing < 1) {
		return fmt.Errorf("option LabelSmoothing is %v, want at least 0 and below 1", o.LabelSmoothing)
	}
	return nil
}
