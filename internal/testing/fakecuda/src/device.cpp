// Devices, contexts and errors.
#include <stdio.h>
#include <string.h>
#include "machine.h"

using namespace fakecuda;

static bool known(CUdevice d) { return d >= 0 && d < machine().gpus; }

API cuInit(unsigned int flags) {
  ENTER(cuInit, nothing);
  REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(machine().gpus > 0, CUDA_ERROR_NO_DEVICE);
  machine().initialised = true;
  return CUDA_SUCCESS;
}

API cuDriverGetVersion(int *out) {
  ENTER(cuDriverGetVersion, nothing);
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = machine().version;
  return CUDA_SUCCESS;
}

#define NAMED(name, number) {number, #name},
static const struct {
  int result;
  const char *name;
} names[] = {RESULTS(NAMED)};

static CUresult describe(CUresult r, const char **out, bool message) {
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = nullptr;
  for (auto &n : names)
    if (n.result == (int)r) {
      *out = message ? "error of the fake driver" : n.name;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

API cuGetErrorName(CUresult r, const char **out) { return describe(r, out, false); }
API cuGetErrorString(CUresult r, const char **out) { return describe(r, out, true); }

// REQUIRE_STARTED is for functions that need cuInit but no context.
#define REQUIRE_STARTED REQUIRE(machine().initialised, CUDA_ERROR_NOT_INITIALIZED)

API cuDeviceGetCount(int *out) {
  ENTER(cuDeviceGetCount, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = machine().gpus;
  return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice *out, int ordinal) {
  ENTER(cuDeviceGet, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(known(ordinal), CUDA_ERROR_INVALID_DEVICE);
  *out = ordinal;
  return CUDA_SUCCESS;
}

API cuDeviceGetName(char *out, int length, CUdevice d) {
  ENTER(cuDeviceGetName, nothing);
  REQUIRE_STARTED;
  REQUIRE(out && length > 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(known(d), CUDA_ERROR_INVALID_DEVICE);
  snprintf(out, length, "Fake GPU");
  return CUDA_SUCCESS;
}

API cuDeviceTotalMem_v2(size_t *out, CUdevice d) {
  ENTER(cuDeviceTotalMem_v2, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(known(d), CUDA_ERROR_INVALID_DEVICE);
  *out = machine().memory;
  return CUDA_SUCCESS;
}

// max_shared returns the dynamic shared memory that a block may request, by compute capability.
static int max_shared(int capability) {
  return (capability >= 90 ? 227 : capability >= 80 ? 163 : capability >= 75 ? 64 : 96) << 10;
}

static int attribute(CUdevice_attribute a, bool *ok) {
  Machine &m = machine();
  switch (a) {
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
  case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1000000; // kHz
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return (int)setting("FSPDA_FAKECUDA_MULTIPROCESSORS", 4);
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 1000000;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 4096;
  case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 4 << 20;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return m.capability / 10;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return m.capability % 10;
  case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: return 1;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return max_shared(m.capability);
  default: *ok = false; return 0;
  }
}

API cuDeviceGetAttribute(int *out, CUdevice_attribute a, CUdevice d) {
  ENTER(cuDeviceGetAttribute, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(known(d), CUDA_ERROR_INVALID_DEVICE);
  bool ok = true;
  *out = attribute(a, &ok);
  if (!ok) report_misuse("cuDeviceGetAttribute: the fake has no attribute %d", (int)a);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuDeviceCanAccessPeer(int *out, CUdevice d, CUdevice peer) {
  ENTER(cuDeviceCanAccessPeer, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(known(d) && known(peer), CUDA_ERROR_INVALID_DEVICE);
  *out = machine().has_peers && d != peer;
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice d) {
  ENTER(cuDevicePrimaryCtxRetain, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(known(d), CUDA_ERROR_INVALID_DEVICE);
  REQUIRE(!machine().lost, now());
  machine().contexts[d]->retained++;
  *out = (CUcontext)machine().contexts[d];
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease_v2(CUdevice d) {
  ENTER(cuDevicePrimaryCtxRelease_v2, nothing);
  REQUIRE_STARTED;
  REQUIRE(known(d), CUDA_ERROR_INVALID_DEVICE);
  Context *c = machine().contexts[d];
  REQUIRE(c->retained > 0, CUDA_ERROR_INVALID_CONTEXT);
  if (--c->retained == 0) {
    finish_all(c);
    report_leaks(c);
  }
  return now();
}

static Context *context_of(CUcontext handle) {
  for (Context *c : machine().contexts)
    if (c == (Context *)handle && c->retained) return c;
  report_misuse("%p is not a retained context", (void *)handle);
  return nullptr;
}

API cuCtxSetCurrent(CUcontext handle) {
  ENTER(cuCtxSetCurrent, nothing);
  REQUIRE_STARTED;
  Context *c = handle ? context_of(handle) : nullptr;
  REQUIRE(c || !handle, CUDA_ERROR_INVALID_CONTEXT);
  current = c;
  return CUDA_SUCCESS;
}

API cuCtxGetCurrent(CUcontext *out) {
  ENTER(cuCtxGetCurrent, nothing);
  REQUIRE_STARTED;
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  *out = (CUcontext)current;
  return CUDA_SUCCESS;
}

API cuCtxSynchronize(void) {
  ENTER(cuCtxSynchronize, no_capture);
  finish_all(current);
  return now();
}

API cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  ENTER(cuCtxEnablePeerAccess, context);
  Context *c = context_of(peer);
  REQUIRE(c && c != current, CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(machine().has_peers, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  REQUIRE(current->accessible.insert(c).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  return CUDA_SUCCESS;
}
