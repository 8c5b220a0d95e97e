package model

import (
	"fmt"

	"gorgonia.org/gorgonia"
)

// innerConv is a convolution on the main path of a residual block.
type innerConv struct{ outputs, side, stride int }

// residual adds a block: convolutions, each with batch norm and all but the last with a ReLU; the
// result is added to the input before the last ReLU. If the shapes differ, the shortcut is a 1×1
// convolution with that stride and batch norm.
//
// Its tensors are name.conv1.weight, name.bn1.weight, name.bn1.bias and so on, then
// name.downsample.0.weight and name.downsample.1.weight and .bias. All are created before the first
// is used, because that defines their order.
func (b *builder) residual(name string, x *gorgonia.Node, stride int, inner []innerConv) *gorgonia.Node {
	convs, norms := make([]convLayer, len(inner)), make([]normLayer, len(inner))
	inputs := x.Shape()[3]
	channels := inputs
	for i, c := range inner {
		convs[i] = b.newConv(fmt.Sprintf("%s.conv%d", name, i+1), channels, c.outputs, c.side, c.stride)
		norms[i] = b.newNorm(fmt.Sprintf("%s.bn%d", name, i+1), c.outputs)
		channels = c.outputs
	}
	short := x
	if stride != 1 || channels != inputs {
		conv := b.newConv(name+".downsample.0", inputs, channels, 1, stride)
		norm := b.newNorm(name+".downsample.1", channels)
		short = b.normalize(norm, thenNothing, b.conv(conv, x))
	}
	last := len(inner) - 1
	for i := range last {
		x = b.normalize(norms[i], thenReLU, b.conv(convs[i], x))
	}
	return b.normalize(norms[last], thenAddReLU, b.conv(convs[last], x), short)
}
