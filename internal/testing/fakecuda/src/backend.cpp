// The graph API of cuDNN, for graphs of one convolution. A descriptor is a set of typed attributes.
// Heuristics recommend two engines: 11, which needs a workspace, has a knob, and uses tensor cores
// where rounding is allowed; and 12, which is marked as nondeterministic.
#include <map>
#include <vector>
#include "backend.h"
#include "convolution.h"
#include "fakedriver.h"

using namespace fakecuda;

namespace {

struct Values {
  int type;
  std::vector<uint64_t> all;
};

struct Node {
  int of;
  bool complete = false;
  std::map<int, Values> set;
};

std::map<void *, Node> nodes;

constexpr size_t workspace_of_11 = 512; // workspace of engine 11 in bytes

Node *find(const void *handle, int of, const char *function) {
  auto at = nodes.find((void *)handle);
  if (at != nodes.end() && (of == 0 || at->second.of == of)) return &at->second;
  report_misuse("%s: %p is no descriptor of type %d", function, handle, of);
  return nullptr;
}

size_t bytes_of(int type) {
  switch (type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
  case CUDNN_TYPE_BOOLEAN: return 1;
  }
  return 4;
}

// needed returns the attributes that a descriptor must have.
std::vector<int> needed(int of) {
  switch (of) {
  case 17: return {900, 901, 902, 903, 906};
  case 1: return {100, 101, 102, 103, 104, 105, 106};
  case 10: return {700, 702, 703, 704, 705};
  case 12: return {706, 708, 709, 710, 711};
  case 11: return {712, 714, 715, 716, 717};
  case 15: return {800, 801};
  case 4: return {200, 201};
  case 2: return {1300, 1301};
  case 3: return {300};
  case 7: return {600, 601};
  case 5: return {400, 401};
  case 16: return {1000, 1001};
  }
  return {};
}

const Values *values(const Node *n, int name) {
  auto at = n->set.find(name);
  return at == n->set.end() ? nullptr : &at->second;
}

uint64_t first(const Node *n, int name) {
  const Values *v = values(n, name);
  return v && !v->all.empty() ? v->all[0] : 0;
}

Node *follow(const Node *n, int name, int of, const char *function) {
  return n ? find((void *)first(n, name), of, function) : nullptr;
}

// Job is what a plan computes.
struct Job {
  Window window;
  Direction direction;
  uint64_t ids[3]; // of x, w, y
  size_t alignment;
  float alpha, beta;
};

float as_float(uint64_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

// packed reports whether a tensor of dimensions n, c, h, w is stored as NHWC without gaps.
bool packed(const Node *t) {
  const Values *d = values(t, 902), *s = values(t, 903);
  return d->all.size() == 4 && s->all.size() == 4 && s->all[1] == 1 && s->all[3] == d->all[1] &&
         s->all[2] == d->all[1] * d->all[3] && s->all[0] == d->all[1] * d->all[3] * d->all[2];
}

bool job_of(const Node *graph, Job *j) {
  const char *function = "a convolution of the graph API";
  Node *op = follow(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0, function);
  if (!op || op->of < 10 || op->of > 12) return false;
  const int base = op->of == 10 ? 700 : op->of == 12 ? 706 : 712;
  Node *conv = follow(op, base + 2, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, function);
  Node *w = follow(op, base + 3, CUDNN_BACKEND_TENSOR_DESCRIPTOR, function),
       *x = follow(op, base + 4, CUDNN_BACKEND_TENSOR_DESCRIPTOR, function),
       *y = follow(op, base + 5, CUDNN_BACKEND_TENSOR_DESCRIPTOR, function);
  if (!conv || !w || !x || !y || !packed(w) || !packed(x) || !packed(y)) return false;
  auto dim = [](const Node *t, int i) { return (int)values(t, 902)->all[i]; };
  auto pair = [&](int name, int i) { return (int)values(conv, name)->all[i]; };
  const int type = numbers_of((int)first(x, 901));
  j->window = {dim(x, 0),
               dim(x, 2),
               dim(x, 3),
               dim(x, 1),
               dim(w, 0),
               dim(w, 2),
               dim(w, 3),
               dim(y, 2),
               dim(y, 3),
               {pair(105, 0), pair(105, 1)},
               {pair(103, 0), pair(103, 1)},
               type,
               false};
  j->direction = op->of == 10 ? forward : op->of == 12 ? grad_x : grad_w;
  const Node *all[3] = {x, w, y};
  j->alignment = 1;
  for (int i = 0; i < 3; i++) {
    j->ids[i] = first(all[i], 906);
    if (first(all[i], 900) > j->alignment) j->alignment = first(all[i], 900);
  }
  j->alpha = as_float(first(op, base)), j->beta = as_float(first(op, base + 1));
  return type >= 0 && dim(x, 1) == dim(w, 1) && dim(y, 1) == dim(w, 0) && first(x, 901) == first(w, 901) &&
         first(x, 901) == first(y, 901);
}

// fill completes descriptors that the caller created.
cudnnStatus_t fill(void **given, int64_t asked, int64_t *got, int of, const std::vector<std::map<int, Values>> &made) {
  *got = 0;
  for (const auto &m : made) {
    if (*got == asked) break;
    Node *n = find(given[*got], of, "cudnnBackendGetAttribute");
    if (!n || n->complete) return CUDNN_STATUS_BAD_PARAM;
    n->set = m, n->complete = true;
    ++*got;
  }
  return CUDNN_STATUS_SUCCESS;
}

Values one(int type, uint64_t v) { return {type, {v}}; }

std::map<int, Values> engine(uint64_t graph, uint64_t index) {
  return {{CUDNN_ATTR_ENGINE_OPERATION_GRAPH, one(15, graph)}, {CUDNN_ATTR_ENGINE_GLOBAL_INDEX, one(3, index)}};
}

// offers returns the recommended configurations. They have no engine descriptors of their own, but
// the two attributes of an engine.
std::vector<std::map<int, Values>> offers(uint64_t graph) { return {engine(graph, 12), engine(graph, 11)}; }

// engine_of returns the node with the graph and index of a configuration's engine, whether a
// heuristic or the caller made it.
const Node *engine_of(const Node *config) {
  return values(config, CUDNN_ATTR_ENGINECFG_ENGINE)
             ? follow(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "cuDNN")
             : config;
}

template <class T> cudnnStatus_t give(const std::vector<T> &all, int64_t asked, int64_t *got, void *out) {
  *got = (int64_t)all.size() < asked ? (int64_t)all.size() : asked;
  memcpy(out, all.data(), *got * sizeof(T));
  return CUDNN_STATUS_SUCCESS;
}

bool valid_plan(const Node *n) {
  const Node *config = follow(n, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "a plan"),
             *e = config ? engine_of(config) : nullptr;
  return e && (first(e, 1301) == 11 || first(e, 1301) == 12);
}

} // namespace

#define ENTER_LIBRARY(function, context)                                                                               \
  LibraryLock held;                                                                                                    \
  if (int requested = enter(#function, context)) return (cudnnStatus_t)requested

DNN cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t of, cudnnBackendDescriptor_t *out) {
  ENTER_LIBRARY(cudnnBackendCreateDescriptor, false);
  if (!out || needed(of).empty()) return CUDNN_STATUS_NOT_SUPPORTED;
  static uintptr_t last = 0x30000;
  *out = (cudnnBackendDescriptor_t)(last += 64);
  nodes[*out].of = of;
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  ENTER_LIBRARY(cudnnBackendDestroyDescriptor, false);
  return find(d, 0, "cudnnBackendDestroyDescriptor") && nodes.erase(d) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

DNN cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t n, const void *all) {
  ENTER_LIBRARY(cudnnBackendSetAttribute, false);
  Node *x = find(d, 0, "cudnnBackendSetAttribute");
  if (!x || x->complete || n < 1 || !all) return CUDNN_STATUS_BAD_PARAM;
  Values v{type, std::vector<uint64_t>(n)};
  for (int64_t i = 0; i < n; i++) memcpy(&v.all[i], (const char *)all + i * bytes_of(type), bytes_of(type));
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (uint64_t other : v.all) {
      Node *o = find((void *)other, 0, "cudnnBackendSetAttribute");
      if (!o || !o->complete) return CUDNN_STATUS_BAD_PARAM;
    }
  x->set[name] = v;
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  ENTER_LIBRARY(cudnnBackendFinalize, false);
  Node *x = find(d, 0, "cudnnBackendFinalize");
  if (!x || x->complete) return CUDNN_STATUS_BAD_PARAM;
  for (int name : needed(x->of))
    if (!values(x, name)) {
      report_misuse("cudnnBackendFinalize: a descriptor of type %d lacks attribute %d", x->of, name);
      return CUDNN_STATUS_BAD_PARAM;
    }
  Job j;
  if (x->of == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !job_of(x, &j)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (x->of == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && !valid_plan(x)) return CUDNN_STATUS_NOT_SUPPORTED;
  x->complete = true;
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t asked, int64_t *got, void *out) {
  ENTER_LIBRARY(cudnnBackendGetAttribute, false);
  Node *x = find(d, 0, "cudnnBackendGetAttribute");
  if (!x || !x->complete || asked < 1 || !got || !out || bytes_of(type) == 0) return CUDNN_STATUS_BAD_PARAM;
  const bool is_11 = x->of == CUDNN_BACKEND_ENGINE_DESCRIPTOR && first(x, 1301) == 11;
  switch ((int)name) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    return fill((void **)out, asked, got, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                offers(first(x, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)));
  case CUDNN_ATTR_ENGINECFG_ENGINE: {
    const Node *e = engine_of(x);
    return e ? fill((void **)out, asked, got, CUDNN_BACKEND_ENGINE_DESCRIPTOR, {engine(first(e, 1300), first(e, 1301))})
             : CUDNN_STATUS_BAD_PARAM;
  }
  case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
    if (first(engine_of(x), 1301) == 12)
      return fill((void **)out, asked, got, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, {});
    return fill((void **)out, asked, got, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                {{{600, one(CUDNN_TYPE_KNOB_TYPE, 3)}, {601, one(CUDNN_TYPE_INT64, 2)}}});
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    return is_11 ? give<int>({0}, asked, got, out) : give<int>({4}, asked, got, out);
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE: return give<int>({}, asked, got, out);
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
    const Node *config = follow(x, 401, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "cuDNN");
    return give<int64_t>({first(engine_of(config), 1301) == 11 ? (int64_t)workspace_of_11 : 0}, asked, got, out);
  }
  }
  const Values *v = values(x, name);
  if (!v || v->type != (int)type) return CUDNN_STATUS_BAD_PARAM;
  *got = (int64_t)v->all.size() < asked ? (int64_t)v->all.size() : asked;
  for (int64_t i = 0; i < *got; i++) memcpy((char *)out + i * bytes_of(type), &v->all[i], bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}

DNN cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  ENTER_LIBRARY(cudnnBackendExecute, true);
  const char *function = "cudnnBackendExecute";
  bool known = false;
  void *stream = stream_of(h, &known);
  Node *p = find(plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, function),
       *at = find(pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, function);
  if (!known || !p || !at || !p->complete || !at->complete || (cudnnHandle_t)first(p, 400) != h)
    return CUDNN_STATUS_BAD_PARAM;
  const Node *config = follow(p, 401, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, function),
             *e = config ? engine_of(config) : nullptr;
  Node *graph = follow(e, 1300, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, function);
  Job j;
  if (!graph || !job_of(graph, &j)) return CUDNN_STATUS_BAD_PARAM;
  const bool is_11 = first(e, 1301) == 11;
  const Values *ids = values(at, 1000), *pointers = values(at, 1001);
  void *where[3] = {};
  for (size_t i = 0; i < ids->all.size() && i < pointers->all.size(); i++)
    for (int k = 0; k < 3; k++)
      if (ids->all[i] == j.ids[k]) where[k] = (void *)pointers->all[i];
  void *workspace = (void *)first(at, 1003);
  if (is_11 && !reachable(function, "the workspace", workspace, workspace_of_11, 16)) return CUDNN_STATUS_BAD_PARAM;
  j.window.rounded = is_11;
  const size_t sizes[3] = {image_size(j.window), filter_size(j.window), result_size(j.window)};
  const char *names[3] = {"x", "w", "y"};
  for (int k = 0; k < 3; k++)
    if (!reachable(function, names[k], where[k], sizes[k] * number_bytes(j.window.type), j.alignment))
      return CUDNN_STATUS_BAD_PARAM;
  void *x = where[0], *w = where[1], *y = where[2];
  int failed = enqueue(stream, "a plan of cuDNN", [=] {
    convolve(j.window, j.direction, x, w, y, j.alpha, j.beta);
    if (is_11) memset(workspace, 0xff, workspace_of_11);
  });
  return failed ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
