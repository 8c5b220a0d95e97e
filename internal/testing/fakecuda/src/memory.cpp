// Memory. An allocation ends at the end of a page that is followed by an inaccessible page, so that
// accesses beyond it fault at once; the bytes around it are checked when it is freed. New memory
// holds NaN. Freed memory is inaccessible and never allocated again.
#include <string.h>
#include <sys/mman.h>
#include "machine.h"

namespace fakecuda {

constexpr size_t page = 4096, alignment = 256;
constexpr unsigned char guard_byte = 0xa5, fresh_byte = 0xff;

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

CUresult allocate(size_t bytes, bool host, uintptr_t *out) {
  Machine &m = machine();
  REQUIRE(bytes, CUDA_ERROR_INVALID_VALUE);
  size_t &used = m.used[current->device];
  REQUIRE(host || (bytes <= m.memory && used + bytes <= m.memory), CUDA_ERROR_OUT_OF_MEMORY);
  size_t inner = round_up(round_up(bytes, alignment), page), mapped = inner + 2 * page;
  char *map = (char *)mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(map != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(!mprotect(map + page, inner, PROT_READ | PROT_WRITE), CUDA_ERROR_OUT_OF_MEMORY);
  uintptr_t at = (uintptr_t)map + page + inner - round_up(bytes, alignment);
  memset(map + page, guard_byte, inner);
  memset((void *)at, fresh_byte, bytes);
  if (!host) used += bytes;
  m.allocations[at] = Allocation{at, bytes, map, mapped, current, host, false};
  *out = at;
  return CUDA_SUCCESS;
}

// check_guards checks the bytes before and after an allocation.
void check_guards(const Allocation &a, const char *when) {
  const char *inner = a.map + page, *end = a.map + a.mapped - page;
  for (const char *p = inner; p < end; p++) {
    if (p == (const char *)a.at) p += a.size;
    if (p < end && (unsigned char)*p != guard_byte) {
      report_misuse("%s: byte %ld of an allocation of %zu bytes was written", when, (long)(p - (const char *)a.at),
                    a.size);
      return;
    }
  }
}

CUresult release(uintptr_t at, bool host) {
  Machine &m = machine();
  auto found = m.allocations.find(at);
  if (found == m.allocations.end() || found->second.freed || found->second.host != host) {
    report_misuse("freeing %s: %s", host ? "pinned memory" : "device memory", describe_address(at).c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation &a = found->second;
  check_guards(a, "freeing memory");
  if (!host) m.used[a.context->device] -= a.size;
  a.freed = true;
  mprotect(a.map, a.mapped, PROT_NONE);
  madvise(a.map, a.mapped, MADV_DONTNEED);
  return CUDA_SUCCESS;
}

Allocation *find_allocation(uintptr_t at) {
  auto &all = machine().allocations;
  auto after = all.upper_bound(at);
  if (after == all.begin()) return nullptr;
  Allocation &a = std::prev(after)->second;
  return at < (uintptr_t)a.map + a.mapped ? &a : nullptr;
}

bool inside(uintptr_t at, size_t bytes, bool *host) {
  Allocation *a = find_allocation(at);
  if (!a || a->freed || at - a->at > a->size || bytes > a->size - (at - a->at)) return false;
  *host = a->host;
  return true;
}

std::string describe_address(uintptr_t at) {
  char text[200];
  Allocation *a = find_allocation(at);
  if (!a)
    snprintf(text, sizeof text, "%#zx is in no allocation", (size_t)at);
  else
    snprintf(text, sizeof text, "%#zx is at byte %ld of %zu bytes of %s memory%s", (size_t)at, (long)(at - a->at),
             a->size, a->host ? "pinned" : "device", a->freed ? " that was freed" : "");
  return text;
}

// can_access reports whether the current context may access an allocation.
static bool can_access(const Allocation &a) {
  return a.host || a.context == current || current->accessible.count(a.context);
}

bool reachable(const char *function, const char *what, const void *at, size_t bytes, size_t alignment) {
  std::lock_guard<std::recursive_mutex> held(machine().lock);
  bool host;
  if (!inside((uintptr_t)at, bytes, &host)) {
    report_misuse("%s: %zu bytes of %s: %s", function, bytes, what, describe_address((uintptr_t)at).c_str());
    return false;
  }
  if (current && !can_access(*find_allocation((uintptr_t)at))) {
    report_misuse("%s: %s is on a GPU that this one cannot access", function, what);
    return false;
  }
  if ((uintptr_t)at % alignment) {
    report_misuse("%s: %s is at %p, want a multiple of %zu", function, what, at, alignment);
    return false;
  }
  return true;
}

} // namespace fakecuda

using namespace fakecuda;

API cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
  ENTER(cuMemAlloc_v2, no_capture);
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  uintptr_t at = 0;
  CUresult r = allocate(bytes, false, &at);
  *out = at;
  return r;
}

API cuMemFree_v2(CUdeviceptr at) {
  ENTER(cuMemFree_v2, no_capture);
  finish_all(current);
  REQUIRE(at && !machine().lost, now());
  return release(at, false);
}

API cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  ENTER(cuMemGetInfo_v2, context);
  REQUIRE(free_bytes && total, CUDA_ERROR_INVALID_VALUE);
  *total = machine().memory;
  *free_bytes = *total - machine().used[current->device];
  return CUDA_SUCCESS;
}

API cuMemHostAlloc(void **out, size_t bytes, unsigned int flags) {
  ENTER(cuMemHostAlloc, no_capture);
  REQUIRE(out && flags <= 7, CUDA_ERROR_INVALID_VALUE);
  uintptr_t at = 0;
  CUresult r = allocate(bytes, true, &at);
  *out = (void *)at;
  return r;
}

API cuMemFreeHost(void *at) {
  ENTER(cuMemFreeHost, no_capture);
  finish_all(nullptr);
  REQUIRE(!machine().lost, now());
  return release((uintptr_t)at, true);
}

// on_stream returns a stream of the current context, or null.
static Stream *on_stream(const char *function, CUstream handle) {
  Stream *s = machine().streams.find(handle, function);
  if (s && s->context != current) {
    report_misuse("%s: the stream belongs to another context", function);
    return nullptr;
  }
  return s;
}

// is_allocated reports whether bytes lie in an allocation of the kind.
static bool is_allocated(const char *function, const char *what, uintptr_t at, size_t bytes, bool host) {
  bool is_host;
  if (inside(at, bytes, &is_host) && is_host == host) return true;
  report_misuse("%s: %zu bytes of %s, want %s memory: %s", function, bytes, what, host ? "pinned" : "device",
                describe_address(at).c_str());
  return false;
}

// copy enqueues a copy. Both ranges are checked now and when it runs.
static CUresult copy(const char *function, CUstream stream, uintptr_t to, bool to_host, uintptr_t from, bool from_host,
                     size_t bytes) {
  Stream *s = on_stream(function, stream);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(bytes, CUDA_SUCCESS);
  REQUIRE(is_allocated(function, "what is written", to, bytes, to_host) &&
              is_allocated(function, "what is read", from, bytes, from_host),
          CUDA_ERROR_INVALID_VALUE);
  return push(s, {function, [=] { memmove((void *)to, (const void *)from, bytes); }});
}

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
  ENTER(cuMemcpyHtoDAsync_v2, context);
  return copy("cuMemcpyHtoDAsync_v2", s, to, false, (uintptr_t)from, true, bytes);
}

