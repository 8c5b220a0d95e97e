package cudnn

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"fspda/internal/testing/headertest"
)

// documented maps the names in NVIDIA's header to our values.
var documented = map[string]int64{
	"CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR":                           int64(ConvolutionNode),
	"CUDNN_BACKEND_ENGINE_DESCRIPTOR":                                int64(EngineNode),
	"CUDNN_BACKEND_ENGINECFG_DESCRIPTOR":                             int64(EngineConfigNode),
	"CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR":                            int64(HeuristicNode),
	"CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR":                        int64(PlanNode),
	"CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR":                           int64(KnobNode),
	"CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR":         int64(ForwardNode),
	"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR": int64(GradWNode),
	"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR":   int64(GradXNode),
	"CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR":                        int64(GraphNode),
	"CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR":                          int64(PackNode),
	"CUDNN_BACKEND_TENSOR_DESCRIPTOR":                                int64(TensorNode),
	"CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR":                            int64(DeviceNode),

	"CUDNN_TYPE_HANDLE":             int64(HandleValue),
	"CUDNN_TYPE_DATA_TYPE":          int64(TypeValue),
	"CUDNN_TYPE_BOOLEAN":            int64(BoolValue),
	"CUDNN_TYPE_INT64":              int64(Int64Value),
	"CUDNN_TYPE_FLOAT":              int64(FloatValue),
	"CUDNN_TYPE_VOID_PTR":           int64(AddressValue),
	"CUDNN_TYPE_CONVOLUTION_MODE":   int64(ModeValue),
	"CUDNN_TYPE_HEUR_MODE":          int64(HeuristicValue),
	"CUDNN_TYPE_KNOB_TYPE":          int64(KnobValue),
	"CUDNN_TYPE_NUMERICAL_NOTE":     int64(NumericalValue),
	"CUDNN_TYPE_BACKEND_DESCRIPTOR": int64(NodeValue),
	"CUDNN_TYPE_BEHAVIOR_NOTE":      int64(BehaviourValue),
	"CUDNN_TYPE_CHAR":               int64(CharactersValue),

	"CUDNN_ATTR_CONVOLUTION_COMP_TYPE":      int64(ConvolutionCompute),
	"CUDNN_ATTR_CONVOLUTION_CONV_MODE":      int64(ConvolutionMode),
	"CUDNN_ATTR_CONVOLUTION_DILATIONS":      int64(ConvolutionDilation),
	"CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES": int64(ConvolutionStride),
	"CUDNN_ATTR_CONVOLUTION_POST_PADDINGS":  int64(ConvolutionPadAfter),
	"CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS":   int64(ConvolutionPad),
	"CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS":   int64(ConvolutionSpatial),

	"CUDNN_ATTR_ENGINEHEUR_MODE":                int64(HeuristicMode),
	"CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH":     int64(HeuristicGraph),
	"CUDNN_ATTR_ENGINEHEUR_RESULTS":             int64(HeuristicResults),
	"CUDNN_ATTR_ENGINEHEUR_DEVICEPROP":          int64(HeuristicDevice),
	"CUDNN_ATTR_ENGINECFG_ENGINE":               int64(ConfigEngine),
	"CUDNN_ATTR_ENGINECFG_KNOB_CHOICES":         int64(ConfigKnobs),
	"CUDNN_ATTR_EXECUTION_PLAN_HANDLE":          int64(PlanHandle),
	"CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG":   int64(PlanConfig),
	"CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE":  int64(PlanWorkspace),
	"CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP":      int64(PlanDevice),
	"CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE":          int64(KnobType),
	"CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE":         int64(KnobChoice),
	"CUDNN_ATTR_ENGINE_OPERATION_GRAPH":         int64(EngineGraph),
	"CUDNN_ATTR_ENGINE_GLOBAL_INDEX":            int64(EngineIndex),
	"CUDNN_ATTR_ENGINE_NUMERICAL_NOTE":          int64(EngineNumerical),
	"CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE":           int64(EngineBehaviour),
	"CUDNN_ATTR_ENGINE_DEVICEPROP":              int64(EngineDevice),
	"CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION": int64(DeviceJSON),

	"CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA":        int64(ForwardAlpha),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA":         int64(ForwardBeta),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC":    int64(ForwardConv),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W":            int64(ForwardW),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X":            int64(ForwardX),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y":            int64(ForwardY),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA":       int64(GradXAlpha),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA":        int64(GradXBeta),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC":   int64(GradXConv),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W":           int64(GradXW),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX":          int64(GradXX),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY":          int64(GradXY),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA":     int64(GradWAlpha),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA":      int64(GradWBeta),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC": int64(GradWConv),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW":        int64(GradWW),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X":         int64(GradWX),
	"CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY":        int64(GradWY),

	"CUDNN_ATTR_OPERATIONGRAPH_HANDLE":      int64(GraphHandle),
	"CUDNN_ATTR_OPERATIONGRAPH_OPS":         int64(GraphOperations),
	"CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT":      int64(TensorAlignment),
	"CUDNN_ATTR_TENSOR_DATA_TYPE":           int64(TensorType),
	"CUDNN_ATTR_TENSOR_DIMENSIONS":          int64(TensorDimensions),
	"CUDNN_ATTR_TENSOR_STRIDES":             int64(TensorStrides),
	"CUDNN_ATTR_TENSOR_UNIQUE_ID":           int64(TensorUID),
	"CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS":    int64(PackUIDs),
	"CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS": int64(PackAddresses),
	"CUDNN_ATTR_VARIANT_PACK_WORKSPACE":     int64(PackWorkspace),

	"CUDNN_BACKEND_POINTWISE_DESCRIPTOR":               int64(PointwiseNode),
	"CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR":     int64(PointwiseOpNode),
	"CUDNN_BACKEND_MATMUL_DESCRIPTOR":                  int64(MatmulNode),
	"CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR":        int64(MatmulOpNode),
	"CUDNN_BACKEND_REDUCTION_DESCRIPTOR":               int64(ReductionNode),
	"CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR":     int64(ReductionOpNode),
	"CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR":       int64(ReshapeOpNode),
	"CUDNN_TYPE_POINTWISE_MODE":                        int64(PointwiseValue),
	"CUDNN_TYPE_REDUCTION_OPERATOR_TYPE":               int64(ReductionValue),
	"CUDNN_ATTR_TENSOR_IS_VIRTUAL":                     int64(TensorVirtual),
	"CUDNN_ATTR_TENSOR_IS_BY_VALUE":                    int64(TensorByValue),
	"CUDNN_ATTR_POINTWISE_MODE":                        int64(PointwiseMode),
	"CUDNN_ATTR_POINTWISE_MATH_PREC":                   int64(PointwiseCompute),
	"CUDNN_ATTR_POINTWISE_AXIS":                        int64(PointwiseAxis),
	"CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR":     int64(PointwiseOpMode),
	"CUDNN_ATTR_OPERATION_POINTWISE_XDESC":             int64(PointwiseOpX),
	"CUDNN_ATTR_OPERATION_POINTWISE_BDESC":             int64(PointwiseOpB),
	"CUDNN_ATTR_OPERATION_POINTWISE_YDESC":             int64(PointwiseOpY),
	"CUDNN_ATTR_OPERATION_POINTWISE_TDESC":             int64(PointwiseOpT),
	"CUDNN_ATTR_MATMUL_COMP_TYPE":                      int64(MatmulCompute),
	"CUDNN_ATTR_OPERATION_MATMUL_ADESC":                int64(MatmulOpA),
	"CUDNN_ATTR_OPERATION_MATMUL_BDESC":                int64(MatmulOpB),
	"CUDNN_ATTR_OPERATION_MATMUL_CDESC":                int64(MatmulOpC),
	"CUDNN_ATTR_OPERATION_MATMUL_DESC":                 int64(MatmulOpOf),
	"CUDNN_ATTR_REDUCTION_OPERATOR":                    int64(ReductionMode),
	"CUDNN_ATTR_REDUCTION_COMP_TYPE":                   int64(ReductionCompute),
	"CUDNN_ATTR_OPERATION_REDUCTION_XDESC":             int64(ReductionOpX),
	"CUDNN_ATTR_OPERATION_REDUCTION_YDESC":             int64(ReductionOpY),
	"CUDNN_ATTR_OPERATION_REDUCTION_DESC":              int64(ReductionOpOf),
	"CUDNN_ATTR_OPERATION_RESHAPE_XDESC":               int64(ReshapeOpX),
	"CUDNN_ATTR_OPERATION_RESHAPE_YDESC":               int64(ReshapeOpY),
	"CUDNN_POINTWISE_ADD":                              int64(PointwiseAdd),
	"CUDNN_POINTWISE_MUL":                              int64(PointwiseMultiply),
	"CUDNN_POINTWISE_DIV":                              int64(PointwiseDivide),
	"CUDNN_POINTWISE_SUB":                              int64(PointwiseSubtract),
	"CUDNN_POINTWISE_EXP":                              int64(PointwiseExp),
	"CUDNN_POINTWISE_LOG":                              int64(PointwiseLog),
	"CUDNN_POINTWISE_IDENTITY":                         int64(PointwiseIdentity),
	"CUDNN_POINTWISE_CMP_GE":                           int64(PointwiseGreaterEqual),
	"CUDNN_POINTWISE_GEN_INDEX":                        int64(PointwiseIndex),
	"CUDNN_POINTWISE_BINARY_SELECT":                    int64(PointwiseSelect),
	"CUDNN_REDUCE_TENSOR_ADD":                          int64(ReductionSum),
	"CUDNN_REDUCE_TENSOR_MAX":                          int64(ReductionMax),
	"CUDNN_DATA_INT32":                                 int64(Int32),
	"CUDNN_DATA_BOOLEAN":                               int64(Boolean),
	"CUDNN_HEUR_MODE_INSTANT":                          int64(HeuristicInstant),
	"CUDNN_HEUR_MODE_FALLBACK":                         int64(HeuristicFallback),
	"CUDNN_HEUR_MODE_A":                                int64(HeuristicA),
	"CUDNN_NUMERICAL_NOTE_TENSOR_CORE":                 int64(NoteTensorCore),
	"CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS":         int64(NoteDownConvert),
	"CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION": int64(NoteReducedReduction),
	"CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC":            int64(NoteNondeterministic),
	"CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION":          int64(NoteCompiles),
	"CUDNN_DATA_FLOAT":                                 int64(Float32),
	"CUDNN_DATA_HALF":                                  int64(Float16),
	"CUDNN_DATA_BFLOAT16":                              int64(BFloat16),
	"CUDNN_CROSS_CORRELATION":                          crossCorrelation,
}

// Every value of the graph API equals that of NVIDIA's header.
func TestValues(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			folder := headertest.Headers(t, major, "cudnn_graph.h")[0]
			text, err := os.ReadFile(filepath.Join(folder, "cudnn_graph.h"))
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range documented {
				found := regexp.MustCompile(`\b` + name + `(?: CUDNN_DEPRECATED_ENUM)?\s*=\s*(\d+)`).FindSubmatch(text)
				if found == nil {
					if name == "CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR" ||
						regexp.MustCompile("DEVICEPROP").MatchString(name) {
						continue // exists since 9.8
					}
					t.Errorf("%s: the header has no such value", name)
					continue
				}
				if got, _ := strconv.ParseInt(string(found[1]), 10, 64); got != want {
					t.Errorf("%s is %d, want %d", name, got, want)
				}
			}
		})
	}
}
