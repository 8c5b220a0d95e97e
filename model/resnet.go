package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gorgonia.org/gorgonia"
)

// ResNetOptions describes a residual network.
type ResNetOptions struct {
	// Depth selects the network: 18, 34, 50, 101 and 152 for ImageNet, 20, 32, 44 and 56 for CIFAR.
	Depth                   int
	Height, Width, Channels int // size of an image; Channels 0 means 3
	Classes                 int // number of classes, at least 2
	BaseWidth               int // channels of the first stage; 0 means 64, or 16 for CIFAR
	// empty for batch norm, "gn" for group norm of two groups, or "evonorm" for EvoNorm-S0 of at most
	// 32 groups where a ReLU follows, and group norm elsewhere
	Norm           string
	WeightDecay    float64 // see LossOptions, like the next two
	Decay          Decay
	LabelSmoothing float64
	// empty is RecomputeNone; results are bit-identical with all values
	Recompute Recompute
}

func (o ResNetOptions) loss() LossOptions {
	return LossOptions{o.WeightDecay, o.Decay, o.LabelSmoothing}
}

// resNet describes the network of a depth.
type resNet struct {
	blocks     []int // blocks by stage
	bottleneck bool
	cifar      bool // stem of one 3×3 convolution, without pooling
}

// resNets are the networks of He et al., "Deep residual learning for image recognition", table 1
// and section 4.2, by depth.
var resNets = map[int]resNet{
	18:  {blocks: []int{2, 2, 2, 2}},
	34:  {blocks: []int{3, 4, 6, 3}},
	50:  {blocks: []int{3, 4, 6, 3}, bottleneck: true},
	101: {blocks: []int{3, 4, 23, 3}, bottleneck: true},
	152: {blocks: []int{3, 8, 36, 3}, bottleneck: true},
	20:  {blocks: []int{3, 3, 3}, cifar: true},
	32:  {blocks: []int{5, 5, 5}, cifar: true},
	44:  {blocks: []int{7, 7, 7}, cifar: true},
	56:  {blocks: []int{9, 9, 9}, cifar: true},
}

func resNetDepths() []int { return slices.Sorted(maps.Keys(resNets)) }

// maxSide is the largest height and width of an image. Products of it do not overflow.
const maxSide = 1 << 14

// ResNet returns a residual network over NHWC images.
//
// The ImageNet networks have a stem of a 7×7 convolution with stride 2 and a 3×3 max-pooling with
// stride 2, then four stages. Downsampling is in the first 3×3 convolution of a stage (version
// 1.5). The CIFAR networks have a stem of a 3×3 convolution and three stages. Shortcuts that change
// the shape are 1×1 convolutions with batch norm (option B of the paper; its CIFAR networks use
// option A, without parameters). The mean over all pixels and a dense layer follow.
//
// With Norm the normalizations are others, which have no running statistics and normalize each
// image by itself: group norm (Wu and He, 2018), or EvoNorm-S0 (Liu et al., 2020) in place of batch
// norm and ReLU. EvoNorm-S0 has as many groups as the program of quasi-global momentum (Lin et al.,
// 2021), 32 or one for each channel. Before a residual sum, where that program keeps batch norm,
// there is group norm.
//
// Tensors have the names of torchvision, and its shapes up to the order of a filter's axes:
// conv1.weight, bn1.weight, bn1.bias, layer1.0.conv1.weight and so on to fc.bias; the CIFAR
// networks follow the same rule. ResNet-50 for 1000 classes has 25,557,032 parameters in 161
// tensors.
func ResNet(o ResNetOptions) (*Network, error) {
	plan, ok := resNets[o.Depth]
	if !ok {
		return nil, fmt.Errorf("model: resnet: option Depth is %d, want one of %v", o.Depth, resNetDepths())
	}
	o.Channels, o.BaseWidth = cmp.Or(o.Channels, 3), cmp.Or(o.BaseWidth, plan.baseWidth())
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("model: resnet%d: %w", o.Depth, err)
	}
	return newNetwork(Network{name: o.name(plan), inputs: o.Height * o.Width * o.Channels,
		image:   []int{o.Height, o.Width, o.Channels},
		classes: o.Classes, loss: o.loss(), recompute: o.Recompute == RecomputeBlocks, forward: plan.forwardOf(o)})
}

