// Stream capture and graphs. Captured work runs in the order in which it was captured, which
// satisfies all its dependencies.
#include "machine.h"

using namespace fakecuda;

#define STREAM(s, function) Stream *s = machine().streams.find(handle, #function)

API cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
  ENTER(cuStreamBeginCapture_v2, context);
  STREAM(s, cuStreamBeginCapture_v2);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(!s->capture && (int)mode >= 0 && (int)mode <= 2, CUDA_ERROR_INVALID_VALUE);
  s->capture = new Capture{s, mode, thread_id()};
  machine().captures.insert(s->capture);
  return CUDA_SUCCESS;
}

API cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *out) {
  ENTER(cuStreamIsCapturing, context);
  STREAM(s, cuStreamIsCapturing);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = (CUstreamCaptureStatus)(!s->capture ? 0 : s->capture->invalidated ? 2 : 1);
  return CUDA_SUCCESS;
}

// end detaches a capture from its streams.
static void end(Capture *c) {
  c->origin->capture = nullptr;
  for (auto &other : c->joined) other.first->capture = nullptr;
  machine().captures.erase(c);
}

API cuStreamEndCapture(CUstream handle, CUgraph *out) {
  ENTER(cuStreamEndCapture, context);
  STREAM(s, cuStreamEndCapture);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = nullptr;
  Capture *c = s->capture;
  REQUIRE(c, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(c->origin == s, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  REQUIRE(c->mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->thread == thread_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  end(c);
  REQUIRE(!c->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  for (auto &other : c->joined) REQUIRE(other.second, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  *out = (CUgraph)machine().graphs.add(new Graph{c->nodes});
  return CUDA_SUCCESS;
}

API cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags) {
  ENTER(cuGraphInstantiateWithFlags, context);
  Graph *g = machine().graphs.find(graph, "cuGraphInstantiateWithFlags");
  REQUIRE(out && g && flags <= 15, CUDA_ERROR_INVALID_VALUE);
  *out = (CUgraphExec)machine().execs.add(new Graph{g->nodes});
  return CUDA_SUCCESS;
}

API cuGraphDestroy(CUgraph graph) {
  ENTER(cuGraphDestroy, nothing);
  Graph *g = machine().graphs.find(graph, "cuGraphDestroy");
  REQUIRE(g, CUDA_ERROR_INVALID_VALUE);
  machine().graphs.remove(g);
  return CUDA_SUCCESS;
}

API cuGraphExecDestroy(CUgraphExec exec) {
  ENTER(cuGraphExecDestroy, nothing);
  Graph *g = machine().execs.find(exec, "cuGraphExecDestroy");
  REQUIRE(g, CUDA_ERROR_INVALID_VALUE);
  machine().execs.remove(g);
  return CUDA_SUCCESS;
}

API cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  ENTER(cuGraphLaunch, context);
  Graph *g = machine().execs.find(exec, "cuGraphLaunch");
  STREAM(s, cuGraphLaunch);
  REQUIRE(g, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(s && s->context == current, CUDA_ERROR_INVALID_HANDLE);
  for (const Work &w : g->nodes) {
    CUresult r = push(s, w);
    if (r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

API cuGraphUpload(CUgraphExec exec, CUstream handle) {
  ENTER(cuGraphUpload, context);
  STREAM(s, cuGraphUpload);
  REQUIRE(machine().execs.find(exec, "cuGraphUpload"), CUDA_ERROR_INVALID_VALUE);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  return CUDA_SUCCESS;
}
