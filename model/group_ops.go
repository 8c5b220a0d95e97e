package model

import (
	"gorgonia.org/gorgonia"

	"fspda/device"
)

// groupDefinitions adds the kernels of convolutional networks without batch norm: biases of the
// channels, and normalizations of groups of channels; the geometry says how many there are.
func groupDefinitions(table map[device.Kernel]*definition) {
	const group, columns = "n hw c G", "* c"
	both := []bool{true, true}
	three, four := []bool{true, true, true}, []bool{true, true, true, true}
	for _, d := range []definition{
		{device.AddBias, "*c c", "*c", columns, both, addBiasDerivative},
		{device.AddBiasReLU, "*c c", "*c", columns, both, addBiasReLUDerivative},
		{device.AddBiasGrad, "*c", "c", columns, nil, nil},
		{device.AddBiasReLUGrad, "*c *c", "*c c", columns, nil, nil},
		{device.GroupNorm, "nhwc c c", "nhwc nG nG", group, three, groupNormDerivative},
		{device.GroupNormReLU, "nhwc c c", "nhwc nG nG", group, three, groupNormReLUDerivative},
		{device.GroupNormAddReLU, "nhwc c c nhwc", "nhwc nG nG", group, four, groupNormAddReLUDerivative},
		{device.GroupNormGrad, "nhwc nhwc c nG nG", "nhwc c c", group, nil, nil},
		{device.GroupNormReLUGrad, "nhwc nhwc nhwc c nG nG", "nhwc c c", group, nil, nil},
		{device.GroupNormAddReLUGrad, "nhwc nhwc nhwc c nG nG", "nhwc nhwc c c", group, nil, nil},
		{device.EvoNorm, "nhwc c c c", "nhwc nG nG", group, four, evoNormDerivative},
		{device.EvoNormGrad, "nhwc nhwc c c nG nG", "nhwc c c c", group, nil, nil},
	} {
		table[d.kernel] = &d
	}
}

func addBiasDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.grad
	if d.op.wanted[1] {
		grads[1] = d.b.apply(device.AddBiasGrad, 0, d.grad)
	}
}

func addBiasReLUDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.b.apply(device.AddBiasReLUGrad, 0, d.out, d.grad)
	grads[1] = d.b.project(grads[0], 1)
}

// ofGroups applies a gradient with the statistics of the forward pass, its outputs 1 and 2.
func (d derivation) ofGroups(k device.Kernel, in ...*gorgonia.Node) *gorgonia.Node {
	return d.b.applyAs(k, d.op.geometry, d.op.attr, append(in, d.b.project(d.out, 1), d.b.project(d.out, 2))...)
}

func groupNormDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.ofGroups(device.GroupNormGrad, d.in[0], d.grad, d.in[1])
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func groupNormReLUDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.ofGroups(device.GroupNormReLUGrad, d.in[0], d.out, d.grad, d.in[1])
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func groupNormAddReLUDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.ofGroups(device.GroupNormAddReLUGrad, d.in[0], d.out, d.grad, d.in[1])
	grads[3], grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2), d.b.project(grads[0], 3)
}

func evoNormDerivative(d derivation, grads gorgonia.Nodes) {
	grads[0] = d.ofGroups(device.EvoNormGrad, d.in[0], d.grad, d.in[1], d.in[3])
	grads[1], grads[2], grads[3] = d.b.project(grads[0], 1), d.b.project(grads[0], 2), d.b.project(grads[0], 3)
}