func (plan resNet) baseWidth() int {
	if plan.cifar {
		return 16
	}
	return 64
}

func (o ResNetOptions) validate() error {
	for _, c := range []struct {
		name string
		got  int
	}{{"Height", o.Height}, {"Width", o.Width}, {"Channels", o.Channels}, {"BaseWidth", o.BaseWidth}} {
		if c.got < 1 || c.got > maxSide {
			return fmt.Errorf("option %s is %d, want 1 to %d", c.name, c.got, maxSide)
		}
	}
	if o.Classes < 2 || o.Classes > maxWidth {
		return fmt.Errorf("option Classes is %d, want 2 to %d", o.Classes, maxWidth)
	}
	if _, ok := normalizers[o.Norm]; !ok {
		return fmt.Errorf("option Norm is %q, want empty for batch norm, gn or evonorm", o.Norm)
	}
	if o.Recompute != "" && o.Recompute != RecomputeNone && o.Recompute != RecomputeBlocks {
		return fmt.Errorf("option Recompute is %q, want %s or %s", o.Recompute, RecomputeNone, RecomputeBlocks)
	}
	return o.loss().validate()
}

// name is "resnet50 224×224×3 to 1000", plus the width of the first stage if it is not the default.
func (o ResNetOptions) name(plan resNet) string {
	norm := ""
	if o.Norm != "" {
		norm = "-" + o.Norm
	}
	s := fmt.Sprintf("resnet%d%s %d×%d×%d to %d", o.Depth, norm, o.Height, o.Width, o.Channels, o.Classes)
	if o.BaseWidth != plan.baseWidth() {
		s += fmt.Sprintf(", width %d", o.BaseWidth)
	}
	return s
}

// forwardOf returns the function that builds the network: images to logits.
func (plan resNet) forwardOf(o ResNetOptions) func(b *builder, x *gorgonia.Node) *gorgonia.Node {
	return func(b *builder, x *gorgonia.Node) *gorgonia.Node {
		norm := normalizers[o.Norm]
		x = plan.stem(b, x, o.BaseWidth, norm)
		for stage, blocks := range plan.blocks {
			for i := range blocks {
				stride := 1
				if stage > 0 && i == 0 {
					stride = 2
				}
				x = plan.block(b, fmt.Sprintf("layer%d.%d", stage+1, i), x, o.BaseWidth<<stage, stride,
					norm)
			}
		}
		return b.head("fc", b.avgPool("avgpool", x), o.Classes)
	}
}

// stem adds the layers before the first stage.
func (plan resNet) stem(b *builder, x *gorgonia.Node, width int, norm normalizer) (y *gorgonia.Node) {
	b.inBlock(func() {
		side, stride := 7, 2
		if plan.cifar {
			side, stride = 3, 1
		}
		conv := b.newConv("conv1", x.Shape()[3], width, side, stride)
		y = norm(b, "bn1", width, thenReLU)(b.conv(conv, x))
		if !plan.cifar {
			y = b.maxPool("maxpool", y, 3, 2)
		}
	})
	return y
}

// block adds a residual block whose inner convolutions have width outputs.
func (plan resNet) block(b *builder, name string, x *gorgonia.Node, width, stride int,
	norm normalizer) (y *gorgonia.Node) {
	inner := []innerConv{{width, 3, stride}, {width, 3, 1}}
	if plan.bottleneck {
		inner = []innerConv{{width, 1, 1}, {width, 3, stride}, {4 * width, 1, 1}}
	}
	b.inBlock(func() { y = b.residual(name, x, stride, inner, norm) })
	return y
}
