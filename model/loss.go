package model

import (
	"fmt"
	"math"
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
)

// decays reports whether weight decay applies to a tensor of that shape.
func (d Decay) decays(shape []int) bool { return d != DecayWeights || len(shape) > 1 }

func (o LossOptions) validate() error {
	if !(o.WeightDecay >= 0) || math.IsInf(o.WeightDecay, 1) {
		return fmt.Errorf("option WeightDecay is %v, want a finite number that is not negative", o.WeightDecay)
	}
	if o.Decay != "" && o.Decay != DecayAll && o.Decay != DecayWeights {
		return fmt.Errorf("option Decay is %q, want %s or %s", o.Decay, DecayAll, DecayWeights)
	}
	if !(o.LabelSmoothing >= 0 && o.LabelSmoothing < 1) {
		return fmt.Errorf("option LabelSmoothing is %v, want at least 0 and below 1", o.LabelSmoothing)
	}
	return nil
}
