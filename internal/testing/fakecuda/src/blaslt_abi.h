// The types of cuBLASLt that cuBLAS lacks.
#pragma once
#include "blas_abi.h"

#ifdef NVIDIA_HEADERS
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == 3 && CUBLASLT_MATMUL_DESC_TRANSB == 4 &&
              CUBLASLT_MATMUL_DESC_EPILOGUE == 7 && CUBLASLT_MATMUL_DESC_BIAS_POINTER == 8 &&
              CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER == 11 && CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD == 12);
static_assert(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5 && CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == 6);
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == 1 && CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == 5 &&
              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == 8);
static_assert(CUBLASLT_EPILOGUE_DEFAULT == 1 && CUBLASLT_EPILOGUE_RELU == 2 && CUBLASLT_EPILOGUE_BIAS == 4 &&
              CUBLASLT_EPILOGUE_DRELU == 136 && CUBLASLT_EPILOGUE_RELU_AUX == 130 &&
              CUBLASLT_EPILOGUE_DRELU_BGRAD == 152 && CUBLASLT_EPILOGUE_BGRADA == 256 &&
              CUBLASLT_EPILOGUE_BGRADB == 512 && CUBLASLT_EPILOGUE_GELU_AUX == 160 &&
              CUBLASLT_EPILOGUE_GELU_AUX_BIAS == 164 && CUBLASLT_EPILOGUE_DGELU == 192);
#else
typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtDesc *cublasLtMatmulDesc_t;
typedef struct cublasLtLayout *cublasLtMatrixLayout_t;
typedef struct cublasLtPreference *cublasLtMatmulPreference_t;
enum cublasLtMatmulDescAttributes_t : int {};
enum cublasLtMatrixLayoutAttribute_t : int {};
enum cublasLtMatmulPreferenceAttributes_t : int {};
struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};
#endif
