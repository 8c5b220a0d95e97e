// Package conv computes two-dimensional convolutions and their gradients, without im2col.
//
// Images and filters have their channels last (NHWC), so that one row of a filter covers one
// contiguous run of numbers of an image. The micro-kernels of fspda/cpu/tile read their operand
// from a padded copy of the image, run after run, while the sums stay in registers. conv.go defines
// every element of the results to the last bit.
//
// The forward pass and the data gradient are correlations of images with a filter (correlation.go);
// the weight gradient is a product over the pixels of the output (pixels.go, weightgrad.go).
// plain.go is their definition in Go. [Kernels] lists all three, with the scratch memory that they
// need.
//
// Over all convolutions of ResNet-50 at batch 8 and 224 pixels, in all three directions, this
// reached 86 % of the multiply-adds of one core (AVX-512, Zen 5) on a machine whose other core was
// busy: 3×3 filters 80 to 94 %, the first layer with its three channels 87 to 90 %, and least, 74
// %, the data gradient of 1×1 filters with a stride, which mostly writes zeros. Images blocked by
// 16 channels would save the copies, which take 1 to 6 % of the time, but every other kernel would
// lose its simple layout.
package conv
