package devicetest

// ConvShape is a convolution of a network, with square strides and paddings: N images of H×W pixels
// and C channels, K filters of R×S pixels. Count says how often the network has it.
type ConvShape struct{ N, H, W, C, K, R, S, Stride, Pad, Count int }

// Dims returns the dimensions of the kernels device.Conv, ConvGradX and ConvGradW.
func (s ConvShape) Dims() []int { return []int{s.N, s.H, s.W, s.C, s.K, s.R, s.S, s.Stride, s.Pad} }

// Out returns the height and the width of the output.
func (s ConvShape) Out() (p, q int) {
	return (s.H+2*s.Pad-s.R)/s.Stride + 1, (s.W+2*s.Pad-s.S)/s.Stride + 1
}

// FLOPs returns the work of one such convolution in one of its three directions: two operations per
// product, including products with padding, as is usual.
func (s ConvShape) FLOPs() float64 {
	p, q := s.Out()
	return 2 * float64(s.N) * float64(p*q) * float64(s.K) * float64(s.R*s.S*s.C)
}

// ResNet50 lists the 53 convolutions of ResNet-50 for 224×224 pixels and batch size n, each
// distinct shape once. Blocks that halve the image do so in their 3×3 convolution (variant 1.5).
// The first convolution needs no data gradient.
func ResNet50(n int) []ConvShape {
	return []ConvShape{
		{n, 224, 224, 3, 64, 7, 7, 2, 3, 1},

		{n, 56, 56, 64, 64, 1, 1, 1, 0, 1},
		{n, 56, 56, 64, 64, 3, 3, 1, 1, 3},
		{n, 56, 56, 64, 256, 1, 1, 1, 0, 4}, // including the shortcut of the first block
		{n, 56, 56, 256, 64, 1, 1, 1, 0, 2},

		{n, 56, 56, 256, 128, 1, 1, 1, 0, 1},
		{n, 56, 56, 128, 128, 3, 3, 2, 1, 1},
		{n, 56, 56, 256, 512, 1, 1, 2, 0, 1},
		{n, 28, 28, 128, 512, 1, 1, 1, 0, 4},
		{n, 28, 28, 512, 128, 1, 1, 1, 0, 3},
		{n, 28, 28, 128, 128, 3, 3, 1, 1, 3},

		{n, 28, 28, 512, 256, 1, 1, 1, 0, 1},
		{n, 28, 28, 256, 256, 3, 3, 2, 1, 1},
		{n, 28, 28, 512, 1024, 1, 1, 2, 0, 1},
		{n, 14, 14, 256, 1024, 1, 1, 1, 0, 6},
		{n, 14, 14, 1024, 256, 1, 1, 1, 0, 5},
		{n, 14, 14, 256, 256, 3, 3, 1, 1, 5},

		{n, 14, 14, 1024, 512, 1, 1, 1, 0, 1},
		{n, 14, 14, 512, 512, 3, 3, 2, 1, 1},
		{n, 14, 14, 1024, 2048, 1, 1, 2, 0, 1},
		{n, 7, 7, 512, 2048, 1, 1, 1, 0, 3},
		{n, 7, 7, 2048, 512, 1, 1, 1, 0, 2},
		{n, 7, 7, 512, 512, 3, 3, 1, 1, 2},
	}
}
