// CUDA C++ for a C++ compiler: enough of the language to compile the units of fspda/cuda/kernels
// for the host.
//
// The threads of a block are fibres with stacks of their own, which switch at barriers and warp
// operations. One system thread runs them all, block after block, or all blocks in turns in a
// cooperative launch. So barriers, shuffles and ballots work as on a GPU, and a barrier that not
// all threads reach is reported. In a cooperative launch some warps rest while others go on as far as
// barriers let them. Not modelled: other races between blocks or warps, memory order, and non-IEEE
// arithmetic of GPUs, which the kernels do not use (fma only where written).
#pragma once
#define FSPDA_HOST 1

#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static
#define __forceinline__ inline
// A kernel with launch bounds is placed in a section named after them, so that bound_of can look
// them up.
#define __launch_bounds__(...) HOST_BOUNDS_(__VA_ARGS__, 0)
#define HOST_BOUNDS_(threads, ...) HOST_BOUNDS(threads)
#define HOST_BOUNDS(threads) __attribute__((section("host_bounds_" #threads)))
#define __align__(n) __attribute__((aligned(n)))
#define DYNAMIC_SHARED(name) unsigned char *name = host::shared

#define HOST_STATE __attribute__((section(".data.host")))

struct dim3 {
  unsigned x, y, z;
};
HOST_STATE static dim3 gridDim, blockDim, blockIdx, threadIdx;

// Start and end of all zero-initialised variables of the library, defined by the linker: the
// __shared__ variables, since the host's own are HOST_STATE.
extern "C" __attribute__((visibility("hidden"))) char __bss_start[], _end[];

// Start and end of the sections of kernels by launch bound.
#define HOST_EACH_BOUND(V) V(32) V(64) V(96) V(128) V(192) V(256) V(320) V(384) V(512) V(768) V(1024)
#define HOST_SECTION(n)                                                                                                \
  extern "C" __attribute__((weak, visibility("hidden"))) char __start_host_bounds_##n[], __stop_host_bounds_##n[];
HOST_EACH_BOUND(HOST_SECTION)

