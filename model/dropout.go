package model

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"fspda/device"
)

// dropout replaces a share p of the numbers of x by 0 in training, and divides the others by 1−p.
// The mask is a function of the key of the batch and the number of the dropout in its network.
// Other graphs have none.
func (b *builder) dropout(name string, p float64, x *gorgonia.Node) *gorgonia.Node {
	if p == 0 || b.kind != Train && b.kind != Step {
		return x
	}
	key := b.batchKey()
	b.layer = name
	b.dropouts++
	return b.applyAs(device.Dropout, geometry{layer: b.dropouts}, p, x, key)
}

// batchKey returns the leaf of the batch's key.
func (b *builder) batchKey() *gorgonia.Node {
	for n, space := range b.data {
		if space == device.Key {
			return n
		}
	}
	return b.input(device.Key, 4)
}

// dropoutDerivative applies the mask of the forward pass to the gradient.
func dropoutDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.b.applyAs(device.Dropout, d.op.geometry, d.op.attr, d.grad, d.in[1])
}

// checkDropout refuses shares that leave nothing.
func checkDropout(p float64) error {
	if !(p >= 0 && p < 1) {
		return fmt.Errorf("option Dropout is %v, want at least 0 and below 1", p)
	}
	return nil
}
