package cudnn

import "unsafe"

// Backend is the table of the graph API's functions (cuDNN calls it the backend API). A graph of
// descriptors describes the computation, and one of the library's engines computes it.
type Backend struct {
	Create   func(of DescriptorType, out *Node) Status `sym:"cudnnBackendCreateDescriptor"`
	Destroy  func(d Node) Status                       `sym:"cudnnBackendDestroyDescriptor"`
	Finalize func(d Node) Status                       `sym:"cudnnBackendFinalize"`
	Set      func(d Node, name Attribute, of AttributeType, n int64,
		values unsafe.Pointer) Status `sym:"cudnnBackendSetAttribute"`
	Get func(d Node, name Attribute, of AttributeType, asked int64, got *int64,
		values unsafe.Pointer) Status `sym:"cudnnBackendGetAttribute"`
	Execute func(h Ptr, plan, pack Node) Status `sym:"cudnnBackendExecute"`
}

// Node is a descriptor of the graph API.
type Node uintptr

// DescriptorType is the kind of a Node.
type DescriptorType int32

// Attribute is a property of a Node.
type Attribute int32

// AttributeType is the type of an attribute's values.
type AttributeType int32

// Kinds of nodes. The values here and below are from cudnn_graph.h; a test compares them.
const (
	ConvolutionNode  DescriptorType = 1
	EngineNode       DescriptorType = 2
	EngineConfigNode DescriptorType = 3
	HeuristicNode    DescriptorType = 4
	PlanNode         DescriptorType = 5
	KnobNode         DescriptorType = 7
	ForwardNode      DescriptorType = 10
	PointwiseNode    DescriptorType = 0
	PointwiseOpNode  DescriptorType = 13
	MatmulNode       DescriptorType = 18
	MatmulOpNode     DescriptorType = 19
	ReductionNode    DescriptorType = 21
	ReductionOpNode  DescriptorType = 22
	ReshapeOpNode    DescriptorType = 31
	GradWNode        DescriptorType = 11
	GradXNode        DescriptorType = 12
	GraphNode        DescriptorType = 15
	PackNode         DescriptorType = 16
	TensorNode       DescriptorType = 17
	DeviceNode       DescriptorType = 38
)

// Types of attribute values.
const (
	HandleValue     AttributeType = 0
	TypeValue       AttributeType = 1
	BoolValue       AttributeType = 2
	Int64Value      AttributeType = 3
	FloatValue      AttributeType = 4
	AddressValue    AttributeType = 6
	ModeValue       AttributeType = 7 // convolution mode
	HeuristicValue  AttributeType = 8
	KnobValue       AttributeType = 9
	NumericalValue  AttributeType = 11
	PointwiseValue  AttributeType = 14
	NodeValue       AttributeType = 15
	ReductionValue  AttributeType = 18
	BehaviourValue  AttributeType = 19
	CharactersValue AttributeType = 24
)

// Attributes of a convolution node.
const (
	ConvolutionCompute  Attribute = 100
	ConvolutionMode     Attribute = 101
	ConvolutionDilation Attribute = 102
	ConvolutionStride   Attribute = 103
	ConvolutionPadAfter Attribute = 104
	ConvolutionPad      Attribute = 105
	ConvolutionSpatial  Attribute = 106
)

// Attributes of heuristics, engines, knobs and plans.
const (
	HeuristicMode    Attribute = 200
	HeuristicGraph   Attribute = 201
	HeuristicResults Attribute = 202
	HeuristicDevice  Attribute = 204

	ConfigEngine Attribute = 300
	ConfigKnobs  Attribute = 302

	PlanHandle    Attribute = 400
	PlanConfig    Attribute = 401
	PlanWorkspace Attribute = 402
	PlanDevice    Attribute = 407

	KnobType   Attribute = 600
	KnobChoice Attribute = 601

	EngineGraph     Attribute = 1300
	EngineIndex     Attribute = 1301
	EngineNumerical Attribute = 1303
	EngineBehaviour Attribute = 1305
	EngineDevice    Attribute = 1307
	DeviceJSON      Attribute = 2702
)

// Attributes of the three convolution operations.
const (
	ForwardAlpha Attribute = 700
	ForwardBeta  Attribute = 701
	ForwardConv  Attribute = 702
	ForwardW     Attribute = 703
	ForwardX     Attribute = 704
	ForwardY     Attribute = 705

	GradXAlpha Attribute = 706
	GradXBeta  Attribute = 707
	GradXConv  Attribute = 708
	GradXW     Attribute = 709
	GradXX     Attribute = 710
	GradXY     Attribute = 711

	GradWAlpha Attribute = 712
	GradWBeta  Attribute = 713
	GradWConv  Attribute = 714
	GradWW     Attribute = 715
	GradWX     Attribute = 716
	GradWY     Attribute = 717
)

// Attributes of graphs, tensors, and packs of addresses.
const (
	GraphHandle     Attribute = 800
	GraphOperations Attribute = 801

	TensorAlignment  Attribute = 900
	TensorType       Attribute = 901
	TensorDimensions Attribute = 902
	TensorStrides    Attribute = 903
	TensorUID        Attribute = 906
	TensorVirtual    Attribute = 907
	TensorByValue    Attribute = 908

	PackUIDs      Attribute = 1000
	PackAddresses Attribute = 1001
	PackWorkspace Attribute = 1003
)

// Attributes of operations on each number, of products, sums and reshapes.
const (
	PointwiseMode    Attribute = 0
	PointwiseCompute Attribute = 1
	PointwiseAxis    Attribute = 9

	PointwiseOpMode Attribute = 750
	PointwiseOpX    Attribute = 751
	PointwiseOpB    Attribute = 752
	PointwiseOpY    Attribute = 753
	PointwiseOpT    Attribute = 758

	MatmulCompute Attribute = 1500
	MatmulOpA     Attribute = 1520
	MatmulOpB     Attribute = 1521
	MatmulOpC     Attribute = 1522
	MatmulOpOf    Attribute = 1523

	ReductionMode    Attribute = 1600
	ReductionCompute Attribute = 1601
	ReductionOpX     Attribute = 1610
	ReductionOpY     Attribute = 1611
	ReductionOpOf    Attribute = 1612

	ReshapeOpX Attribute = 2200
	ReshapeOpY Attribute = 2201
)

// Modes of operations on each number.
const (
	PointwiseAdd          int32 = 0
	PointwiseMultiply     int32 = 1
	PointwiseDivide       int32 = 6
	PointwiseSubtract     int32 = 9
	PointwiseExp          int32 = 13
	PointwiseLog          int32 = 15
	PointwiseIdentity     int32 = 21
	PointwiseGreaterEqual int32 = 303
	PointwiseIndex        int32 = 501
	PointwiseSelect       int32 = 601
)

// Modes of reductions.
const (
	ReductionSum int32 = 0
	ReductionMax int32 = 3
)

// Heuristics. A and Instant recommend engines, best first; Fallback lists engines that support
// everything, but may be slow.
const (
	HeuristicInstant  int32 = 0
	HeuristicFallback int32 = 2
	HeuristicA        int32 = 3
)

// Numerical notes of an engine.
const (
	NoteTensorCore       int32 = 0 // float32 is rounded to TF32
	NoteDownConvert      int32 = 1 // inputs are rounded to fewer bits
	NoteReducedReduction int32 = 2 // sums are rounded to fewer bits than requested
	NoteNondeterministic int32 = 4
)

// NoteCompiles is the behaviour note of an engine that compiles its kernel when a plan is made,
// which takes long.
const NoteCompiles int32 = 0
