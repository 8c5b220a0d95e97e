// cuBLASLt: products with epilogues. An algorithm is valid for the shapes, alignments and workspace
// that it was requested for.
#include <cmath>
#include <map>
#include <set>
#include "blaslt_abi.h"
#include "matrix.h"

using namespace fakecuda;

namespace {

// bits of an epilogue
constexpr int relu = 2, bias = 4, drelu = 8, bgrad = 16, gelu = 32, dgelu = 64, aux = 128, bgrada = 256, bgradb = 512;
constexpr uint64_t algo_mark = 0x5354414e44494e21;
constexpr size_t algo_workspace = 4096; // workspace of an algorithm in bytes

struct Desc {
  int compute, epilogue = 1;
  int transposed_a = 0, transposed_b = 0;
  void *bias_at = nullptr, *mask_at = nullptr;
  int64_t mask_ld = 0;
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};

struct Preference {
  uint64_t memory = 0;
  uint32_t alignment[4] = {256, 256, 256, 256}, reductions = 7;
};

std::set<void *> handles;
std::map<void *, Desc> descs;
std::map<void *, Layout> layouts;
std::map<void *, Preference> preferences;

// new_handle returns a unique handle.
void *new_handle() {
  static uintptr_t last = 0x10000;
  return (void *)(last += 64);
}

template <class T> T *find(std::map<void *, T> &all, const void *handle, const char *function) {
  auto at = all.find((void *)handle);
  if (at != all.end()) return &at->second;
  report_misuse("%s: %p is not a live descriptor", function, handle);
  return nullptr;
}

template <class T> cublasStatus_t destroy(std::map<void *, T> &all, const void *handle, const char *function) {
  LibraryLock held;
  if (int requested = enter(function, false)) return (cublasStatus_t)requested;
  return find(all, handle, function) && all.erase((void *)handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// assign sets an attribute and checks its size.
template <class T> cublasStatus_t assign(T *to, const void *value, size_t bytes) {
  if (!value || bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Operation is a requested product.
struct Operation {
  Desc desc;
  Factor a, b, c, d;
  uint64_t m, n, k;
  int batch;
  float alpha, beta;
};

bool has_gelu(const Desc &d) { return d.epilogue & (gelu | dgelu); }
bool sums(const Desc &d) { return d.epilogue & (bgrad | bgrada | bgradb); }
bool has_vector(const Desc &d) { return d.epilogue & bias || sums(d); }
uint64_t vector_length(const Operation &o) { return o.desc.epilogue & bgradb ? o.n : o.m; }

bool supported(const Desc &d) {
  switch (d.epilogue) {
  case 1:
  case relu:
  case bias:
  case relu | bias:
  case relu | aux:
  case relu | aux | bias:
  case drelu | aux:
  case drelu | aux | bgrad:
  case gelu | aux:
  case gelu | aux | bias:
  case dgelu | aux:
  case bgrada:
  case bgradb: return true;
  }
  return false;
}

// build_operation builds an Operation from descriptors, and returns what is inconsistent, or null.
const char *build_operation(const Desc *desc, const Layout *a, const Layout *b, const Layout *c, const Layout *d,
                            Operation *o) {
  o->desc = *desc;
  o->m = d->rows, o->n = d->columns, o->k = desc->transposed_a ? a->rows : a->columns, o->batch = d->batch;
  if ((desc->transposed_a ? a->columns : a->rows) != o->m || (desc->transposed_b ? b->rows : b->columns) != o->n ||
      (desc->transposed_b ? b->columns : b->rows) != o->k || c->rows != o->m || c->columns != o->n)
    return "the shapes do not match";
  for (const Layout *l : {a, b, c, d})
    if (l->ld < (int64_t)l->rows || !is_number(l->type) || l->batch != o->batch)
      return "a leading dimension, type or batch count does not match";
  if (a->type != b->type || c->type != d->type) return "the types do not match";
  if (has_gelu(*desc) && (desc->mask_ld % 8 || desc->mask_ld < (int64_t)o->m || !desc->mask_at))
    return "the matrix of GELU is missing, or its columns are not multiples of 8 numbers";
  if (desc->epilogue & aux && !has_gelu(*desc) && (desc->mask_ld % 128 || desc->mask_ld < (int64_t)o->m || !desc->mask_at))
    return "the mask is missing, or its rows are not multiples of 128 bits";
  if (has_vector(*desc) && !desc->bias_at) return "the bias is missing";
  return nullptr;
}

double with_bias(const Operation &o, uint64_t i) {
  return o.desc.epilogue & bias ? get_number(o.desc.bias_at, o.d.type, i) : 0;
}

bool mask_bit(const Operation &o, uint64_t i, uint64_t j) {
  uint64_t bit = j * o.desc.mask_ld + i;
  return ((const uint8_t *)o.desc.mask_at)[bit / 8] >> bit % 8 & 1;
}

void set_mask_bit(const Operation &o, uint64_t i, uint64_t j, bool to) {
  uint64_t bit = j * o.desc.mask_ld + i;
  uint8_t *p = (uint8_t *)o.desc.mask_at + bit / 8;
  *p = (uint8_t)((*p & ~(1 << bit % 8)) | to << bit % 8);
}

// tanh_of returns the tanh of the tanh form of GELU.
double tanh_of(double v) { return std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)); }

double gelu_slope(double v) {
  double t = tanh_of(v);
  return (1 + t) / 2 + v / 2 * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * v * v);
}

// apply_epilogue returns the final value of an element.
double apply_epilogue(const Operation &o, uint64_t i, uint64_t j, double v) {
  v += with_bias(o, i);
  if (o.desc.epilogue & relu) {
    if (o.desc.epilogue & aux) set_mask_bit(o, i, j, v > 0);
    if (v < 0) v = 0;
  }
  if (o.desc.epilogue & gelu) {
    put_number(o.desc.mask_at, o.d.type, j * o.desc.mask_ld + i, v);
    v *= (1 + tanh_of(v)) / 2;
  }
  if (o.desc.epilogue & dgelu) v *= gelu_slope(get_number(o.desc.mask_at, o.d.type, j * o.desc.mask_ld + i));
  if (o.desc.epilogue & drelu && !mask_bit(o, i, j)) v = 0;
  return v;
}

// put_sums writes the sums of a factor, or of the result, to the bias.
void put_sums(const Operation &o) {
  for (uint64_t i = 0; i < vector_length(o); i++) {
    double sum = 0;
    if (o.desc.epilogue & bgrad)
      for (uint64_t j = 0; j < o.n; j++) sum += get_number(o.d.at, o.d.type, j * o.d.ld + i);
    else
      for (uint64_t l = 0; l < o.k; l++)
        sum += o.desc.epilogue & bgrada ? element(o.a, i, l, 0, false) : element(o.b, l, i, 0, false);
    put_number(o.desc.bias_at, o.d.type, i, sum);
  }
}

void multiply(const Operation &o) {
  bool rounded = o.desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && o.a.type == float32;
  for (int z = 0; z < o.batch; z++)
    for (uint64_t j = 0; j < o.n; j++)
      for (uint64_t i = 0; i < o.m; i++) {
        double v = 0;
        for (uint64_t l = 0; l < o.k; l++) v += element(o.a, i, l, z, rounded) * element(o.b, l, j, z, rounded);
        v *= o.alpha;
        if (o.beta != 0) v += o.beta * element(o.c, i, j, z, false);
        put_number((void *)o.d.at, o.d.type, z * o.d.stride + j * o.d.ld + i, apply_epilogue(o, i, j, v));
      }
  if (sums(o.desc)) put_sums(o);
}

Factor factor(const void *at, const Layout &l, bool transposed) {
  return {at, l.type, (int)l.ld, l.stride, transposed};
}

} // namespace

#define ENTER_LIBRARY(function, context)                                                                               \
  LibraryLock held;                                                                                                    \
  if (int requested = enter(#function, context)) return (cublasStatus_t)requested

extern "C" __attribute__((visibility("default"))) const char *cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "error of the fake cuBLASLt";
}

BLAS cublasLtCreate(cublasLtHandle_t *out) {
  ENTER_LIBRARY(cublasLtCreate, true);
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtHandle_t)new_handle();
  handles.insert(*out);
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtDestroy(cublasLtHandle_t h) {
  ENTER_LIBRARY(cublasLtDestroy, true);
  if (!handles.erase(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (handles.empty()) report_kept("descriptor of cuBLASLt", descs.size() + layouts.size() + preferences.size());
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
  ENTER_LIBRARY(cublasLtMatmulDescCreate, false);
  if (!out || scale != float32 || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32))
    return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtMatmulDesc_t)new_handle();
  descs[*out].compute = compute;
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                    const void *value, size_t bytes) {
  ENTER_LIBRARY(cublasLtMatmulDescSetAttribute, false);
  Desc *d = find(descs, handle, "cublasLtMatmulDescSetAttribute");
  if (!d) return CUBLAS_STATUS_INVALID_VALUE;
  switch ((int)attribute) {
  case 3: return assign(&d->transposed_a, value, bytes);
  case 4: return assign(&d->transposed_b, value, bytes);
  case 7: return assign(&d->epilogue, value, bytes);
  case 8: return assign(&d->bias_at, value, bytes);
  case 11: return assign(&d->mask_at, value, bytes);
  case 12: return assign(&d->mask_ld, value, bytes);
  }
  report_misuse("cublasLtMatmulDescSetAttribute: the fake has no attribute %d", (int)attribute);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

BLAS cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy(descs, d, "cublasLtMatmulDescDestroy"); }

BLAS cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t columns,
                                int64_t ld) {
  ENTER_LIBRARY(cublasLtMatrixLayoutCreate, false);
  if (!out || !rows || !columns || ld < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtMatrixLayout_t)new_handle();
  layouts[*out] = Layout{type, rows, columns, ld};
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute,
                                      const void *value, size_t bytes) {
  ENTER_LIBRARY(cublasLtMatrixLayoutSetAttribute, false);
  Layout *l = find(layouts, handle, "cublasLtMatrixLayoutSetAttribute");
  if (!l) return CUBLAS_STATUS_INVALID_VALUE;
  if ((int)attribute == 5) return assign(&l->batch, value, bytes);
  if ((int)attribute == 6) return assign(&l->stride, value, bytes);
  report_misuse("cublasLtMatrixLayoutSetAttribute: the fake has no attribute %d", (int)attribute);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

BLAS cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  return destroy(layouts, l, "cublasLtMatrixLayoutDestroy");
}

BLAS cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  ENTER_LIBRARY(cublasLtMatmulPreferenceCreate, false);
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtMatmulPreference_t)new_handle();
  preferences[*out] = {};
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                          cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                          size_t bytes) {
  ENTER_LIBRARY(cublasLtMatmulPreferenceSetAttribute, false);
  Preference *p = find(preferences, handle, "cublasLtMatmulPreferenceSetAttribute");
  if (!p) return CUBLAS_STATUS_INVALID_VALUE;
  int a = (int)attribute;
  if (a == 1) return assign(&p->memory, value, bytes);
  if (a == 3) return assign(&p->reductions, value, bytes);
  if (a >= 5 && a <= 8) return assign(&p->alignment[a - 5], value, bytes);
  report_misuse("cublasLtMatmulPreferenceSetAttribute: the fake has no attribute %d", a);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

BLAS cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  return destroy(preferences, p, "cublasLtMatmulPreferenceDestroy");
}

