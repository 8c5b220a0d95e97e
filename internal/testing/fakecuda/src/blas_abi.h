// The types of cuBLAS. If NVIDIA_HEADERS is defined they are NVIDIA's own.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef NVIDIA_HEADERS
#include <cublasLt.h>
#include <cublas_v2.h>
static_assert(CUBLAS_STATUS_NOT_INITIALIZED == 1 && CUBLAS_STATUS_INVALID_VALUE == 7 &&
              CUBLAS_STATUS_ARCH_MISMATCH == 8 && CUBLAS_STATUS_EXECUTION_FAILED == 13 &&
              CUBLAS_STATUS_NOT_SUPPORTED == 15);
static_assert(CUDA_R_32F == 0 && CUDA_R_16F == 2 && CUDA_R_16BF == 14 && CUBLAS_COMPUTE_32F == 68 &&
              CUBLAS_COMPUTE_32F_FAST_TF32 == 77);
#else
enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cublasComputeType_t { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 };
enum cublasGemmAlgo_t : int { CUBLAS_GEMM_DEFAULT = -1 };
enum cudaDataType_t : int {};
typedef cudaDataType_t cudaDataType;
typedef struct cublasContext *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
#define CUBLASWINAPI
#endif

#define BLAS extern "C" __attribute__((visibility("default"))) cublasStatus_t CUBLASWINAPI
