// cuDNN: convolutions by the legacy calls for single operations. Every direction has algorithm 0,
// which is not deterministic and needs no workspace, and algorithm 1, which is deterministic and
// needs one.
#include <map>
#include "backend.h"
#include "convolution.h"
#include "fakedriver.h"

using namespace fakecuda;

namespace {

struct Handle {
  void *stream = nullptr;
};
struct Tensor {
  int type = -1, n, c, h, w;
};
struct Filter {
  int type = -1, k, c, r, s;
};
struct Convolution {
  int pad[2], stride[2], math = 0;
  bool set = false;
};

std::map<void *, Handle> handles;
std::map<void *, Tensor> tensors;
std::map<void *, Filter> filters;
std::map<void *, Convolution> convolutions;

constexpr size_t workspace_of_1 = 64; // workspace of algorithm 1 in bytes

void *new_handle() {
  static uintptr_t last = 0x20000;
  return (void *)(last += 64);
}

template <class T> T *find(std::map<void *, T> &all, const void *handle, const char *function) {
  auto at = all.find((void *)handle);
  if (at != all.end()) return &at->second;
  report_misuse("%s: %p is not a live object of cuDNN", function, handle);
  return nullptr;
}

template <class H, class T> cudnnStatus_t create(const char *function, std::map<void *, T> &all, H *out, bool context) {
  LibraryLock held;
  if (int requested = enter(function, context)) return (cudnnStatus_t)requested;
  if (!out) return CUDNN_STATUS_BAD_PARAM;
  *out = (H)new_handle();
  all[*out] = T();
  return CUDNN_STATUS_SUCCESS;
}

template <class T> cudnnStatus_t destroy(const char *function, std::map<void *, T> &all, void *handle) {
  LibraryLock held;
  if (int requested = enter(function, false)) return (cudnnStatus_t)requested;
  if (!handle) return CUDNN_STATUS_SUCCESS;
  return find(all, handle, function) && all.erase(handle) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

// numbers_type converts a type of cuDNN to cuBLAS's numbering, or returns -1.
int numbers_type(int type) {
  switch (type) {
  case CUDNN_DATA_FLOAT: return float32;
  case CUDNN_DATA_HALF: return float16;
  case CUDNN_DATA_BFLOAT16: return bfloat16;
  }
  return -1;
}

// Operation is a requested convolution.
struct Operation {
  Handle *handle;
  Window window;
  Convolution *convolution;
};

// build_operation builds an Operation from descriptors. It returns false if they do not match.
bool build_operation(const char *function, cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                     cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y, Operation *o) {
  Handle *handle = find(handles, h, function);
  Tensor *tx = find(tensors, x, function), *ty = find(tensors, y, function);
  Filter *f = find(filters, w, function);
  Convolution *v = find(convolutions, c, function);
  if (!handle || !tx || !ty || !f || !v || !v->set) return false;
  o->handle = handle, o->convolution = v;
  o->window = {tx->n,
               tx->h,
               tx->w,
               tx->c,
               f->k,
               f->r,
               f->s,
               ty->h,
               ty->w,
               {v->pad[0], v->pad[1]},
               {v->stride[0], v->stride[1]},
               numbers_type(tx->type),
               v->math != CUDNN_FMA_MATH};
  bool fits = tx->type == f->type && tx->type == ty->type && tx->c == f->c && ty->c == f->k && ty->n == tx->n &&
              ty->h == (tx->h + 2 * v->pad[0] - f->r) / v->stride[0] + 1 &&
              ty->w == (tx->w + 2 * v->pad[1] - f->s) / v->stride[1] + 1;
  if (!fits) report_misuse("%s: the shapes do not match", function);
  return fits;
}

bool operands_valid(const char *function, const Window &c, const void *x, const void *w, const void *y) {
  // tensor cores need 16-byte alignment
  const size_t each = number_bytes(c.type), alignment = c.type == float32 && !c.rounded ? each : 16;
  return reachable(function, "x", x, image_size(c) * each, alignment) &&
         reachable(function, "w", w, filter_size(c) * each, alignment) &&
         reachable(function, "y", y, result_size(c) * each, alignment);
}

cudnnStatus_t run(const char *function, const Operation &o, Direction d, int algo, const void *alpha, const void *beta,
                  const void *x, const void *w, const void *y, void *workspace, size_t bytes) {
  if (!alpha || !beta || algo < 0 || algo > 1) return CUDNN_STATUS_BAD_PARAM;
  size_t needed = algo == 1 ? workspace_of_1 : 0;
  if (bytes < needed || (needed && !reachable(function, "the workspace", workspace, bytes, 16)) ||
      !operands_valid(function, o.window, x, w, y)) {
    report_misuse("%s: %zu bytes of workspace, want %zu", function, bytes, needed);
    return CUDNN_STATUS_BAD_PARAM;
  }
  const float a = *(const float *)alpha, b = *(const float *)beta;
  const Window window = o.window;
  int failed = enqueue(o.handle->stream, function, [=] {
    convolve(window, d, (void *)x, (void *)w, (void *)y, a, b);
    if (needed) memset(workspace, 0xff, needed); // the algorithm overwrites its workspace
  });
  return failed ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

// recommend lists the algorithms, fastest first.
template <class P> cudnnStatus_t recommend(const Operation &o, int asked, int *got, P *all) {
  if (!got || !all || asked < 1) return CUDNN_STATUS_BAD_PARAM;
  P list[3] = {};
  list[0].algo = (decltype(list[0].algo))0, list[0].time = 0.5f,
  list[0].mathType = (cudnnMathType_t)o.convolution->math;
  list[1] = list[0];
  list[1].algo = (decltype(list[1].algo))1, list[1].time = 1, list[1].memory = workspace_of_1,
  list[1].determinism = (cudnnDeterminism_t)1;
  list[2] = list[1];
  list[2].algo = (decltype(list[2].algo))2, list[2].time = -1, list[2].status = CUDNN_STATUS_NOT_SUPPORTED;
  *got = asked < 3 ? asked : 3;
  for (int i = 0; i < *got; i++) all[i] = list[i];
  return CUDNN_STATUS_SUCCESS;
}

// time runs the algorithms to be timed, which overwrites the output.
template <class P> cudnnStatus_t time(const char *function, const Operation &o, Direction d, const void *x,
                                      const void *w, const void *y, int asked, int *got, P *all, void *workspace,
                                      size_t bytes) {
  if (capturing(o.handle->stream)) {
    report_misuse("%s: the stream is being captured", function);
    return CUDNN_STATUS_EXECUTION_FAILED;
  }
  cudnnStatus_t s = recommend(o, asked, got, all);
  const float one = 1, zero = 0;
  for (int algo = 0; algo < 2 && s == CUDNN_STATUS_SUCCESS; algo++)
    if (algo == 0 || bytes >= workspace_of_1) s = run(function, o, d, algo, &one, &zero, x, w, y, workspace, bytes);
  return s;
}

} // namespace

namespace fakecuda {

void *stream_of(cudnnHandle_t h, bool *known) {
  auto at = handles.find(h);
  *known = at != handles.end();
  return *known ? at->second.stream : nullptr;
}

int numbers_of(int type) { return numbers_type(type); }

} // namespace fakecuda

#define ENTER_LIBRARY(function, context)                                                                               \
  LibraryLock held;                                                                                                    \
  if (int requested = enter(#function, context)) return (cudnnStatus_t)requested

extern "C" __attribute__((visibility("default"))) size_t CUDNNWINAPI cudnnGetVersion(void) {
  return setting("FSPDA_FAKECUDA_CUDNN", 91300);
}
extern "C" __attribute__((visibility("default"))) size_t CUDNNWINAPI cudnnGetCudartVersion(void) {
  return CUDA_MAJOR * 1000;
}

extern "C" __attribute__((visibility("default"))) const char *CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t s) {
  switch ((int)s) {
  case 0: return "CUDNN_STATUS_SUCCESS";
  case 2000: return "CUDNN_STATUS_BAD_PARAM";
  case 3000: return "CUDNN_STATUS_NOT_SUPPORTED";
  case 5000: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
  return "CUDNN_STATUS unknown";
}

DNN cudnnCreate(cudnnHandle_t *out) { return create("cudnnCreate", handles, out, true); }

DNN cudnnDestroy(cudnnHandle_t h) {
  cudnnStatus_t s = destroy("cudnnDestroy", handles, h);
  LibraryLock held;
  if (handles.empty()) report_kept("descriptor of cuDNN", tensors.size() + filters.size() + convolutions.size());
  return s;
}

DNN cudnnSetStream(cudnnHandle_t h, cudaStream_t stream) {
  ENTER_LIBRARY(cudnnSetStream, true);
  Handle *handle = find(handles, h, "cudnnSetStream");
  if (!handle) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out) {
  return create("cudnnCreateTensorDescriptor", tensors, out, false);
}
DNN cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t t) {
  return destroy("cudnnDestroyTensorDescriptor", tensors, t);
}
DNN cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out) {
  return create("cudnnCreateFilterDescriptor", filters, out, false);
}
DNN cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t f) {
  return destroy("cudnnDestroyFilterDescriptor", filters, f);
}
DNN cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *out) {
  return create("cudnnCreateConvolutionDescriptor", convolutions, out, false);
}
DNN cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t c) {
  return destroy("cudnnDestroyConvolutionDescriptor", convolutions, c);
}

