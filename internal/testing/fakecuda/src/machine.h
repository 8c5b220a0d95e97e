// The machine behind the fake libcuda.so.1: GPUs in the memory of the process. One lock guards all
// of it.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include "abi.h"
#include "fakedriver.h"

namespace fakecuda {

struct Capture;
struct Stream;

// Work is one operation of a stream, or a wait for a point in another stream.
struct Work {
  const char *name;
  std::function<void()> run;
  Stream *wait_for = nullptr;
  uint64_t wait_until = 0;
};

struct Context {
  int device;
  int retained = 0;
  std::set<Context *> accessible; // contexts whose memory it can access
};

struct Stream {
  Context *context;
  std::deque<Work> queue;
  uint64_t submitted = 0, done = 0; // numbers of operations so far
  Capture *capture = nullptr;
};

struct Event {
  Context *context;
  bool timed;
  Stream *stream = nullptr;   // stream that it was recorded on; null if not recorded
  uint64_t at = 0;            // number of operations before it
  Capture *capture = nullptr; // capture that it was recorded in
  double reached = 0;         // host time in s when it was observed to complete
};

// Capture is a graph under construction.
struct Capture {
  Stream *origin;
  CUstreamCaptureMode mode;
  long thread;
  bool invalidated = false;
  std::vector<Work> nodes;
  std::map<Stream *, bool> joined; // other streams of the capture; true once joined to the origin
};

struct Graph {
  std::vector<Work> nodes;
};

struct Module {
  Context *context;
  void *library;
};

struct Function {
  Module *module;
  std::string name;
  const char *kinds; // parameter kinds as letters, as in fspda/cuda/kernels
  const char *(*launch)(const unsigned *geometry, uint64_t shared, void **args);
  // cooperative launch; may be null
  const char *(*cooperative)(const unsigned *geometry, uint64_t shared, void **args);
  unsigned max_threads; // 0: no launch bound
  unsigned max_shared = 48 << 10;
};

// Allocation is an allocation of device or pinned memory. Its addresses are never used again in the
// process.
struct Allocation {
  uintptr_t at;
  size_t size;
  char *map;
  size_t mapped;
  Context *context;
  bool host, freed;
};

// Registry holds the live and the destroyed objects of a kind. Handles are never reused.
template <class T> struct Registry {
  const char *what;
  std::set<T *> live, dead;
  T *add(T *t) {
    live.insert(t);
    return t;
  }
  // find returns the object of a handle, or null, which is reported as a misuse.
  T *find(const void *handle, const char *function) {
    T *t = (T *)handle;
    if (live.count(t)) return t;
    report_misuse("%s: %p is no %s%s", function, handle, what, dead.count(t) ? " any more" : "");
    return nullptr;
  }
  void remove(T *t) {
    live.erase(t);
    dead.insert(t);
  }
};

struct Machine {
  std::recursive_mutex lock;
  int gpus, capability, version;
  size_t memory;
  bool has_peers;
  bool initialised = false;
  int lost = 0;                    // the result that all calls return
  std::vector<Context *> contexts; // the primary context of each GPU
  std::vector<size_t> used;        // bytes in use per GPU
  Registry<Stream> streams{"stream"};
  Registry<Event> events{"event"};
  Registry<Graph> graphs{"graph"}, execs{"executable graph"};
  Registry<Module> modules{"module"};
  Registry<Function> functions{"function"};
  std::map<uintptr_t, Allocation> allocations; // by address
  std::set<Capture *> captures;
  std::map<std::string, long> calls;
  uint64_t random;
  Machine();
};

Machine &machine();

// current is the current context of the calling thread.
extern thread_local Context *current;

long thread_id();
unsigned random_below(unsigned sides); // random number in 0..sides-1, from the seed

// no_capture: a context, and no active capture of the calling thread
enum Needs { nothing, context, no_capture };

// Call is created at the start of every function. It takes the lock, counts the call, and checks
// for requested faults and for what the function needs.
struct Call {
  std::unique_lock<std::recursive_mutex> lock;
  CUresult result;
  Call(const char *function, Needs needs);
};

#define ENTER(function, needs)                                                                                         \
  fakecuda::Call call(#function, fakecuda::needs);                                                                     \
  if (call.result != CUDA_SUCCESS) return call.result

// REQUIRE returns a result unless the condition holds.
#define REQUIRE(condition, fallback)                                                                                   \
  do                                                                                                                   \
    if (!(condition)) return fallback;                                                                                 \
  while (0)

// find_allocation returns the allocation that contains an address, including freed ones, or null.
Allocation *find_allocation(uintptr_t at);
// inside reports whether bytes lie in one allocation that is not freed.
bool inside(uintptr_t at, size_t bytes, bool *host);
CUresult allocate(size_t bytes, bool host, uintptr_t *out);
CUresult release(uintptr_t at, bool host);
void check_guards(const Allocation &a, const char *when);

CUresult push(Stream *s, Work w);
void finish(Stream *s, uint64_t until);
void finish_all(Context *c); // null: of all contexts
bool progress(Stream *s, uint64_t until);
void lose(int result);
CUresult now(); // result of a call that waited for work: success, or the loss

// guarded runs work that accesses device memory. It returns false if that failed, which loses the
// device.
bool guarded(const char *name, const std::function<void()> &run);
std::string describe_address(uintptr_t at);

void report_leaks(Context *c);
void write_report(const std::string &line);

} // namespace fakecuda
