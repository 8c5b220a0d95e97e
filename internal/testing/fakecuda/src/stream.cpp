// Streams and events. Work that is sent to a stream runs when something waits for it. Then as
// little runs as necessary, or more, depending on the seed. The only order is that of each stream
// and of the events between them.
#include <time.h>
#include "machine.h"

namespace fakecuda {

// wandering returns how many of ten turns go to a random stream instead of the one that is waited
// for.
static unsigned wandering() { return (unsigned)(setting("FSPDA_FAKECUDA_SEED", 0) % 3) * 5; }

static double clock_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// blocked reports whether the next operation of a stream waits for another stream.
static bool blocked(const Stream *s) {
  const Work &w = s->queue.front();
  return w.wait_for && w.wait_for->done < w.wait_until;
}

// step runs the next operation of a stream, which must not be blocked.
static void step(Stream *s) {
  Work w = std::move(s->queue.front());
  s->queue.pop_front();
  if (w.run) {
    if (s->context->retained && !machine().lost) guarded(w.name, w.run);
  }
  s->done++;
}

// any_stream returns a random stream that can run now, or null.
static Stream *any_stream() {
  std::vector<Stream *> ready;
  for (Stream *s : machine().streams.live)
    if (!s->queue.empty() && !blocked(s)) ready.push_back(s);
  return ready.empty() ? nullptr : ready[random_below((unsigned)ready.size())];
}

// needed returns the stream that must run next for s to continue.
static Stream *needed(Stream *s) {
  while (blocked(s)) s = s->queue.front().wait_for;
  return s;
}

void finish(Stream *s, uint64_t until) {
  while (s->done < until) {
    Stream *next = random_below(10) < wandering() ? any_stream() : nullptr;
    step(next ? next : needed(s));
  }
}

void finish_all(Context *c) {
  for (Stream *s : machine().streams.live)
    if (!c || s->context == c) finish(s, s->submitted);
}

// progress runs a few operations and reports whether a point was already reached. It never is on
// the first query.
bool progress(Stream *s, uint64_t until) {
  if (s->done >= until) return true;
  for (unsigned n = random_below(6); n > 0 && s->done < until; n--) {
    Stream *next = random_below(10) < wandering() ? any_stream() : nullptr;
    step(next ? next : needed(s));
  }
  return false;
}

static CUresult capture_node(Stream *s, Work w) {
  REQUIRE(!s->capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (s != s->capture->origin) s->capture->joined[s] = false;
  if (w.run) s->capture->nodes.push_back(std::move(w));
  return CUDA_SUCCESS;
}

CUresult push(Stream *s, Work w) {
  if (s->capture) return capture_node(s, std::move(w));
  s->queue.push_back(std::move(w));
  s->submitted++;
  return CUDA_SUCCESS;
}

int enqueue(void *stream, const char *name, std::function<void()> run) {
  std::lock_guard<std::recursive_mutex> held(machine().lock);
  Stream *s = machine().streams.find(stream, name);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(!machine().lost, machine().lost);
  return push(s, {name, std::move(run)});
}

bool capturing(void *stream) {
  std::lock_guard<std::recursive_mutex> held(machine().lock);
  Stream *s = machine().streams.find(stream, "a library");
  return s && s->capture;
}

} // namespace fakecuda

using namespace fakecuda;

API cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
  ENTER(cuStreamCreateWithPriority, context);
  (void)priority; // the driver clamps any value to the GPU's range
  REQUIRE(out && flags <= 1, CUDA_ERROR_INVALID_VALUE);
  if (flags != 1) report_misuse("cuStreamCreateWithPriority: a stream that synchronises with the default stream");
  *out = (CUstream)machine().streams.add(new Stream{current});
  return CUDA_SUCCESS;
}

#define STREAM(s, function) Stream *s = machine().streams.find(handle, #function)

API cuStreamDestroy_v2(CUstream handle) {
  ENTER(cuStreamDestroy_v2, context);
  STREAM(s, cuStreamDestroy_v2);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  finish(s, s->submitted);
  machine().streams.remove(s);
  return now();
}

API cuStreamSynchronize(CUstream handle) {
  ENTER(cuStreamSynchronize, no_capture);
  STREAM(s, cuStreamSynchronize);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  finish(s, s->submitted);
  return now();
}