API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
  ENTER(cuMemcpyDtoHAsync_v2, context);
  return copy("cuMemcpyDtoHAsync_v2", s, (uintptr_t)to, true, from, false, bytes);
}

API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s) {
  ENTER(cuMemcpyDtoDAsync_v2, context);
  return copy("cuMemcpyDtoDAsync_v2", s, to, false, from, false, bytes);
}

API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here, size_t bytes, CUstream s) {
  ENTER(cuMemcpyPeerAsync, context);
  Allocation *a = find_allocation(to), *b = find_allocation(from);
  if (!a || !b || a->context != (Context *)there || b->context != (Context *)here) {
    report_misuse("cuMemcpyPeerAsync: memory of another context than the one given");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return copy("cuMemcpyPeerAsync", s, to, false, from, false, bytes);
}

template <class T> static CUresult fill(const char *function, CUdeviceptr to, T value, size_t n, CUstream stream) {
  Stream *s = on_stream(function, stream);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(n, CUDA_SUCCESS);
  REQUIRE(to % sizeof(T) == 0 && is_allocated(function, "what is written", to, n * sizeof(T), false),
          CUDA_ERROR_INVALID_VALUE);
  return push(s, {function, [=] {
                    for (size_t i = 0; i < n; i++) ((T *)to)[i] = value;
                  }});
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream s) {
  ENTER(cuMemsetD8Async, context);
  return fill("cuMemsetD8Async", to, value, n, s);
}

API cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream s) {
  ENTER(cuMemsetD32Async, context);
  return fill("cuMemsetD32Async", to, value, n, s);
}