DNN cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t handle, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                               int c, int h, int w) {
  ENTER_LIBRARY(cudnnSetTensor4dDescriptor, false);
  Tensor *t = find(tensors, handle, "cudnnSetTensor4dDescriptor");
  if (!t || format != CUDNN_TENSOR_NHWC || numbers_type(type) < 0 || n < 1 || c < 1 || h < 1 || w < 1)
    return CUDNN_STATUS_BAD_PARAM;
  *t = {type, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type, cudnnTensorFormat_t format, int k,
                               int c, int r, int s) {
  ENTER_LIBRARY(cudnnSetFilter4dDescriptor, false);
  Filter *f = find(filters, handle, "cudnnSetFilter4dDescriptor");
  if (!f || format != CUDNN_TENSOR_NHWC || numbers_type(type) < 0 || k < 1 || c < 1 || r < 1 || s < 1)
    return CUDNN_STATUS_BAD_PARAM;
  *f = {type, k, c, r, s};
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t handle, int pad_h, int pad_w, int stride_h,
                                    int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                    cudnnDataType_t compute) {
  ENTER_LIBRARY(cudnnSetConvolution2dDescriptor, false);
  Convolution *c = find(convolutions, handle, "cudnnSetConvolution2dDescriptor");
  if (!c || pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1) return CUDNN_STATUS_BAD_PARAM;
  if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *c = {{pad_h, pad_w}, {stride_h, stride_w}, c->math, true};
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
  ENTER_LIBRARY(cudnnSetConvolutionMathType, false);
  Convolution *c = find(convolutions, handle, "cudnnSetConvolutionMathType");
  if (!c || (int)math < 0 || (int)math > 3) return CUDNN_STATUS_BAD_PARAM;
  c->math = math;
  return CUDNN_STATUS_SUCCESS;
}

#define OPERATION(function, x, w, c, y)                                                                                \
  ENTER_LIBRARY(function, true);                                                                                       \
  Operation o;                                                                                                         \
  if (!build_operation(#function, h, x, w, c, y, &o)) return CUDNN_STATUS_BAD_PARAM

DNN cudnnConvolutionForward(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
                            const cudnnFilterDescriptor_t wd, const void *w, const cudnnConvolutionDescriptor_t c,
                            cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes, const void *beta,
                            const cudnnTensorDescriptor_t yd, void *y) {
  OPERATION(cudnnConvolutionForward, xd, wd, c, yd);
  return run("cudnnConvolutionForward", o, forward, algo, alpha, beta, x, w, y, workspace, bytes);
}

DNN cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha, const cudnnFilterDescriptor_t wd, const void *w,
                                 const cudnnTensorDescriptor_t yd, const void *dy, const cudnnConvolutionDescriptor_t c,
                                 cudnnConvolutionBwdDataAlgo_t algo, void *workspace, size_t bytes, const void *beta,
                                 const cudnnTensorDescriptor_t xd, void *dx) {
  OPERATION(cudnnConvolutionBackwardData, xd, wd, c, yd);
  return run("cudnnConvolutionBackwardData", o, grad_x, algo, alpha, beta, dx, w, dy, workspace, bytes);
}

DNN cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
                                   const cudnnTensorDescriptor_t yd, const void *dy,
                                   const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdFilterAlgo_t algo,
                                   void *workspace, size_t bytes, const void *beta, const cudnnFilterDescriptor_t wd,
                                   void *dw) {
  OPERATION(cudnnConvolutionBackwardFilter, xd, wd, c, yd);
  return run("cudnnConvolutionBackwardFilter", o, grad_w, algo, alpha, beta, x, dw, dy, workspace, bytes);
}

DNN cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                           const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t c,
                                           const cudnnTensorDescriptor_t y, const int asked, int *got,
                                           cudnnConvolutionFwdAlgoPerf_t *all) {
  OPERATION(cudnnGetConvolutionForwardAlgorithm_v7, x, w, c, y);
  return recommend(o, asked, got, all);
}