API cuStreamQuery(CUstream handle) {
  ENTER(cuStreamQuery, no_capture);
  STREAM(s, cuStreamQuery);
  REQUIRE(s, CUDA_ERROR_INVALID_HANDLE);
  bool there = progress(s, s->submitted);
  return machine().lost ? now() : there ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API cuEventCreate(CUevent *out, unsigned int flags) {
  ENTER(cuEventCreate, context);
  REQUIRE(out && flags <= 7, CUDA_ERROR_INVALID_VALUE);
  *out = (CUevent)machine().events.add(new Event{current, !(flags & 2)});
  return CUDA_SUCCESS;
}

#define EVENT(e, function) Event *e = machine().events.find(handle, #function)

API cuEventDestroy_v2(CUevent handle) {
  ENTER(cuEventDestroy_v2, context);
  EVENT(e, cuEventDestroy_v2);
  REQUIRE(e, CUDA_ERROR_INVALID_HANDLE);
  machine().events.remove(e);
  return CUDA_SUCCESS;
}

API cuEventRecord(CUevent handle, CUstream stream) {
  ENTER(cuEventRecord, context);
  EVENT(e, cuEventRecord);
  Stream *s = machine().streams.find(stream, "cuEventRecord");
  REQUIRE(e && s, CUDA_ERROR_INVALID_HANDLE);
  if (s->context != e->context) {
    report_misuse("cuEventRecord: the event and the stream have different contexts");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  e->capture = s->capture;
  e->stream = s;
  if (e->timed && !s->capture) {
    CUresult r = push(s, {"cuEventRecord", [e] { e->reached = clock_now(); }});
    if (r != CUDA_SUCCESS) return r;
  }
  e->at = s->submitted;
  return CUDA_SUCCESS;
}

API cuEventQuery(CUevent handle) {
  ENTER(cuEventQuery, no_capture);
  EVENT(e, cuEventQuery);
  REQUIRE(e, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(!e->capture, CUDA_ERROR_CAPTURED_EVENT);
  bool there = !e->stream || progress(e->stream, e->at);
  return machine().lost ? now() : there ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API cuEventSynchronize(CUevent handle) {
  ENTER(cuEventSynchronize, no_capture);
  EVENT(e, cuEventSynchronize);
  REQUIRE(e, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(!e->capture, CUDA_ERROR_CAPTURED_EVENT);
  if (e->stream) finish(e->stream, e->at);
  return now();
}

API cuEventElapsedTime(float *out, CUevent from, CUevent to) {
  ENTER(cuEventElapsedTime, context);
  Event *a = machine().events.find(from, "cuEventElapsedTime"), *b = machine().events.find(to, "cuEventElapsedTime");
  REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
  REQUIRE(a && b && a->timed && b->timed && a->stream && b->stream, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(a->stream->done >= a->at && b->stream->done >= b->at, CUDA_ERROR_NOT_READY);
  *out = (float)(1e3 * (b->reached - a->reached));
  return CUDA_SUCCESS;
}

// wait_captured makes a stream wait for an event of a capture, which it joins.
static CUresult wait_captured(Stream *s, Event *e) {
  Capture *c = e->capture;
  REQUIRE(machine().captures.count(c), CUDA_ERROR_INVALID_VALUE); // the capture has ended
  REQUIRE(!s->capture || s->capture == c, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (!s->capture) {
    s->capture = c;
    c->joined[s] = false;
  } else if (s == c->origin && e->stream != s)
    c->joined[e->stream] = true;
  return CUDA_SUCCESS;
}

API cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags) {
  ENTER(cuStreamWaitEvent, context);
  STREAM(s, cuStreamWaitEvent);
  Event *e = machine().events.find(event, "cuStreamWaitEvent");
  REQUIRE(s && e, CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(flags <= 1, CUDA_ERROR_INVALID_VALUE);
  if (e->capture) return wait_captured(s, e);
  if (s->capture) {
    report_misuse("cuStreamWaitEvent: a captured stream waits for an event outside the capture");
    s->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  REQUIRE(e->stream, CUDA_SUCCESS);
  return push(s, Work{"cuStreamWaitEvent", nullptr, e->stream, e->at});
}