namespace host {

// bound_of returns the launch bound of a kernel, or 0 if it has none.
inline unsigned bound_of(const void *kernel) {
#define HOST_IN_SECTION(n)                                                                                             \
  if (kernel >= __start_host_bounds_##n && kernel < __stop_host_bounds_##n) return n;
  HOST_EACH_BOUND(HOST_IN_SECTION)
  return 0;
}

constexpr size_t stack_bytes = 64 << 10;
constexpr int most_threads = 1024, most_warps = most_threads / 32, most_barriers = 16, most_blocks = 64;

enum State { fresh, running, waiting, looking, done };

// Context is a place to continue at. _setjmp of the C library would work too, but also prepares for
// signals and unwinding, and takes several times as long.
#ifdef __x86_64__
typedef void *Context[5];
#define HOST_SAVE(at) __builtin_setjmp(at)
#define HOST_JUMP(at) __builtin_longjmp(at, 1)
#else
typedef jmp_buf Context;
#define HOST_SAVE(at) _setjmp(at)
#define HOST_JUMP(at) _longjmp(at, 1)
#endif

// jump continues at a saved place. The compiler wants it in another function than HOST_SAVE.
[[noreturn]] __attribute__((noinline)) inline void jump(Context &at) { HOST_JUMP(at); }

// Stack is the stack of a fibre. A thread gets one when it starts. A thread that ends leaves it to
// the next that starts.
struct Stack {
  Context at;
  char *memory;
  Stack *idle, *older; // the next in the lists of idle stacks and of all stacks
  bool ready;          // it is in the loop of start, which waits for a thread
};

struct Thread {
  State state;
  Stack *stack; // while it waits
  unsigned x, y, z;
  // What it waits for: lanes of its warp, or a number of threads at a barrier of the block, 0 for
  // all.
  bool in_warp;
  int barrier, expected;
  unsigned long round; // number of warp operations so far
};

// Factors are the factors of a product of matrices by a warp: rows of A, and columns of B.
struct Factors {
  double a[16][16], b[8][16];
};

// Warp is the exchange of a warp operation. Two rounds alternate, so that a lane can store its next
// value before another has read the last ones.
struct Warp {
  uint64_t value[2][32];
  unsigned arrived[2];
  Factors factors[2];
};

// Block is the threads of a block. Most launches reuse one for all blocks in turn; in a cooperative
// launch each block has its own.
struct Block {
  Thread thread[most_threads];
  Warp warp[most_warps];
  int arrived[most_barriers]; // threads at a barrier for a number of threads
  unsigned resting;           // warps
  unsigned char *shared;
  dim3 at;
};

// Order is a permutation of 0..n-1: i becomes (i·by + from) mod n. The results of kernels must not
// depend on it, neither among the threads between two barriers nor among blocks.
struct Order {
  uint64_t n, by, from;
  uint64_t operator()(uint64_t i) const { return (i * by + from) % n; }
};

HOST_STATE static Block *blocks[most_blocks], *here;
HOST_STATE static Stack *stack, *idle_stacks, *all_stacks; // stack is that of the running thread
HOST_STATE static int threads, current, left_to_visit;
HOST_STATE static unsigned next_thread, step; // of the pass over the threads of a block
HOST_STATE static bool moved;                 // a thread of the pass made progress
HOST_STATE static bool unfinished;            // a thread of the running blocks has not ended
HOST_STATE static bool uneven;                // some warps of a block rest while others can go on
HOST_STATE static Context scheduler;
HOST_STATE static unsigned char *shared; // of the running block
HOST_STATE static void (*body)(void **);
HOST_STATE static void **arguments;
HOST_STATE static const char *failure;


// wait_for_thread lends the running stack to the next thread that starts.
__attribute__((noinline)) inline void wait_for_thread() {
  stack->idle = idle_stacks;
  idle_stacks = stack;
  if (!HOST_SAVE(stack->at)) jump(scheduler);
}

inline bool rests(unsigned thread) { return here->resting >> thread / 32 & 1; }

// select makes the next thread of the pass the current one.
inline Thread &select() {
  current = (int)next_thread;
  next_thread += step;
  if (next_thread >= (unsigned)threads) next_thread -= threads;
  left_to_visit--;
  Thread &t = here->thread[current];
  threadIdx = dim3{t.x, t.y, t.z};
  return t;
}

// leave suspends the running thread. If the next thread of the pass can go on, it does so, without
// the scheduler.
__attribute__((noinline)) inline void leave(State s) {
  Thread &t = here->thread[current];
  t.state = s;
  t.stack = stack;
  if (HOST_SAVE(stack->at)) return;
  if (!left_to_visit || here->thread[next_thread].state != running || rests(next_thread)) jump(scheduler);
  unfinished = true;
  moved = moved || s != looking;
  stack = select().stack;
  jump(stack->at);
}

// start runs one thread after the other, for all blocks of all later launches. It returns to the
// scheduler when the next thread of the pass has a stack of its own.
inline void start() {
  for (;; wait_for_thread()) {
    for (;; select()) {
      here->thread[current].state = running;
      body(arguments);
      here->thread[current].state = done;
      moved = true;
      if (!left_to_visit || here->thread[next_thread].state != fresh || rests(next_thread)) break;
    }
  }
}

// resume runs the current thread, and those that start after it, until one waits or none is left.
__attribute__((noinline)) inline void resume() {
  Thread &t = here->thread[current];
  if (HOST_SAVE(scheduler)) return;
  if (t.state != fresh) {
    t.state = running;
    stack = t.stack;
    jump(stack->at);
  }
  stack = idle_stacks;
  if (stack) {
    idle_stacks = stack->idle;
  } else {
    stack = (Stack *)calloc(1, sizeof(Stack));
    stack->memory = (char *)malloc(stack_bytes);
    stack->older = all_stacks;
    all_stacks = stack;
  }
  if (stack->ready) jump(stack->at);
  stack->ready = true;
  ucontext_t entry;
  getcontext(&entry);
  entry.uc_stack.ss_sp = stack->memory;
  entry.uc_stack.ss_size = stack_bytes;
  entry.uc_link = nullptr;
  makecontext(&entry, start, 0);
  setcontext(&entry);
}

// lanes returns the lanes of warp w that are threads of the block.
inline unsigned lanes(int w) {
  int n = threads - 32 * w;
  return n >= 32 ? 0xffffffffu : (1u << n) - 1;
}

// release resumes the threads of a block that wait at a complete barrier. Threads that have ended
// do not count at the barrier for all.
inline bool release(Block &b) {
  int there[most_barriers] = {}, wanted[most_barriers] = {}, alive = 0;
  for (int t = 0; t < threads; t++) {
    Thread &f = b.thread[t];
    alive += f.state != done;
    if (f.state != waiting || f.in_warp) continue;
    if (there[f.barrier]++ && wanted[f.barrier] != f.expected)
      failure = "threads wait at the same barrier for different numbers of threads";
    wanted[f.barrier] = f.expected;
  }
  bool some = false;
  for (int t = 0; t < threads; t++) {
    Thread &f = b.thread[t];
    if (f.state != waiting || f.in_warp || there[f.barrier] != (f.expected ? f.expected : alive)) continue;
    f.state = running;
    some = true;
  }
  return some && !failure;
}

// abandon drops what all stacks are in the middle of.
inline void abandon() {
  idle_stacks = all_stacks;
  for (Stack *s = all_stacks; s; s = s->older) {
    s->idle = s->older;
    s->ready = false;
  }
}

// The order of a run: 0 ascending, 1 descending, else a new random order at each barrier and
// launch.
HOST_STATE static uint64_t seed = 2, drawn;

inline uint64_t draw() { // splitmix64
  uint64_t z = drawn += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

inline bool coprime(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t r = a % b;
    a = b, b = r;
  }
  return a == 1;
}

inline Order next_order(uint64_t n) {
  if (seed == 0) return {n, 1, 0};
  if (seed == 1) return {n, n - 1, n - 1};
  uint64_t by = n < 2 ? 1 : draw() % (n - 1) + 1;
  while (!coprime(by, n)) by--;
  return {n, by, draw() % n};
}

inline void begin(Block &b) {
  unsigned x = 0, y = 0, z = 0;
  for (int t = 0; t < threads; t++) {
    Thread &f = b.thread[t];
    f.state = fresh;
    f.round = 0;
    f.x = x, f.y = y, f.z = z;
    if (++x == blockDim.x) x = 0, y++;
    if (y == blockDim.y) y = 0, z++;
  }
  for (int w = 0; w < (threads + 31) / 32; w++) memset(&b.warp[w], 0, offsetof(Warp, factors));
  memset(b.arrived, 0, sizeof b.arrived);
  b.resting = uneven ? (unsigned)draw() : 0;
}

// advance resumes every runnable thread of a block once, except those of resting warps. Where no other
// makes progress, it has other warps rest. It reports whether one made progress or rests.
inline bool advance(Block &b) {
  const Order order = next_order(threads);
  bool later = false;
  moved = false;
  here = &b;
  blockIdx = b.at;
  shared = b.shared;
  next_thread = (unsigned)order.from, step = (unsigned)order.by, left_to_visit = threads;
  while (left_to_visit) {
    const State s = select().state;
    const bool runs = s == fresh || s == running || s == looking;
    if (runs && rests(current)) {
      later = true;
    } else if (runs) {
      resume();
      moved = moved || b.thread[current].state != looking; // current is the last that ran
    }
    unfinished = unfinished || b.thread[current].state != done;
  }
  if (uneven && (!moved || draw() % 16 == 0)) b.resting = (unsigned)draw();
  return moved || later;
}

// run_blocks runs the first count blocks at the same time.
inline void run_blocks(int count) {
  for (int i = 0; i < count; i++) begin(*blocks[i]);
  for (unfinished = true; unfinished;) {
    bool some = unfinished = false;
    for (int i = 0; i < count; i++) some |= advance(*blocks[i]);
    if (some || !unfinished) continue;
    for (int i = 0; i < count; i++) some |= release(*blocks[i]);
    if (some) continue;
    if (!failure)
      failure = "the threads of a block wait for each other: a barrier or a warp operation is not reached by all that "
                "it is for";
    return abandon();
  }
}

// meet contributes a value to a warp operation of the lanes in mask, waits for theirs, and returns
// all values.
inline const uint64_t *meet(unsigned mask, uint64_t value) {
  int w = current / 32, lane = current % 32;
  Thread &me = here->thread[current];
  int r = me.round++ % 2;
  Warp &p = here->warp[w];
  mask &= lanes(w);
  if (!(mask >> lane & 1)) {
    failure = "a thread calls a warp operation for lanes without its own";
    me.in_warp = true;
    leave(waiting); // never resumed
  }
  p.value[r][lane] = value;
  p.arrived[r] |= 1u << lane;
  if ((p.arrived[r] & mask) == mask) {
    p.arrived[r] &= ~mask;
    for (int l = 0; l < 32; l++)
      if (mask >> l & 1 && l != lane) here->thread[32 * w + l].state = running;
  } else {
    me.in_warp = true;
    leave(waiting);
  }
  return p.value[r];
}

// next_factors returns the factors of the next product of the running warp, where each lane stores its
// share.
inline Factors &next_factors() { return here->warp[current / 32].factors[here->thread[current].round % 2]; }

// add_product waits for all lanes of the warp, and adds the first K terms of rows g and g+8 times columns
// 2t and 2t+1 to c, where g = lane/4 and t = lane%4. Each sum is computed in float64 and rounded once; the
// hardware's order and rounding differ.
template <int K> inline void add_product(float (&c)[4], const Factors &f) {
  meet(0xffffffffu, 0);
  const double *a = f.a[current % 32 / 4], *b = f.b[current % 4 * 2];
  double s0 = c[0], s1 = c[1], s2 = c[2], s3 = c[3];
  for (int k = 0; k < K; k++) {
    s0 += a[k] * b[k], s1 += a[k] * b[16 + k];
    s2 += a[8 * 16 + k] * b[k], s3 += a[8 * 16 + k] * b[16 + k];
  }
  c[0] = (float)s0, c[1] = (float)s1, c[2] = (float)s2, c[3] = (float)s3;
}

template <class T> inline uint64_t bits(T v) {
  uint64_t b = 0;
  memcpy(&b, &v, sizeof v);
  return b;
}
template <class T> inline T from_bits(uint64_t b) {
  T v;
  memcpy(&v, &b, sizeof v);
  return v;
}

// block returns one of the blocks that run at the same time.
inline Block *block(int i) {
  if (!blocks[i]) blocks[i] = (Block *)calloc(1, sizeof(Block));
  return blocks[i];
}

// run runs a kernel. cooperative says that its blocks wait for each other.
inline void run(dim3 grid, dim3 block_of, size_t shared_bytes, bool cooperative, void (*kernel)(void **), void **args) {
  gridDim = grid;
  blockDim = block_of;
  threads = blockDim.x * blockDim.y * blockDim.z;
  body = kernel;
  arguments = args;
  failure = nullptr;
  const unsigned long all = (unsigned long)grid.x * grid.y * grid.z;
  const int alive = cooperative ? (int)(all < most_blocks ? all : most_blocks) : 1;
  if (threads < 1 || threads > most_threads) failure = "a block must have 1 to 1024 threads";
  if (cooperative && all > most_blocks) failure = "a cooperative launch has more blocks than can run at the same time";
  if (failure) return;
  const size_t per_block = (shared_bytes + 127) / 64 * 64;
  unsigned char *all_shared = (unsigned char *)aligned_alloc(64, alive * per_block);
  drawn = seed;
  uneven = cooperative && seed > 1;
  const Order order = next_order(all);
  for (unsigned long first = 0; first < all && !failure; first += alive) {
    for (int i = 0; i < alive; i++) {
      const unsigned long n = order(first + i);
      block(i)->at = dim3{(unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y), (unsigned)(n / grid.x / grid.y)};
      block(i)->shared = all_shared + i * per_block;
    }
    memset(all_shared, 0xff, alive * per_block); // the bits of NaN
    memset(__bss_start, 0xff, _end - __bss_start);
    run_blocks(alive);
  }
  free(all_shared);
}

// kind is the letter of a parameter type, as in fspda/cuda/kernels.
template <class T> struct kind;
template <class T> struct kind<T *> {
  static constexpr char letter = 'p';
};
template <> struct kind<int> {
  static constexpr char letter = 'i';
};
template <> struct kind<unsigned> {
  static constexpr char letter = 'u';
};
template <> struct kind<long long> {
  static constexpr char letter = 'l';
};
template <> struct kind<unsigned long long> {
  static constexpr char letter = 'U';
};
template <> struct kind<float> {
  static constexpr char letter = 'f';
};
template <> struct kind<double> {
  static constexpr char letter = 'd';
};

template <class F, F f> struct Launcher;
template <class... P, void (*f)(P...)> struct Launcher<void (*)(P...), f> {
  static constexpr char kinds[] = {kind<P>::letter..., 0};
  template <int... I> struct List {};
  template <int N, int... I> struct Make : Make<N - 1, N - 1, I...> {};
  template <int... I> struct Make<0, I...> {
    typedef List<I...> type;
  };
  template <int... I> static void call(void **args, List<I...>) { f(*(P *)args[I]...); }
  static void body(void **args) { call(args, typename Make<sizeof...(P)>::type()); }
};

} // namespace host

// host_order sets the order of later launches.
extern "C" void host_order(uint64_t seed) { host::seed = seed; }

// HOST_LAUNCH defines the functions that Go calls for a kernel: its parameter kinds, a launch, and
// a cooperative launch.
#define HOST_RUN(name, symbol, cooperative)                                                                            \
  extern "C" const char *symbol(const unsigned *geometry, uint64_t shared, void **args) {                              \
    if (unsigned most = bound_##name())                                                                                \
      if (geometry[3] * geometry[4] * geometry[5] > most)                                                              \
        return "a block has more threads than the kernel's launch bounds";                                             \
    host::run(dim3{geometry[0], geometry[1], geometry[2]}, dim3{geometry[3], geometry[4], geometry[5]}, shared,        \
              cooperative, host::Launcher<decltype(&name), &name>::body, args);                                        \
    return host::failure;                                                                                              \
  }
#define HOST_LAUNCH(name)                                                                                              \
  extern "C" const char *kinds_##name() { return host::Launcher<decltype(&name), &name>::kinds; }                      \
  extern "C" unsigned bound_##name() { return host::bound_of((const void *)&name); }                                   \
  HOST_RUN(name, launch_##name, false)                                                                                 \
  HOST_RUN(name, cooperative_##name, true)

// barrier_sync is bar.sync of PTX: `expected` threads wait for each other; 0 stands for all. The last
// of a number of threads goes on at once, while other threads of the block are still at what they did
// before: so memory that these read is overwritten where nothing orders the two.
inline void barrier_sync(unsigned barrier, unsigned expected) {
  host::Block &b = *host::here;
  host::Thread &f = b.thread[host::current];
  f.in_warp = false;
  f.barrier = (int)barrier;
  f.expected = (int)expected;
  if (expected && ++b.arrived[barrier] == (int)expected) {
    b.arrived[barrier] = 0;
    for (int t = 0; t < host::threads; t++) {
      host::Thread &other = b.thread[t];
      if (other.state == host::waiting && !other.in_warp && other.barrier == f.barrier) other.state = host::running;
    }
    return;
  }
  host::leave(host::waiting);
}
inline void __syncthreads() { barrier_sync(0, 0); }
// spin_wait lets other threads run before memory is read again.
inline void spin_wait() { host::leave(host::looking); }
// cycles returns how often it was called.
HOST_STATE static unsigned cycle = 0;
inline unsigned cycles() { return ++cycle; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { host::meet(mask, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}

inline unsigned __ballot_sync(unsigned mask, int v) {
  const uint64_t *all = host::meet(mask, v != 0);
  unsigned set = 0;
  for (int l = 0; l < 32; l++)
    if (mask >> l & 1 && all[l]) set |= 1u << l;
  return set & host::lanes(host::current / 32);
}
inline int __any_sync(unsigned mask, int v) { return __ballot_sync(mask, v) != 0; }
template <class T> inline T shuffle(unsigned mask, T v, int from, int width, bool inside) {
  const uint64_t *all = host::meet(mask, host::bits(v));
  return inside && from >= 0 && from < 32 && mask >> from & 1 ? host::from_bits<T>(all[from]) : v;
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  int lane = host::current % 32;
  return shuffle(mask, v, lane / width * width + from % width, width, true);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  int lane = host::current % 32;
  return shuffle(mask, v, lane + (int)by, width, lane % width + (int)by < width);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  int lane = host::current % 32;
  return shuffle(mask, v, lane - (int)by, width, lane % width >= (int)by);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32) {
  int lane = host::current % 32;
  return shuffle(mask, v, lane ^ by, width, (lane ^ by) / width <= lane / width);
}

template <class T, class V> inline T atomicAdd(T *p, V v) {
  T old = *p;
  *p = old + (T)v;
  return old;
}
template <class T, class V> inline T atomicOr(T *p, V v) {
  T old = *p;
  *p = old | (T)v;
  return old;
}
template <class T, class V> inline T atomicMin(T *p, V v) {
  T old = *p;
  if ((T)v < old) *p = (T)v;
  return old;
}
template <class T, class V> inline T atomicMax(T *p, V v) {
  T old = *p;
  if ((T)v > old) *p = (T)v;
  return old;
}
template <class T, class V> inline T atomicExch(T *p, V v) {
  T old = *p;
  *p = (T)v;
  return old;
}

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
// __byte_perm selects four of the eight bytes of y and x, by the lower bits of four hexadecimal digits.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned digits) {
  const uint64_t all = (uint64_t)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= (unsigned)(all >> 8 * (digits >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}
inline float __uint_as_float(unsigned b) { return host::from_bits<float>(b); }
inline unsigned __float_as_uint(float v) { return (unsigned)host::bits(v); }
inline double __longlong_as_double(long long b) { return host::from_bits<double>((uint64_t)b); }
inline long long __double_as_longlong(double v) { return (long long)host::bits(v); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }

struct __align__(16) float4 {
  float x, y, z, w;
};
struct __align__(16) uint4 {
  unsigned x, y, z, w;
};
struct __align__(8) uint2 {
  unsigned x, y;
};
struct __align__(8) float2 {
  float x, y;
};
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }

// mma_tf32 is mma.m16n8k8 of PTX for TF32: D = A·B + C. With g = lane/4 and t = lane%4, the
// registers of a lane hold A[g][t], A[g+8][t], A[g][t+4], A[g+8][t+4]; B[t][g], B[t+4][g]; and
// C[g][2t], C[g][2t+1], C[g+8][2t], C[g+8][2t+1].
inline void mma_tf32(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  host::Factors &f = host::next_factors();
  const int g = host::current % 32 / 4, t = host::current % 4;
  for (int i = 0; i < 4; i++) f.a[g + i % 2 * 8][t + i / 2 * 4] = __uint_as_float(a[i]);
  for (int i = 0; i < 2; i++) f.b[g][t + i * 4] = __uint_as_float(b[i]);
  host::add_product<8>(c, f);
}
