package onnx

import (
	"fspda/device"
	"fspda/model"
)

// operators maps each kernel of a prediction to operators of opset 17.
var operators = map[device.Kernel]func(g *graph, o model.Operation){
	device.Linear: func(g *graph, o model.Operation) {
		if g.tokens { // Gemm takes matrices only
			g.product(o)
			return
		}
		g.add(o.Layer, "Gemm", g.inputs(o), attribute{"transB", 1})
	},
	device.Sigmoid: func(g *graph, o model.Operation) { g.add(o.Layer, "Sigmoid", g.inputs(o)) },
	device.ReLU:    func(g *graph, o model.Operation) { g.add(o.Layer, "Relu", g.inputs(o)) },
	device.Add:     func(g *graph, o model.Operation) { g.add(o.Layer, "Add", g.inputs(o)) },
	device.Conv: func(g *graph, o model.Operation) { // Dims n h w c k r s stride pad
		d := o.Dims
		g.add(o.Layer, "Conv", g.inputs(o), attribute{"kernel_shape", []int64{int64(d[5]), int64(d[6])}},
			attribute{"strides", square(d[7])}, attribute{"pads", pads(d[8])})
	},
	device.AddBias: func(g *graph, o model.Operation) { g.bias(o) },
	device.AddBiasReLU: func(g *graph, o model.Operation) {
		g.bias(o)
		g.add(o.Layer, "Relu", []string{g.output})
	},
	device.MaxPool: func(g *graph, o model.Operation) { // Dims n h w c r stride pad
		d := o.Dims
		g.add(o.Layer, "MaxPool", g.inputs(o), attribute{"kernel_shape", square(d[4])},
			attribute{"strides", square(d[5])}, attribute{"pads", pads(d[6])})
	},
	// ONNX keeps the two axes of the image, with length 1
	device.AvgPool: func(g *graph, o model.Operation) {
		g.add(o.Layer, "GlobalAveragePool", g.inputs(o))
		g.add(o.Layer, "Flatten", []string{g.output}, attribute{"axis", 1})
	},
	device.Normalize: func(g *graph, o model.Operation) { g.normalize(o) },
	device.NormalizeReLU: func(g *graph, o model.Operation) {
		g.normalize(o)
		g.add(o.Layer, "Relu", []string{g.output})
	},
	device.NormalizeAddReLU: func(g *graph, o model.Operation) {
		other := g.inputs(o)[5]
		g.normalize(o)
		g.add(o.Layer, "Add", []string{g.output, other})
		g.add(o.Layer, "Relu", []string{g.output})
	},
}

// bias gives the convolution that was just added its bias: the third input of Conv.
func (g *graph) bias(o model.Operation) {
	conv := &g.nodes[len(g.nodes)-1]
	conv.in = append(conv.in, g.inputs(o)[1])
}

// normalize adds the batch norm of a kernel whose first five inputs are x, scale, shift, mean and
// variance.
func (g *graph) normalize(o model.Operation) {
	g.add(o.Layer, "BatchNormalization", g.inputs(o)[:5], attribute{"epsilon", float32(o.Attr)})
}
