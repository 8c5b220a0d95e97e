package cublas

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"fspda/internal/testing/headertest"
)

func driverInstalled() bool {
	_, err := os.Stat("/proc/driver/nvidia/version")
	return err == nil
}

// withoutOverloads returns the table without the functions that C++ overloads.
func withoutOverloads(table any) any {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeOf(table)) {
		if !strings.HasSuffix(f.Tag.Get("sym"), "Ex") {
			fields = append(fields, f)
		}
	}
	return reflect.Zero(reflect.StructOf(fields)).Interface()
}

// The Go declarations of all functions and values match NVIDIA's headers.
func TestHeader(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			folders := headertest.Headers(t, major, "crt/host_defines.h", "driver_types.h", "nv/target", "cublasLt.h")
			headertest.Check(t, folders, "cublasLt.h", withoutOverloads(API{}), LtAPI{}, attributes{})
			headertest.Values(t, folders, "cublasLt.h", map[string]int{
				// Calls of the functions that C++ overloads.
				"sizeof(cublasGemmEx(cublasHandle_t(), CUBLAS_OP_N, CUBLAS_OP_N, 1, 2, 3, (void *)0, (void *)0, " +
					"CUDA_R_32F, " +
					"4, (void *)0, CUDA_R_32F, 5, (void *)0, (void *)0, CUDA_R_32F, 6, " +
					"CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT))": 4,
				"CUDA_R_32F": int(Float32), "CUDA_R_16F": int(Float16), "CUDA_R_16BF": int(BFloat16),
				"CUBLAS_COMPUTE_32F": int(ComputeFloat32), "CUBLAS_COMPUTE_32F_FAST_TF32": int(ComputeTF32),
				"CUBLAS_GEMM_DEFAULT": algoDefault, "CUBLAS_OP_N": int(op(false)), "CUBLAS_OP_T": int(
					op(true)), "CUBLAS_STATUS_NOT_SUPPORTED": notSupported,
				"CUBLASLT_MATMUL_DESC_TRANSA": descTransA, "CUBLASLT_MATMUL_DESC_TRANSB": descTransB,
				"CUBLASLT_MATMUL_DESC_EPILOGUE":     descEpilogue,
				"CUBLASLT_MATMUL_DESC_BIAS_POINTER": descBias, "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER": descAux,
				"CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD":             descAuxRow,
				"CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES":         prefWorkspace,
				"CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK":       prefReduction,
				"CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE":           reduceInCompute,
				"CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION": noReducedReduction,
				"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES":       prefAlignment,
				"CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES":       prefAlignment + 3,
				"CUBLASLT_EPILOGUE_BIAS":                           int(EpilogueBias),
				"CUBLASLT_EPILOGUE_RELU_BIAS": int(
					EpilogueReLUBias), "CUBLASLT_EPILOGUE_RELU_AUX_BIAS": int(EpilogueReLUMaskBias),
				"CUBLASLT_EPILOGUE_DRELU": int(EpilogueReLUGrad), "CUBLASLT_EPILOGUE_GELU_AUX": int(EpilogueGELU),
				"CUBLASLT_EPILOGUE_GELU_AUX_BIAS": int(EpilogueGELUBias),
				"CUBLASLT_EPILOGUE_DGELU":         int(EpilogueGELUGrad),
				"CUBLASLT_EPILOGUE_BGRADB":        int(EpilogueBiasGrad),
			})
		})
	}
}
