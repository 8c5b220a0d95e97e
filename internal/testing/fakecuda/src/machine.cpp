// The machine: its settings from the environment, its calls and faults, and its report.
#include "machine.h"
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fakecuda {

thread_local Context *current;

long long setting(const char *name, long long fallback) {
  const char *v = getenv(name);
  return v && *v ? atoll(v) : fallback;
}

Machine::Machine() {
  gpus = (int)setting("FSPDA_FAKECUDA_GPUS", 1);
  capability = (int)setting("FSPDA_FAKECUDA_CAPABILITY", 90);
  version = (int)setting("FSPDA_FAKECUDA_DRIVER", 13000);
  memory = (size_t)setting("FSPDA_FAKECUDA_MEMORY", 1ll << 30);
  has_peers = setting("FSPDA_FAKECUDA_PEERS", 1) != 0;
  random = (uint64_t)setting("FSPDA_FAKECUDA_SEED", 0);
  for (int i = 0; i < gpus; i++) contexts.push_back(new Context{i});
  used.resize(gpus < 0 ? 0 : gpus);
}

Machine &machine() {
  static Machine *m = new Machine; // never destroyed, because threads may outlive main
  return *m;
}

long thread_id() { return syscall(SYS_gettid); }

unsigned random_below(unsigned sides) { // splitmix64
  uint64_t z = machine().random += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return (unsigned)((z ^ z >> 31) % sides);
}

void write_report(const std::string &line) {
  const char *path = getenv("FSPDA_FAKECUDA_REPORT");
  std::string whole = line + "\n";
  int fd = path && *path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
  if (fd < 0) fd = dup(2);
  if (write(fd, whole.data(), whole.size()) < 0) abort();
  close(fd);
}

void report_misuse(const char *format, ...) {
  char text[1000];
  va_list all;
  va_start(all, format);
  vsnprintf(text, sizeof text, format, all);
  va_end(all);
  write_report(std::string("wrong: ") + text);
}

// sticky reports whether the device is lost after a result.
static bool sticky(int result) {
  return result == 214 || result == 46 ||
         (result >= 700 && result < 720 && result != 701 && result != 704 && result != 705) || result == 999;
}

// fault returns the result that a test requests for the nth call of a function, or 0.
// FSPDA_FAKECUDA_FAIL is a list of "function:n:result"; a trailing + extends an entry to all later
// calls; the function * is any. The results hangs and crashes are no results of the driver.
static int fault(const char *function, long n, long of_all) {
  const char *s = getenv("FSPDA_FAKECUDA_FAIL");
  while (s && *s) {
    char name[80], more = 0;
    long at;
    int result, length = 0;
    if (sscanf(s, "%79[^:]:%ld:%d%n", name, &at, &result, &length) != 3) {
      report_misuse("FSPDA_FAKECUDA_FAIL is %s, want function:n:result", s);
      return 0;
    }
    more = s[length];
    long count = !strcmp(name, "*") ? of_all : !strcmp(name, function) ? n : -1;
    if (count == at || (more == '+' && count > at)) return result;
    s += length + (more == '+');
    if (*s == ',') s++;
  }
  return 0;
}

// vanished reports whether the GPUs are to be lost: once the file named by FSPDA_FAKECUDA_VANISH
// exists.
static bool vanished() {
  const char *path = getenv("FSPDA_FAKECUDA_VANISH");
  return path && *path && access(path, F_OK) == 0;
}

// Results of fault: the call never returns, and holds the lock, so that no other call does either;
// the process ends by a signal.
enum { hangs = -1, crashes = -2 };

// count records a call and returns the requested fault.
static int count(const char *function) {
  if (vanished()) lose(CUDA_ERROR_LAUNCH_FAILED);
  long n = ++machine().calls[function], of_all = ++machine().calls["*"];
  int requested = fault(function, n, of_all);
  while (requested == hangs) pause();
  if (requested == crashes) raise(SIGSEGV);
  if (sticky(requested)) lose(requested);
  return requested;
}

void lose(int result) {
  if (!machine().lost) machine().lost = result;
}

CUresult now() { return (CUresult)machine().lost; }

// forbids reports whether a capture forbids the calling thread operations that could block the
// capture.
static bool forbids(const Capture *c) {
  return c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
         (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && c->thread == thread_id());
}

static bool break_captures(const char *function) {
  bool any = false;
  for (Capture *c : machine().captures)
    if (forbids(c)) {
      c->invalidated = any = true;
      report_misuse("%s during a stream capture", function);
    }
  return any;
}

Call::Call(const char *function, Needs needs) : lock(machine().lock), result(CUDA_SUCCESS) {
  int requested = count(function);
  if (requested)
    result = (CUresult)requested;
  else if (needs == nothing)
    return;
  else if (!machine().initialised)
    result = CUDA_ERROR_NOT_INITIALIZED;
  else if (machine().lost)
    result = (CUresult)machine().lost;
  else if (!current || !current->retained) {
    report_misuse("%s on a thread without a current context", function);
    result = CUDA_ERROR_INVALID_CONTEXT;
  } else if (needs == no_capture && break_captures(function))
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

int enter(const char *function, bool needs_context) {
  std::lock_guard<std::recursive_mutex> held(machine().lock);
  if (int requested = count(function)) return requested;
  if (needs_context && (!current || !current->retained))
    report_misuse("%s on a thread without a current context", function);
  return 0;
}

LibraryLock::LibraryLock() { machine().lock.lock(); }
LibraryLock::~LibraryLock() { machine().lock.unlock(); }

static void report_count(const char *how, const char *kind, size_t n) {
  if (n) write_report(std::string(how) + ": " + std::to_string(n) + " of kind " + kind);
}

void report_kept(const char *kind, size_t n) { report_count("kept", kind, n); }

template <class T> static void report_alive(const Registry<T> &r, Context *c) {
  long n = 0;
  for (T *t : r.live)
    if constexpr (std::is_same_v<T, Graph>)
      n++;
    else
      n += t->context == c;
  report_count("leak", r.what, n);
}

// report_leaks reports the live objects of a context when it ends, and all calls so far.
void report_leaks(Context *c) {
  Machine &m = machine();
  report_alive(m.streams, c);
  report_alive(m.events, c);
  report_alive(m.modules, c);
  bool last = true;
  for (Context *other : m.contexts) last = last && (other == c || !other->retained);
  if (last) report_alive(m.graphs, c), report_alive(m.execs, c);
  long pieces = 0, bytes = 0;
  for (auto &entry : m.allocations)
    if (!entry.second.freed && entry.second.context == c) pieces++, bytes += entry.second.size;
  if (pieces)
    write_report("leak: " + std::to_string(pieces) + " of kind memory with " + std::to_string(bytes) + " bytes");
  for (auto &entry : m.calls) write_report("calls: " + entry.first + " " + std::to_string(entry.second));
}

} // namespace fakecuda
