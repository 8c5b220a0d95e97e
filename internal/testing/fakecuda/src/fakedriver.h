// The functions of the fake driver that the other fake libraries use.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <functional>

#define SHARED_WITH_LIBRARIES __attribute__((visibility("default")))

namespace fakecuda {

// enter is called at the start of a library function. It counts the call and returns the status
// that a test requests, or 0. A call without a current context is reported as a misuse.
SHARED_WITH_LIBRARIES int enter(const char *function, bool needs_context = true);

// enqueue adds work to a stream, or to the graph that captures it. It returns a result of the
// driver.
SHARED_WITH_LIBRARIES int enqueue(void *stream, const char *name, std::function<void()> run);

// capturing reports whether a stream is being captured.
SHARED_WITH_LIBRARIES bool capturing(void *stream);

// reachable reports whether the bytes lie in one allocation that the current context can access, at
// an address with the given alignment. If not, that is reported as a misuse.
SHARED_WITH_LIBRARIES bool reachable(const char *function, const char *what, const void *at, size_t bytes,
                                     size_t alignment);

// report_misuse records a misuse by the caller.
SHARED_WITH_LIBRARIES void report_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

// report_kept records how many host objects of a kind are alive when a library is closed. They use
// little memory, and the caller's objects may live on.
SHARED_WITH_LIBRARIES void report_kept(const char *kind, size_t n);

// setting returns a number from the environment.
SHARED_WITH_LIBRARIES long long setting(const char *name, long long fallback);

// LibraryLock is held while a library accesses its objects.
struct SHARED_WITH_LIBRARIES LibraryLock {
  LibraryLock();
  ~LibraryLock();
};

} // namespace fakecuda
