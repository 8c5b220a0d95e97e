package model

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"fspda/device"
)

// Batch normalization works on rows of channels, the last axis of its input. Input 0 and the other
// whole inputs have that shape; all others have one number per channel.

// channelShapes returns the shape rule of a kernel whose inputs are, by letter, whole tensors (m)
// or channels (c); out describes the outputs likewise.
func channelShapes(in, out string) func([]tensor.Shape) ([]tensor.Shape, error) {
	return func(got []tensor.Shape) ([]tensor.Shape, error) {
		x := got[0]
		if x.Dims() < 2 {
			return nil, fmt.Errorf("x has shape %v: want channels as the last axis of at least two", x)
		}
		channels := tensor.Shape{x[x.Dims()-1]}
		shape := map[rune]tensor.Shape{'m': x, 'c': channels}
		for i, kind := range in {
			if !slices.Equal(got[i], shape[kind]) {
				return nil, fmt.Errorf("input %d has shape %v with x of %v: want %v", i, got[i], x, shape[kind])
			}
		}
		var shapes []tensor.Shape
		for _, kind := range out {
			shapes = append(shapes, shape[kind].Clone())
		}
		return shapes, nil
	}
}

// rowsChannels returns the Dims of a kernel over rows of channels.
func rowsChannels(in []tensor.Shape) []int {
	c := in[0][in[0].Dims()-1]
	return []int{size(in[0]) / c, c}
}

// batchNormDerivative uses the statistics of the forward pass, its outputs 1 and 2.
func batchNormDerivative(d derivation, grads gorgonia.Nodes) {
	x, gamma, mean, variance := d.in[0], d.in[1], d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.BatchNormGrad, d.op.attr, x, d.grad, gamma, mean, variance)
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func batchNormReLUDerivative(d derivation, grads gorgonia.Nodes) {
	x, gamma, mean, variance := d.in[0], d.in[1], d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.BatchNormReLUGrad, d.op.attr, x, d.out, d.grad, gamma, mean, variance)
	grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2)
}

func batchNormAddReLUDerivative(d derivation, grads gorgonia.Nodes) {
	x, gamma, mean, variance := d.in[0], d.in[1], d.b.project(d.out, 1), d.b.project(d.out, 2)
	grads[0] = d.b.apply(device.BatchNormAddReLUGrad, d.op.attr, x, d.out, d.grad, gamma, mean, variance)
	grads[3], grads[1], grads[2] = d.b.project(grads[0], 1), d.b.project(grads[0], 2), d.b.project(grads[0], 3)
}