DNN cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t h, const cudnnFilterDescriptor_t w,
                                                const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c,
                                                const cudnnTensorDescriptor_t x, const int asked, int *got,
                                                cudnnConvolutionBwdDataAlgoPerf_t *all) {
  OPERATION(cudnnGetConvolutionBackwardDataAlgorithm_v7, x, w, c, y);
  return recommend(o, asked, got, all);
}

DNN cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                  const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t c,
                                                  const cudnnFilterDescriptor_t w, const int asked, int *got,
                                                  cudnnConvolutionBwdFilterAlgoPerf_t *all) {
  OPERATION(cudnnGetConvolutionBackwardFilterAlgorithm_v7, x, w, c, y);
  return recommend(o, asked, got, all);
}

DNN cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t h, const cudnnTensorDescriptor_t xd, const void *x,
                                           const cudnnFilterDescriptor_t wd, const void *w,
                                           const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t yd,
                                           void *y, const int asked, int *got, cudnnConvolutionFwdAlgoPerf_t *all,
                                           void *workspace, size_t bytes) {
  OPERATION(cudnnFindConvolutionForwardAlgorithmEx, xd, wd, c, yd);
  return time("cudnnFindConvolutionForwardAlgorithmEx", o, forward, x, w, y, asked, got, all, workspace, bytes);
}

