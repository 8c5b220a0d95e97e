// What the stand-in of the driver tells those of the libraries above it, and they tell it.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <functional>

#define SHARED_WITH_LIBRARIES __attribute__((visibility("default")))

namespace fakecuda {

// enter is the beginning of a library's function: it counts the call and returns the status that a test wants of it, or 0. A call without a current
// context is written down.
SHARED_WITH_LIBRARIES int enter(const char *function, bool needs_context = true);

// enqueue puts work on a stream, or into the graph that captures it. It returns a result of the driver.
SHARED_WITH_LIBRARIES int enqueue(void *stream, const char *name, std::function<void()> run);

// capturing tells whether what is put on a stream goes to a graph.
SHARED_WITH_LIBRARIES bool capturing(void *stream);

// readable tells whether so many bytes lie in one allocation that the current context reaches, at an address that the alignment divides. What does not is
// written down.
SHARED_WITH_LIBRARIES bool reachable(const char *function, const char *what, const void *at, size_t bytes, size_t alignment);

// complain writes down what a caller should not have done.
SHARED_WITH_LIBRARIES void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

// kept writes down that so many things of the host, of a kind, are left when a library is closed: they take little, and its caller's objects may live on.
SHARED_WITH_LIBRARIES void kept(const char *kind, size_t n);

// setting is a number from the environment.
SHARED_WITH_LIBRARIES long long setting(const char *name, long long otherwise);

// exclusive is held while a library looks at what it keeps.
struct SHARED_WITH_LIBRARIES Exclusive {
  Exclusive();
  ~Exclusive();
};

} // namespace fakecuda
