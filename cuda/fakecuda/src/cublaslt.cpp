// cuBLASLt: products with what follows them. An algorithm holds for the shapes, the alignments and the workspace that it was asked for.
#include <map>
#include <set>
#include "blaslt_abi.h"
#include "matrix.h"

using namespace fakecuda;

namespace {

constexpr int relu = 2, bias = 4, drelu = 8, bgrad = 16, aux = 128, bgrada = 256, bgradb = 512; // bits of an epilogue
constexpr uint64_t algo_mark = 0x5354414e44494e21;
constexpr size_t algo_room = 4096; // bytes that an algorithm works in

struct Desc {
  int compute, epilogue = 1;
  int turned_a = 0, turned_b = 0;
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
  uint32_t alignment[4] = {256, 256, 256, 256};
};

std::set<void *> handles;
std::map<void *, Desc> descs;
std::map<void *, Layout> layouts;
std::map<void *, Preference> preferences;

// made_handle is a handle that no other has been or will be.
void *made_handle() {
  static uintptr_t last = 0x10000;
  return (void *)(last += 64);
}

template <class T> T *find(std::map<void *, T> &all, const void *handle, const char *function) {
  auto at = all.find((void *)handle);
  if (at != all.end()) return &at->second;
  complain("%s: %p is no descriptor that lives", function, handle);
  return nullptr;
}

template <class T> cublasStatus_t destroy(std::map<void *, T> &all, const void *handle, const char *function) {
  Exclusive held;
  if (int wanted = enter(function, false)) return (cublasStatus_t)wanted;
  return find(all, handle, function) && all.erase((void *)handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

// assign sets an attribute, whose size must be right.
template <class T> cublasStatus_t assign(T *to, const void *value, size_t bytes) {
  if (!value || bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

// Operation is a product that was asked for.
struct Operation {
  Desc desc;
  Factor a, b, c, d;
  uint64_t m, n, k;
  int batch;
  float alpha, beta;
};

bool sums(const Desc &d) { return d.epilogue & (bgrad | bgrada | bgradb); }
bool has_vector(const Desc &d) { return d.epilogue & bias || sums(d); }
uint64_t vector_length(const Operation &o) { return o.desc.epilogue & bgradb ? o.n : o.m; }

bool supported(const Desc &d) {
  switch (d.epilogue) {
  case 1: case relu: case bias: case relu | bias: case relu | aux: case relu | aux | bias: case drelu | aux: case drelu | aux | bgrad: case bgrada: case bgradb: return true;
  }
  return false;
}

// shaped makes an Operation of descriptors, and says what does not fit.
const char *shaped(const Desc *desc, const Layout *a, const Layout *b, const Layout *c, const Layout *d, Operation *o) {
  o->desc = *desc;
  o->m = d->rows, o->n = d->columns, o->k = desc->turned_a ? a->rows : a->columns, o->batch = d->batch;
  if ((desc->turned_a ? a->columns : a->rows) != o->m || (desc->turned_b ? b->rows : b->columns) != o->n ||
      (desc->turned_b ? b->columns : b->rows) != o->k || c->rows != o->m || c->columns != o->n)
    return "shapes that do not fit";
  for (const Layout *l : {a, b, c, d})
    if (l->ld < (int64_t)l->rows || !is_number(l->type) || l->batch != o->batch) return "a leading dimension, a type or a batch that does not fit";
  if (a->type != b->type || c->type != d->type) return "types that do not go together";
  if (desc->epilogue & aux && (desc->mask_ld % 128 || desc->mask_ld < (int64_t)o->m || !desc->mask_at)) return "a mask that is not there, or whose rows are not of 128 bits";
  if (has_vector(*desc) && !desc->bias_at) return "no vector beside the matrices";
  return nullptr;
}

double with_bias(const Operation &o, uint64_t i) { return o.desc.epilogue & bias ? get_number(o.desc.bias_at, o.d.type, i) : 0; }

bool mask_bit(const Operation &o, uint64_t i, uint64_t j) {
  uint64_t bit = j * o.desc.mask_ld + i;
  return ((const uint8_t *)o.desc.mask_at)[bit / 8] >> bit % 8 & 1;
}

void set_mask_bit(const Operation &o, uint64_t i, uint64_t j, bool to) {
  uint64_t bit = j * o.desc.mask_ld + i;
  uint8_t *p = (uint8_t *)o.desc.mask_at + bit / 8;
  *p = (uint8_t)((*p & ~(1 << bit % 8)) | to << bit % 8);
}

// after is what an element becomes.
double after(const Operation &o, uint64_t i, uint64_t j, double v) {
  v += with_bias(o, i);
  if (o.desc.epilogue & relu) {
    if (o.desc.epilogue & aux) set_mask_bit(o, i, j, v > 0);
    if (v < 0) v = 0;
  }
  if (o.desc.epilogue & drelu && !mask_bit(o, i, j)) v = 0;
  return v;
}

// put_sums writes the sums of a factor, or of the result, where a bias would be.
void put_sums(const Operation &o) {
  for (uint64_t i = 0; i < vector_length(o); i++) {
    double sum = 0;
    if (o.desc.epilogue & bgrad)
      for (uint64_t j = 0; j < o.n; j++) sum += get_number(o.d.at, o.d.type, j * o.d.ld + i);
    else
      for (uint64_t l = 0; l < o.k; l++) sum += o.desc.epilogue & bgrada ? element(o.a, i, l, 0, false) : element(o.b, l, i, 0, false);
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
        put_number((void *)o.d.at, o.d.type, z * o.d.stride + j * o.d.ld + i, after(o, i, j, v));
      }
  if (sums(o.desc)) put_sums(o);
}

Factor factor(const void *at, const Layout &l, bool turned) { return {at, l.type, (int)l.ld, l.stride, turned}; }

} // namespace

#define TO_LIBRARY(function, context)                                                                                                     \
  Exclusive held;                                                                                                                         \
  if (int wanted = enter(#function, context)) return (cublasStatus_t)wanted

extern "C" __attribute__((visibility("default"))) const char *cublasLtGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "as the stand-in of cuBLASLt says";
}

BLAS cublasLtCreate(cublasLtHandle_t *out) {
  TO_LIBRARY(cublasLtCreate, true);
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtHandle_t)made_handle();
  handles.insert(*out);
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtDestroy(cublasLtHandle_t h) {
  TO_LIBRARY(cublasLtDestroy, true);
  if (!handles.erase(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (handles.empty()) kept("descriptor of cuBLASLt", descs.size() + layouts.size() + preferences.size());
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale) {
  TO_LIBRARY(cublasLtMatmulDescCreate, false);
  if (!out || scale != float32 || (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32)) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtMatmulDesc_t)made_handle();
  descs[*out].compute = compute;
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes) {
  TO_LIBRARY(cublasLtMatmulDescSetAttribute, false);
  Desc *d = find(descs, handle, "cublasLtMatmulDescSetAttribute");
  if (!d) return CUBLAS_STATUS_INVALID_VALUE;
  switch ((int)attribute) {
  case 3: return assign(&d->turned_a, value, bytes);
  case 4: return assign(&d->turned_b, value, bytes);
  case 7: return assign(&d->epilogue, value, bytes);
  case 8: return assign(&d->bias_at, value, bytes);
  case 11: return assign(&d->mask_at, value, bytes);
  case 12: return assign(&d->mask_ld, value, bytes);
  }
  complain("cublasLtMatmulDescSetAttribute: the stand-in has no attribute %d", (int)attribute);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

BLAS cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy(descs, d, "cublasLtMatmulDescDestroy"); }

BLAS cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows, uint64_t columns, int64_t ld) {
  TO_LIBRARY(cublasLtMatrixLayoutCreate, false);
  if (!out || !rows || !columns || ld < (int64_t)rows) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtMatrixLayout_t)made_handle();
  layouts[*out] = Layout{type, rows, columns, ld};
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute, const void *value, size_t bytes) {
  TO_LIBRARY(cublasLtMatrixLayoutSetAttribute, false);
  Layout *l = find(layouts, handle, "cublasLtMatrixLayoutSetAttribute");
  if (!l) return CUBLAS_STATUS_INVALID_VALUE;
  if ((int)attribute == 5) return assign(&l->batch, value, bytes);
  if ((int)attribute == 6) return assign(&l->stride, value, bytes);
  complain("cublasLtMatrixLayoutSetAttribute: the stand-in has no attribute %d", (int)attribute);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

BLAS cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return destroy(layouts, l, "cublasLtMatrixLayoutDestroy"); }

BLAS cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out) {
  TO_LIBRARY(cublasLtMatmulPreferenceCreate, false);
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = (cublasLtMatmulPreference_t)made_handle();
  preferences[*out] = {};
  return CUBLAS_STATUS_SUCCESS;
}

BLAS cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle, cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t bytes) {
  TO_LIBRARY(cublasLtMatmulPreferenceSetAttribute, false);
  Preference *p = find(preferences, handle, "cublasLtMatmulPreferenceSetAttribute");
  if (!p) return CUBLAS_STATUS_INVALID_VALUE;
  int a = (int)attribute;
  if (a == 1) return assign(&p->memory, value, bytes);
  if (a >= 5 && a <= 8) return assign(&p->alignment[a - 5], value, bytes);
  complain("cublasLtMatmulPreferenceSetAttribute: the stand-in has no attribute %d", a);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

BLAS cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return destroy(preferences, p, "cublasLtMatmulPreferenceDestroy"); }

// fingerprint is of what an algorithm holds for.
static uint64_t fingerprint(const Operation &o) {
  uint64_t h = 14695981039346656037ull;
  for (uint64_t v : {o.m, o.n, o.k, (uint64_t)o.batch, (uint64_t)o.desc.epilogue, (uint64_t)o.desc.compute, (uint64_t)o.a.type, (uint64_t)o.d.type})
    h = (h ^ v) * 1099511628211ull;
  return h;
}

BLAS cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int asked,
                                    cublasLtMatmulHeuristicResult_t all[], int *got) {
  TO_LIBRARY(cublasLtMatmulAlgoGetHeuristic, true);
  const char *me = "cublasLtMatmulAlgoGetHeuristic";
  Desc *what = find(descs, desc, me);
  Layout *la = find(layouts, a, me), *lb = find(layouts, b, me), *lc = find(layouts, c, me), *ld = find(layouts, d, me);
  Preference *p = find(preferences, preference, me);
  if (!handles.count(h) || !what || !la || !lb || !lc || !ld || !p || !all || !got || asked < 1) return CUBLAS_STATUS_INVALID_VALUE;
  *got = 0;
  Operation o = {};
  if (const char *wrong = shaped(what, la, lb, lc, ld, &o)) {
    complain("%s: %s", me, wrong);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  o.a.type = la->type, o.d.type = ld->type;
  bool refuses = setting("FSPDA_FAKECUDA_LT", 1) == 0 || (la->type != float32 && p->alignment[0] < 16); // tensor cores want whole vectors
  if (!supported(*what) || refuses) return CUBLAS_STATUS_NOT_SUPPORTED;
  all[0] = {};
  all[0].workspaceSize = p->memory < algo_room ? 0 : algo_room;
  all[0].algo.data[0] = algo_mark, all[0].algo.data[1] = fingerprint(o), all[0].algo.data[2] = all[0].workspaceSize;
  for (int i = 0; i < 4; i++) all[0].algo.data[3 + i] = p->alignment[i];
  *got = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// in_place says what of the memory of a product is wrong.
static bool in_place(const Operation &o, const cublasLtMatmulAlgo_t *algo) {
  const char *me = "cublasLtMatmul";
  const char *names[] = {"A", "B", "C", "D"};
  const void *at[] = {o.a.at, o.b.at, o.c.at, o.d.at};
  for (int i = 0; i < 4; i++)
    if ((uintptr_t)at[i] % algo->data[3 + i]) {
      complain("%s: %s is aligned worse than the algorithm was chosen for", me, names[i]);
      return false;
    }
  if (!checked(me, o.a, "A", o.m, o.k, o.batch) || !checked(me, o.b, "B", o.k, o.n, o.batch) || !checked(me, o.d, "D", o.m, o.n, o.batch)) return false;
  size_t each = number_bytes(o.d.type);
  if (has_vector(o.desc) && !reachable(me, "the vector beside", o.desc.bias_at, vector_length(o) * each, each)) return false;
  return !(o.desc.epilogue & aux) || reachable(me, "the mask", o.desc.mask_at, o.desc.mask_ld / 8 * o.n, 16);
}

BLAS cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b,
                    cublasLtMatrixLayout_t lb, const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
                    const cublasLtMatmulAlgo_t *algo, void *room, size_t bytes, cudaStream_t stream) {
  TO_LIBRARY(cublasLtMatmul, true);
  const char *me = "cublasLtMatmul";
  Desc *what = find(descs, desc, me);
  Layout *A = find(layouts, la, me), *B = find(layouts, lb, me), *C = find(layouts, lc, me), *D = find(layouts, ld, me);
  if (!handles.count(h) || !what || !A || !B || !C || !D || !alpha || !beta || !algo) return CUBLAS_STATUS_INVALID_VALUE;
  Operation o = {};
  const char *wrong = shaped(what, A, B, C, D, &o);
  o.a = factor(a, *A, what->turned_a), o.b = factor(b, *B, what->turned_b), o.c = factor(c, *C, false), o.d = factor(d, *D, false);
  o.alpha = *(const float *)alpha, o.beta = *(const float *)beta;
  if (!wrong && (algo->data[0] != algo_mark || algo->data[1] != fingerprint(o))) wrong = "an algorithm of another product";
  if (!wrong && bytes < algo->data[2]) wrong = "a workspace that is smaller than the algorithm's";
  if (wrong) complain("%s: %s", me, wrong);
  if (wrong || (bytes && !reachable(me, "the workspace", room, bytes, 256)) || !in_place(o, algo)) return CUBLAS_STATUS_INVALID_VALUE;
  return enqueue(stream, "a product of cuBLASLt", [o] { multiply(o); }) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
