// The machine that libcuda.so.1 here is the driver of: GPUs in the memory of the process. One lock guards all of it.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include "abi.h"
#include "libraries.h"

namespace fakecuda {

struct Capture;
struct Stream;

// Work is one thing that a stream does, or the wait for a place in another.
struct Work {
  const char *name;
  std::function<void()> run;
  Stream *wait_for = nullptr;
  uint64_t wait_until = 0;
};

struct Context {
  int device;
  int retained = 0;
  std::set<Context *> reaches; // the memory of
};

struct Stream {
  Context *context;
  std::deque<Work> queue;
  uint64_t sent = 0, done = 0; // works so far
  Capture *capture = nullptr;
};

struct Event {
  Context *context;
  bool timed;
  Stream *stream = nullptr; // where it was recorded; null: nowhere
  uint64_t at = 0;          // works before it
  Capture *capture = nullptr; // it was recorded in
  double reached = 0;         // s, by the host's clock, when it was seen to be
};

// Capture is a graph in the making.
struct Capture {
  Stream *origin;
  CUstreamCaptureMode mode;
  long thread;
  bool broken = false;
  std::vector<Work> nodes;
  std::map<Stream *, bool> joined; // other streams that belong to it: back in the origin
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
  const char *kinds; // of its parameters, as letters: see fspda/cuda/kernels
  const char *(*launch)(const unsigned *geometry, uint64_t shared, void **args);
  const char *(*together)(const unsigned *geometry, uint64_t shared, void **args); // of blocks that wait for each other; may be null
  unsigned most_threads; // 0: not said
  unsigned most_shared = 48 << 10;
};

// Allocation is a piece of device memory or of pinned memory. Its addresses are used once in the life of the process.
struct Allocation {
  uintptr_t at;
  size_t size;
  char *map;
  size_t mapped;
  Context *context;
  bool host, freed;
};

// Registry knows handles that live, and those that lived: a handle is never used again.
template <class T> struct Registry {
  const char *what;
  std::set<T *> live, dead;
  T *add(T *t) {
    live.insert(t);
    return t;
  }
  // find is the object of a handle, or null. Which is written down, if the caller should know better.
  T *find(const void *handle, const char *function) {
    T *t = (T *)handle;
    if (live.count(t)) return t;
    complain("%s: %p is no %s%s", function, handle, what, dead.count(t) ? " any more" : "");
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
  int lost = 0; // the result that all calls give
  std::vector<Context *> contexts; // the primary one of each GPU
  std::vector<size_t> used;        // bytes of each GPU
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

// current is the context of the calling thread.
extern thread_local Context *current;

long thread_id();
unsigned dice(unsigned sides); // 0..sides-1, by the seed

enum Needs { nothing, context, no_capture }; // no_capture: a context, and that the thread captures no stream

// Call is the beginning of every function: the lock, the count, faults that a test wants, and what a function needs.
struct Call {
  std::unique_lock<std::recursive_mutex> lock;
  CUresult result;
  Call(const char *function, Needs needs);
};

#define ENTER(function, needs)                                                                                                            \
  fakecuda::Call call(#function, fakecuda::needs);                                                                                          \
  if (call.result != CUDA_SUCCESS) return call.result

// REQUIRE returns a result unless a condition holds.
#define REQUIRE(condition, otherwise)                                                                                                     \
  do                                                                                                                                      \
    if (!(condition)) return otherwise;                                                                                                   \
  while (0)

// find_allocation is the piece that an address lies in, freed ones too, or null.
Allocation *find_allocation(uintptr_t at);
// inside tells whether bytes lie in one piece that is not freed.
bool inside(uintptr_t at, size_t bytes, bool *host);
CUresult allocate(size_t bytes, bool host, uintptr_t *out);
CUresult release(uintptr_t at, bool host);
void check_guards(const Allocation &a, const char *when);

CUresult push(Stream *s, Work w);
void finish(Stream *s, uint64_t until);
void finish_all(Context *c); // null: of all
bool progress(Stream *s, uint64_t until);
void lose(int result);
CUresult now(); // what a call returns that waited for work: success, or the loss

// guarded runs work that touches device memory. It is false where that failed, which loses the device.
bool guarded(const char *name, const std::function<void()> &run);
std::string describe_address(uintptr_t at);

void report_leaks(Context *c);
void write_report(const std::string &line);

} // namespace fakecuda
