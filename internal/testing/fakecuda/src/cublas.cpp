// cuBLAS: products of matrices stored by columns. Sums are float64 and rounded once.
#include <map>
#include <set>
#include "blas_abi.h"
#include "matrix.h"

using namespace fakecuda;

namespace {

struct Handle {
  void *stream = nullptr, *workspace = nullptr;
  size_t workspace_bytes = 0;
  int math = 0;
};

std::set<Handle *> handles;

Handle *find(const char *function, cublasHandle_t h) {
  if (handles.count((Handle *)h)) return (Handle *)h;
  report_misuse("%s: %p is not a cuBLAS handle", function, (void *)h);
  return nullptr;
}

struct Product {
  long long m, n, k;
  int batch;
  float alpha, beta;
  Factor a, b, c;
  bool rounded; // round the factors to TF32
};

void multiply(const Product &p) {
  for (int z = 0; z < p.batch; z++)
    for (long long j = 0; j < p.n; j++)
      for (long long i = 0; i < p.m; i++) {
        double sum = 0;
        for (long long l = 0; l < p.k; l++) sum += element(p.a, i, l, z, p.rounded) * element(p.b, l, j, z, p.rounded);
        sum *= p.alpha;
        if (p.beta != 0) sum += p.beta * element(p.c, i, j, z, false);
        put_number((void *)p.c.at, p.c.type, z * p.c.stride + j * p.c.ld + i, sum);
      }
}

cublasStatus_t send(const char *function, cublasHandle_t handle, Product p, const void *alpha, const void *beta,
                    int compute, int algo) {
  LibraryLock held;
  if (int requested = enter(function)) return (cublasStatus_t)requested;
  Handle *h = find(function, handle);
  if (!h || !alpha || !beta || p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0 || algo != -1)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (p.a.type != p.b.type || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!p.m || !p.n || !p.batch) return CUBLAS_STATUS_SUCCESS;
  if (!checked(function, p.a, "A", p.m, p.k, p.batch) || !checked(function, p.b, "B", p.k, p.n, p.batch) ||
      !checked(function, p.c, "C", p.m, p.n, p.batch))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (p.c.type != float32 && !(h->math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION))
    report_misuse("%s: partial sums may be rounded to 16 bits: the mode of mathematics is %d", function, h->math);
  if (capturing(h->stream) && !h->workspace)
    report_misuse("%s: captured without a workspace set by the caller", function);
  // read now, since they are host pointers
  p.alpha = *(const float *)alpha, p.beta = *(const float *)beta;
  p.rounded = compute == CUBLAS_COMPUTE_32F_FAST_TF32 && p.a.type == float32;
  return enqueue(h->stream, "a product of cuBLAS", [p] { multiply(p); }) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                                         : CUBLAS_STATUS_SUCCESS;
}

} // namespace

BLAS cublasCreate_v2(cublasHandle_t *out) {
  LibraryLock held;
  if (int requested = enter("cublasCreate_v2")) return (cublasStatus_t)requested;
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  Handle *h = new Handle;
  handles.insert(h);
  *out = (cublasHandle_t)h;
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasDestroy_v2(cublasHandle_t handle) {
  LibraryLock held;
  if (int requested = enter("cublasDestroy_v2")) return (cublasStatus_t)requested;
  Handle *h = find("cublasDestroy_v2", handle);
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  handles.erase(h);
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  LibraryLock held;
  if (int requested = enter("cublasSetStream_v2")) return (cublasStatus_t)requested;
  Handle *h = find("cublasSetStream_v2", handle);
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  h->stream = stream;
  h->workspace = nullptr; // as in the real library, this resets the workspace
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasSetWorkspace_v2(cublasHandle_t handle, void *at, size_t bytes) {
  LibraryLock held;
  if (int requested = enter("cublasSetWorkspace_v2")) return (cublasStatus_t)requested;
  Handle *h = find("cublasSetWorkspace_v2", handle);
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!reachable("cublasSetWorkspace_v2", "the workspace", at, bytes, 256)) return CUBLAS_STATUS_INVALID_VALUE;
  h->workspace = at, h->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  LibraryLock held;
  if (int requested = enter("cublasSetMathMode")) return (cublasStatus_t)requested;
  Handle *h = find("cublasSetMathMode", handle);
  if (!h) return CUBLAS_STATUS_NOT_INITIALIZED;
  h->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasGetVersion_v2(cublasHandle_t, int *out) {
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = CUDA_MAJOR * 10000;
  return CUBLAS_STATUS_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) const char *cublasGetStatusString(cublasStatus_t s) {
  switch ((int)s) {
  case 0: return "CUBLAS_STATUS_SUCCESS";
  case 1: return "the library was not initialized";
  case 7: return "an unsupported value or parameter was passed to the function";
  case 13: return "the GPU program failed to execute";
  case 15: return "the functionality requested is not supported";
  }
  return "unknown status";
}

BLAS cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
                  const void *a, cudaDataType type_a, int lda, const void *b, cudaDataType type_b, int ldb,
                  const void *beta, void *c, cudaDataType type_c, int ldc, cublasComputeType_t compute,
                  cublasGemmAlgo_t algo) {
  return send("cublasGemmEx", h,
              {m,
               n,
               k,
               1,
               0,
               0,
               {a, type_a, lda, 0, ta != CUBLAS_OP_N},
               {b, type_b, ldb, 0, tb != CUBLAS_OP_N},
               {c, type_c, ldc, 0, false},
               false},
              alpha, beta, compute, algo);
}

BLAS cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                                const void *alpha, const void *a, cudaDataType type_a, int lda, long long stride_a,
                                const void *b, cudaDataType type_b, int ldb, long long stride_b, const void *beta,
                                void *c, cudaDataType type_c, int ldc, long long stride_c, int batch,
                                cublasComputeType_t compute, cublasGemmAlgo_t algo) {
  return send("cublasGemmStridedBatchedEx", h,
              {m,
               n,
               k,
               batch,
               0,
               0,
               {a, type_a, lda, stride_a, ta != CUBLAS_OP_N},
               {b, type_b, ldb, stride_b, tb != CUBLAS_OP_N},
               {c, type_c, ldc, stride_c, false},
               false},
              alpha, beta, compute, algo);
}
