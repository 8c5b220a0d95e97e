// Modules and launches. An image comes from the fake NVRTC and names a library of the same kernels
// for the host.
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "image.h"
#include "machine.h"

namespace fakecuda {

// Jump target for leaving a kernel after an invalid access.
static thread_local sigjmp_buf escape;
static thread_local volatile bool in_kernel;
static thread_local uintptr_t touched;
static struct sigaction before[2];

static void on_fault(int signal, siginfo_t *info, void *where) {
  if (in_kernel) {
    touched = (uintptr_t)info->si_addr;
    siglongjmp(escape, 1);
  }
  struct sigaction &b = before[signal == SIGBUS]; // a fault of the program itself: its own handler
  if (b.sa_flags & SA_SIGINFO)
    b.sa_sigaction(signal, info, where);
  else
    ::signal(signal, SIG_DFL);
}

static void catch_faults(bool yes) {
  struct sigaction mine = {};
  mine.sa_sigaction = on_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&mine.sa_mask);
  const int signals[] = {SIGSEGV, SIGBUS};
  for (int i = 0; i < 2; i++)
    yes ? sigaction(signals[i], &mine, &before[i]) : sigaction(signals[i], &before[i], nullptr);
}

bool guarded(const char *name, const std::function<void()> &run) {
  catch_faults(true);
  bool well = sigsetjmp(escape, 1) == 0;
  if (well) {
    in_kernel = true;
    run();
  }
  in_kernel = false;
  catch_faults(false);
  if (!well) {
    report_misuse("%s makes an invalid access: %s", name, describe_address(touched).c_str());
    lose(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  return well;
}

static size_t bytes_of(char kind) { return kind == 'i' || kind == 'u' || kind == 'f' ? 4 : 8; }

// check_pointers checks the addresses passed to a kernel: null, or memory that the context can
// access.
static bool check_pointers(const Function &f, const std::vector<uint64_t> &args) {
  for (size_t i = 0; i < args.size(); i++) {
    if (f.kinds[i] == 'p' && args[i] && !reachable(f.name.c_str(), "a parameter", (void *)args[i], 1, 1)) return false;
  }
  return true;
}

static bool geometry_fits(const Function &f, const unsigned *g, unsigned shared) {
  uint64_t threads = (uint64_t)g[3] * g[4] * g[5];
  const char *why = nullptr;
  if (!g[0] || !g[1] || !g[2] || g[0] > 0x7fffffff || g[1] > 65535 || g[2] > 65535) why = "the grid";
  if (!threads || threads > 1024 || g[3] > 1024 || g[4] > 1024 || g[5] > 64) why = "the block";
  if (f.max_threads && threads > f.max_threads) why = "the block, larger than the kernel's launch bounds,";
  if (shared > f.max_shared) why = "dynamic shared memory";
  if (why)
    report_misuse("launching %s: %s is out of range: grid %u %u %u, block %u %u %u, %u bytes shared", f.name.c_str(),
                  why, g[0], g[1], g[2], g[3], g[4], g[5], shared);
  return !why;
}

// run_kernel runs a launch on its stream.
static void run_kernel(const Function *f, bool cooperative, const unsigned *geometry, unsigned shared,
                       std::vector<uint64_t> &args) {
  std::vector<void *> slots;
  for (uint64_t &a : args) slots.push_back(&a);
  if (const char *failure = (cooperative ? f->cooperative : f->launch)(geometry, shared, slots.data())) {
    report_misuse("%s: %s", f->name.c_str(), failure);
    lose(CUDA_ERROR_LAUNCH_FAILED);
  }
}

// fits_at_once reports whether all blocks fit on the GPU at the same time: one per multiprocessor.
static bool fits_at_once(const unsigned *g) {
  int most = 0;
  cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, current->device);
  return (uint64_t)g[0] * g[1] * g[2] <= (uint64_t)most;
}

static CUresult launch(const char *function, bool cooperative, CUfunction handle, std::vector<unsigned> g,
                       unsigned shared, CUstream stream, void **params) {
  Function *f = machine().functions.find(handle, function);
  Stream *s = machine().streams.find(stream, function);
  REQUIRE(f && s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(s->context == current && f->module->context == current, CUDA_ERROR_INVALID_HANDLE);
  size_t n = strlen(f->kinds);
  REQUIRE(geometry_fits(*f, g.data(), shared) && (params || !n), CUDA_ERROR_INVALID_VALUE);
  REQUIRE(!cooperative || f->cooperative, CUDA_ERROR_NOT_SUPPORTED);
  REQUIRE(!cooperative || fits_at_once(g.data()), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  // a kernel reads as many bytes as its parameter has
  std::vector<uint64_t> args(n, 0xa5a5a5a5a5a5a5a5ull);
  for (size_t i = 0; i < n; i++) {
    REQUIRE(params[i], CUDA_ERROR_INVALID_VALUE);
    memcpy(&args[i], params[i], bytes_of(f->kinds[i]));
  }
  REQUIRE(check_pointers(*f, args), CUDA_ERROR_INVALID_VALUE);
  return push(s, {f->name.c_str(), [=]() mutable { run_kernel(f, cooperative, g.data(), shared, args); }});
}

} // namespace fakecuda

using namespace fakecuda;

API cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n, CUjit_option *, void **) {
  ENTER(cuModuleLoadDataEx, no_capture);
  REQUIRE(out && image && n == 0, CUDA_ERROR_INVALID_VALUE);
  const Image *i = (const Image *)image;
  REQUIRE(!memcmp(i->magic, image_magic, sizeof i->magic), CUDA_ERROR_INVALID_IMAGE);
  REQUIRE(i->arch / 10 == machine().capability / 10 && i->arch <= machine().capability, CUDA_ERROR_NO_BINARY_FOR_GPU);
  void *library = dlopen(i->library, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    report_misuse("cuModuleLoadDataEx: %s", dlerror());
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *out = (CUmodule)machine().modules.add(new Module{current, library});
  return CUDA_SUCCESS;
}

// symbol returns the library's symbol with a prefix and a name.
template <class T> static T symbol(void *library, const char *prefix, const char *name) {
  return (T)dlsym(library, (std::string(prefix) + name).c_str());
}

API cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
  ENTER(cuModuleGetFunction, context);
  REQUIRE(out && name, CUDA_ERROR_INVALID_VALUE);
  Module *m = machine().modules.find(handle, "cuModuleGetFunction");
  REQUIRE(m, CUDA_ERROR_INVALID_HANDLE);
  auto kinds = symbol<const char *(*)()>(m->library, "kinds_", name);
  auto run = symbol<const char *(*)(const unsigned *, uint64_t, void **)>(m->library, "launch_", name);
  auto cooperative = symbol<const char *(*)(const unsigned *, uint64_t, void **)>(m->library, "cooperative_", name);
  REQUIRE(kinds && run, CUDA_ERROR_NOT_FOUND);
  auto bound = symbol<unsigned (*)()>(m->library, "bound_", name);
  *out = (CUfunction)machine().functions.add(new Function{m, name, kinds(), run, cooperative, bound ? bound() : 0});
  return CUDA_SUCCESS;
}

API cuModuleUnload(CUmodule handle) {
  ENTER(cuModuleUnload, no_capture);
  Module *m = machine().modules.find(handle, "cuModuleUnload");
  REQUIRE(m, CUDA_ERROR_INVALID_HANDLE);
  finish_all(m->context);
  machine().modules.remove(m);
  for (auto f = machine().functions.live.begin(); f != machine().functions.live.end();) {
    Function *it = *f++;
    if (it->module == m) machine().functions.remove(it);
  }
  return now();
}

API cuFuncSetAttribute(CUfunction handle, CUfunction_attribute a, int value) {
  ENTER(cuFuncSetAttribute, context);
  Function *f = machine().functions.find(handle, "cuFuncSetAttribute");
  REQUIRE(f, CUDA_ERROR_INVALID_HANDLE);
  int most = 0;
  cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, current->device);
  REQUIRE(a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 && value <= most,
          CUDA_ERROR_INVALID_VALUE);
  f->max_shared = (unsigned)value;
  return CUDA_SUCCESS;
}

API cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                   unsigned int bz, unsigned int shared, CUstream s, void **params, void **extra) {
  ENTER(cuLaunchKernel, context);
  REQUIRE(!extra, CUDA_ERROR_INVALID_VALUE);
  return launch("cuLaunchKernel", false, f, {gx, gy, gz, bx, by, bz}, shared, s, params);
}

API cuLaunchCooperativeKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                              unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params) {
  ENTER(cuLaunchCooperativeKernel, context);
  return launch("cuLaunchCooperativeKernel", true, f, {gx, gy, gz, bx, by, bz}, shared, s, params);
}
