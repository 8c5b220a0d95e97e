package model

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// innerConv is a convolution on the main path of a residual block.
type innerConv struct{ outputs, side, stride int }

// residual adds a block: convolutions, each with a normalization and all but the last with a ReLU;
// the result is added to the input before the last ReLU. If the shapes differ, the shortcut is a
// 1×1 convolution with that stride and a normalization.
//
// Its tensors are name.conv1.weight, name.bn1.weight, name.bn1.bias and so on, then
// name.downsample.0.weight and name.downsample.1.weight and .bias. All are created before the first
// is used, because that defines their order.
func (b *builder) residual(name string, x *gorgonia.Node, stride int, inner []innerConv,
	norm normalizer) *gorgonia.Node {
	convs := make([]convLayer, len(inner))
	norms := make([]func(x *gorgonia.Node, z ...*gorgonia.Node) *gorgonia.Node, len(inner))
	inputs := x.Shape()[3]
	channels, last := inputs, len(inner)-1
	for i, c := range inner {
		convs[i] = b.newConv(fmt.Sprintf("%s.conv%d", name, i+1), channels, c.outputs, c.side, c.stride)
		f := thenReLU
		if i == last {
			f = thenAddReLU
		}
		norms[i] = norm(b, fmt.Sprintf("%s.bn%d", name, i+1), c.outputs, f)
		channels = c.outputs
	}
	short := x
	if stride != 1 || channels != inputs {
		conv := b.newConv(name+".downsample.0", inputs, channels, 1, stride)
		of := norm(b, name+".downsample.1", channels, thenNothing)
		short = of(b.conv(conv, x))
	}
	for i := range last {
		x = norms[i](b.conv(convs[i], x))
	}
	return norms[last](b.conv(convs[last], x), short)
}
