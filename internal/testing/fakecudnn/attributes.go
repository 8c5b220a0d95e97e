package fakecudnn

import "fspda/cuda/cudnn"

// attribute describes an attribute that a node may have.
type attribute struct {
	of          cudnn.AttributeType
	least, most int                  // number of values
	node        cudnn.DescriptorType // kind of descriptors; 0: any
	optional    bool
}

func one(of cudnn.AttributeType) attribute  { return attribute{of: of, least: 1, most: 1} }
func two(of cudnn.AttributeType) attribute  { return attribute{of: of, least: 2, most: 2} }
func four(of cudnn.AttributeType) attribute { return attribute{of: of, least: 4, most: 4} }

func a(node cudnn.DescriptorType) attribute {
	return attribute{of: cudnn.NodeValue, least: 1, most: 1, node: node}
}

func (a attribute) asOptional() attribute { a.optional = true; return a }

// operation lists the attributes of a convolution operation.
func operation(alpha, beta, conv, w, x, y cudnn.Attribute) map[cudnn.Attribute]attribute {
	return map[cudnn.Attribute]attribute{alpha: one(cudnn.FloatValue), beta: one(cudnn.FloatValue),
		conv: a(cudnn.ConvolutionNode), w: a(cudnn.TensorNode), x: a(cudnn.TensorNode), y: a(cudnn.TensorNode)}
}

// settable lists the attributes of each node. All must be set except the optional ones.
var settable = map[cudnn.DescriptorType]map[cudnn.Attribute]attribute{
	cudnn.TensorNode: {cudnn.TensorAlignment: one(cudnn.Int64Value), cudnn.TensorType: one(cudnn.TypeValue),
		cudnn.TensorDimensions: four(cudnn.Int64Value),
		cudnn.TensorStrides:    four(cudnn.Int64Value), cudnn.TensorUID: one(cudnn.Int64Value),
		cudnn.TensorVirtual: one(cudnn.BoolValue).asOptional(),
		cudnn.TensorByValue: one(cudnn.BoolValue).asOptional()},
	cudnn.PointwiseNode: {cudnn.PointwiseMode: one(cudnn.PointwiseValue), cudnn.PointwiseCompute: one(cudnn.TypeValue),
		cudnn.PointwiseAxis: one(cudnn.Int64Value).asOptional()},
	cudnn.PointwiseOpNode: {cudnn.PointwiseOpMode: a(cudnn.PointwiseNode), cudnn.PointwiseOpX: a(cudnn.TensorNode),
		cudnn.PointwiseOpB: a(cudnn.TensorNode).asOptional(), cudnn.PointwiseOpT: a(cudnn.TensorNode).asOptional(),
		cudnn.PointwiseOpY: a(cudnn.TensorNode)},
	cudnn.MatmulNode: {cudnn.MatmulCompute: one(cudnn.TypeValue)},
	cudnn.MatmulOpNode: {cudnn.MatmulOpA: a(cudnn.TensorNode), cudnn.MatmulOpB: a(cudnn.TensorNode),
		cudnn.MatmulOpC: a(cudnn.TensorNode), cudnn.MatmulOpOf: a(cudnn.MatmulNode)},
	cudnn.ReductionNode: {cudnn.ReductionMode: one(cudnn.ReductionValue), cudnn.ReductionCompute: one(cudnn.TypeValue)},
	cudnn.ReductionOpNode: {cudnn.ReductionOpX: a(cudnn.TensorNode), cudnn.ReductionOpY: a(cudnn.TensorNode),
		cudnn.ReductionOpOf: a(cudnn.ReductionNode)},
	cudnn.ReshapeOpNode: {cudnn.ReshapeOpX: a(cudnn.TensorNode), cudnn.ReshapeOpY: a(cudnn.TensorNode)},
	cudnn.ConvolutionNode: {cudnn.ConvolutionCompute: one(cudnn.TypeValue), cudnn.ConvolutionMode: one(cudnn.ModeValue),
		cudnn.ConvolutionSpatial:  one(cudnn.Int64Value),
		cudnn.ConvolutionDilation: two(cudnn.Int64Value), cudnn.ConvolutionStride: two(
			cudnn.Int64Value), cudnn.ConvolutionPad: two(cudnn.Int64Value),
		cudnn.ConvolutionPadAfter: two(cudnn.Int64Value)},
	cudnn.ForwardNode: operation(cudnn.ForwardAlpha, cudnn.ForwardBeta, cudnn.ForwardConv, cudnn.ForwardW,
		cudnn.ForwardX, cudnn.ForwardY),
	cudnn.GradXNode: operation(cudnn.GradXAlpha, cudnn.GradXBeta, cudnn.GradXConv, cudnn.GradXW, cudnn.GradXX,
		cudnn.GradXY),
	cudnn.GradWNode: operation(cudnn.GradWAlpha, cudnn.GradWBeta, cudnn.GradWConv, cudnn.GradWW, cudnn.GradWX,
		cudnn.GradWY),
	cudnn.GraphNode: {cudnn.GraphOperations: {of: cudnn.NodeValue, least: 1, most: 64},
		cudnn.GraphHandle: one(cudnn.HandleValue)},
	cudnn.HeuristicNode: {cudnn.HeuristicGraph: a(cudnn.GraphNode), cudnn.HeuristicMode: one(cudnn.HeuristicValue),
		cudnn.HeuristicDevice: a(cudnn.DeviceNode).asOptional()},
	cudnn.EngineNode: {cudnn.EngineGraph: a(cudnn.GraphNode), cudnn.EngineIndex: one(cudnn.Int64Value),
		cudnn.EngineDevice: a(cudnn.DeviceNode).asOptional()},
	cudnn.KnobNode: {cudnn.KnobType: one(cudnn.KnobValue), cudnn.KnobChoice: one(cudnn.Int64Value)},
	cudnn.EngineConfigNode: {cudnn.ConfigEngine: a(cudnn.EngineNode), cudnn.ConfigKnobs: {of: cudnn.NodeValue, least: 1,
		most: 46, node: cudnn.KnobNode, optional: true}},
	cudnn.PlanNode: {cudnn.PlanHandle: one(cudnn.HandleValue), cudnn.PlanConfig: a(cudnn.EngineConfigNode),
		cudnn.PlanDevice: a(cudnn.DeviceNode).asOptional()},
	cudnn.PackNode: {cudnn.PackUIDs: {of: cudnn.Int64Value, least: 3, most: 32},
		cudnn.PackAddresses: {of: cudnn.AddressValue, least: 3, most: 32},
		cudnn.PackWorkspace: one(cudnn.AddressValue)},
}

// bytesOf returns the size of a value.
func bytesOf(of cudnn.AttributeType) int {
	switch of {
	case cudnn.Int64Value, cudnn.HandleValue, cudnn.AddressValue, cudnn.NodeValue:
		return 8
	case cudnn.BoolValue, cudnn.CharactersValue:
		return 1
	}
	return 4
}