// fingerprint returns a digest of everything that an algorithm is valid for. The number of matrices is not part of it:
// cublasLtMatmulAlgoCheck asks about another one.
static uint64_t fingerprint(const Operation &o) {
  uint64_t h = 14695981039346656037ull;
  for (uint64_t v : {o.m, o.n, o.k, (uint64_t)o.desc.epilogue, (uint64_t)o.desc.compute, (uint64_t)o.a.type,
                     (uint64_t)o.d.type})
    h = (h ^ v) * 1099511628211ull;
  return h;
}

BLAS cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                    cublasLtMatmulPreference_t preference, int asked,
                                    cublasLtMatmulHeuristicResult_t all[], int *got) {
  ENTER_LIBRARY(cublasLtMatmulAlgoGetHeuristic, true);
  const char *function = "cublasLtMatmulAlgoGetHeuristic";
  Desc *what = find(descs, desc, function);
  Layout *la = find(layouts, a, function), *lb = find(layouts, b, function), *lc = find(layouts, c, function),
         *ld = find(layouts, d, function);
  Preference *p = find(preferences, preference, function);
  if (!handles.count(h) || !what || !la || !lb || !lc || !ld || !p || !all || !got || asked < 1)
    return CUBLAS_STATUS_INVALID_VALUE;
  *got = 0;
  Operation o = {};
  if (const char *wrong = build_operation(what, la, lb, lc, ld, &o)) {
    report_misuse("%s: %s", function, wrong);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  o.a.type = la->type, o.d.type = ld->type;
  if (ld->type != float32 && p->reductions & ~2u)
    report_misuse("%s: partial sums may be rounded to 16 bits: reductions %u are allowed", function, p->reductions);
  // tensor cores need 16-byte alignment
  bool refuses = setting("FSPDA_FAKECUDA_LT", 1) == 0 || (la->type != float32 && p->alignment[0] < 16);
  if (!supported(*what) || refuses) return CUBLAS_STATUS_NOT_SUPPORTED;
  all[0] = {};
  all[0].workspaceSize = p->memory < algo_workspace ? 0 : algo_workspace;
  all[0].algo.data[0] = algo_mark, all[0].algo.data[1] = fingerprint(o), all[0].algo.data[2] = all[0].workspaceSize;
  for (int i = 0; i < 4; i++) all[0].algo.data[3 + i] = p->alignment[i];
  *got = 1;
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulAlgoCheck(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                             cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                             const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *found) {
  ENTER_LIBRARY(cublasLtMatmulAlgoCheck, true);
  const char *function = "cublasLtMatmulAlgoCheck";
  Desc *what = find(descs, desc, function);
  Layout *la = find(layouts, a, function), *lb = find(layouts, b, function), *lc = find(layouts, c, function),
         *ld = find(layouts, d, function);
  Operation o = {};
  if (!handles.count(h) || !what || !la || !lb || !lc || !ld || !algo || !found ||
      build_operation(what, la, lb, lc, ld, &o))
    return CUBLAS_STATUS_INVALID_VALUE;
  o.a.type = la->type, o.d.type = ld->type;
  *found = {};
  found->algo = *algo, found->workspaceSize = algo->data[2];
  return algo->data[0] == algo_mark && algo->data[1] == fingerprint(o) ? CUBLAS_STATUS_SUCCESS
                                                                       : CUBLAS_STATUS_NOT_SUPPORTED;
}

// operands_valid checks the memory of a product.
static bool operands_valid(const Operation &o, const cublasLtMatmulAlgo_t *algo) {
  const char *function = "cublasLtMatmul";
  const char *names[] = {"A", "B", "C", "D"};
  const void *at[] = {o.a.at, o.b.at, o.c.at, o.d.at};
  for (int i = 0; i < 4; i++)
    if ((uintptr_t)at[i] % algo->data[3 + i]) {
      report_misuse("%s: %s has less alignment than the algorithm was chosen for", function, names[i]);
      return false;
    }
  if (!checked(function, o.a, "A", o.m, o.k, o.batch) || !checked(function, o.b, "B", o.k, o.n, o.batch) ||
      !checked(function, o.d, "D", o.m, o.n, o.batch))
    return false;
  size_t each = number_bytes(o.d.type);
  // some algorithms load 16 bytes of it at once, whatever the alignment when they were chosen
  if (has_vector(o.desc) && !reachable(function, "the bias", o.desc.bias_at, vector_length(o) * each, 16))
    return false;
  if (has_gelu(o.desc)) return reachable(function, "the matrix of GELU", o.desc.mask_at, o.desc.mask_ld * each * o.n, 16);
  return !(o.desc.epilogue & aux) || reachable(function, "the mask", o.desc.mask_at, o.desc.mask_ld / 8 * o.n, 16);
}

BLAS cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                    cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                    const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
                    const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream) {
  ENTER_LIBRARY(cublasLtMatmul, true);
  const char *function = "cublasLtMatmul";
  Desc *what = find(descs, desc, function);
  Layout *A = find(layouts, la, function), *B = find(layouts, lb, function), *C = find(layouts, lc, function),
         *D = find(layouts, ld, function);
  if (!handles.count(h) || !what || !A || !B || !C || !D || !alpha || !beta || !algo)
    return CUBLAS_STATUS_INVALID_VALUE;
  Operation o = {};
  const char *wrong = build_operation(what, A, B, C, D, &o);
  o.a = factor(a, *A, what->transposed_a), o.b = factor(b, *B, what->transposed_b), o.c = factor(c, *C, false),
  o.d = factor(d, *D, false);
  o.alpha = *(const float *)alpha, o.beta = *(const float *)beta;
  if (!wrong && (algo->data[0] != algo_mark || algo->data[1] != fingerprint(o)))
    wrong = "the algorithm was chosen for another product";
  if (!wrong && bytes < algo->data[2]) wrong = "the workspace is smaller than the algorithm needs";
  if (wrong) report_misuse("%s: %s", function, wrong);
  if (wrong || (bytes && !reachable(function, "the workspace", workspace, bytes, 256)) || !operands_valid(o, algo))
    return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue(stream, "a product of cuBLASLt", [o] { multiply(o); }) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                                        : CUBLAS_STATUS_SUCCESS;
}