DNN cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t h, const cudnnFilterDescriptor_t wd, const void *w,
                                                const cudnnTensorDescriptor_t yd, const void *dy,
                                                const cudnnConvolutionDescriptor_t c, const cudnnTensorDescriptor_t xd,
                                                void *dx, const int asked, int *got,
                                                cudnnConvolutionBwdDataAlgoPerf_t *all, void *workspace, size_t bytes) {
  OPERATION(cudnnFindConvolutionBackwardDataAlgorithmEx, xd, wd, c, yd);
  return time("cudnnFindConvolutionBackwardDataAlgorithmEx", o, grad_x, dx, w, dy, asked, got, all, workspace, bytes);
}

DNN cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t h, const cudnnTensorDescriptor_t xd, const void *x,
                                                  const cudnnTensorDescriptor_t yd, const void *dy,
                                                  const cudnnConvolutionDescriptor_t c,
                                                  const cudnnFilterDescriptor_t wd, void *dw, const int asked, int *got,
                                                  cudnnConvolutionBwdFilterAlgoPerf_t *all, void *workspace,
                                                  size_t bytes) {
  OPERATION(cudnnFindConvolutionBackwardFilterAlgorithmEx, xd, wd, c, yd);
  return time("cudnnFindConvolutionBackwardFilterAlgorithmEx", o, grad_w, x, dw, dy, asked, got, all, workspace, bytes);
}
