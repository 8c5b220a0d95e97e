// A march does in one launch what many launches would do: steps, each a kernel with a grid and arguments of its own, in phases. Blocks of the
// march take the places of the steps' blocks in turn, and after a phase all wait for each other. So they must all be on the GPU at the same
// time: the launch is a cooperative one. Bodies are those of the kernels, and so are all bits.
//
// What to do is a list of 64-bit words in the host's memory, which the GPU fetches itself; march.go writes it.
#include "fleet.cuh"
#include "gemm.cuh"
#include "loss.cuh"
#include "steps.cuh" // made by march.go: MARCH_STEPS
#include "vector.cuh"

#define MARCH_THREADS 256 // of a block: products need as many registers as that leaves
#define SLICE 4608        // bytes of shared memory that 64 threads have for a body
#define CONTROL 1536      // words of a list that each block keeps in shared memory, where they are not more

// Step is a kernel's launch.
struct Step {
  u32 body, blocks;
  u32 first; // the block of the march that takes the first: steps of a phase begin where the one before ended
  u32 x, y;  // of the grid
  u32 args;  // the word of the list where they begin
};

// List is the words of a march: how many phases there are, where the steps of each end, the steps, and their arguments.
struct List {
  const u64 *words;
  __device__ u32 phases() const { return (u32)words[0]; }
  __device__ u32 end(u32 phase) const { return ((const u32 *)(words + 1))[phase]; }
  __device__ const Step &step(u32 i) const { return ((const Step *)(words + 1 + (phases() + 1) / 2))[i]; }
};

#ifndef FSPDA_HOST // hostrun/host.h has these
// meet_at lets so many threads, whole warps, wait for each other.
__device__ inline void meet_at(u32 barrier, u32 threads) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory"); }
__device__ inline void look_again() {}
#endif

// Marching is a block of a step: as many threads of a block of the march.
template <u32 THREADS> struct Marching {
  u32 at_x, at_y, at_z;
  unsigned char *room;
  __device__ u32 x() const { return at_x; }
  __device__ u32 y() const { return at_y; }
  __device__ u32 z() const { return at_z; }
  __device__ u32 thread() const { return threadIdx.x % THREADS; }
  __device__ u32 threads() const { return THREADS; }
  __device__ i64 index() const { return (i64)at_x * THREADS + thread(); }
  // Barrier 0 is that of all threads, 1 to 4 are those of 64, 5 and 6 of 128, 7 of 256. So threads that are still at a step and others, in other
  // company at the next one, do not meet.
  __device__ void sync() const { meet_at((THREADS == 64 ? 1 : THREADS == 128 ? 5 : 7) + threadIdx.x / THREADS, THREADS); }
};

template <class T, u32 THREADS> __device__ inline T &shared_of(const Marching<THREADS> &block) {
  static_assert(sizeof(T) <= SLICE * THREADS / 64, "a body shares more memory than its threads have");
  return *(T *)block.room;
}

// Argument is what a word stands for.
template <class T> struct Argument {
  static __device__ T of(u64 word) { return (T)word; } // integers
};
template <class T> struct Argument<T *> {
  static __device__ T *of(u64 word) { return global((T *)word); }
};
template <> struct Argument<float> {
  static __device__ float of(u64 word) { return __uint_as_float((u32)word); }
};
template <> struct Argument<double> {
  static __device__ double of(u64 word) { return __longlong_as_double((long long)word); }
};

// Perform does this block's part of a step. Threads take a step's blocks in groups of the size that it wants; all of the march's blocks get one
// before any gets a second.
template <class F, F body> struct Perform;
template <u32 THREADS, class... P, void (*body)(const Marching<THREADS> &, P...)> struct Perform<void (*)(const Marching<THREADS> &, P...), body> {
  template <int... I> struct Numbers {};
  template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
  template <int... I> struct Count<0, I...> { typedef Numbers<I...> type; };

  template <int... I> static __device__ void one(const Marching<THREADS> &block, const u64 *args, Numbers<I...>) {
    body(block, Argument<P>::of(args[I])...);
  }
  static __device__ void all(const Step &s, const u64 *args, unsigned char *rooms) {
    const u32 group = threadIdx.x / THREADS, groups = blockDim.x / THREADS;
    const u32 turn = (blockIdx.x + gridDim.x - s.first % gridDim.x) % gridDim.x;
    for (u32 b = turn + group * gridDim.x; b < s.blocks; b += groups * gridDim.x)
      one(Marching<THREADS>{b % s.x, b / s.x % s.y, b / s.x / s.y, rooms + group * (THREADS / 64) * SLICE}, args,
          typename Count<sizeof...(P)>::type());
  }
};

// MARCH_STEPS has STEP(number, body) for each.
#define STEP(number, ...)                                                                                                                \
  case number: Perform<decltype(&__VA_ARGS__), &__VA_ARGS__>::all(s, args, rooms); break;

__device__ inline void perform(const Step &s, const u64 *args, unsigned char *rooms) {
  switch (s.body) { MARCH_STEPS }
}

#define LAST 0x80000000u

// meet_all lets all blocks of the march wait for each other, and see what each has written. Each adds to a count, one of them so much that its
// highest bit turns with the last: the lower bits are 0 again then.
__device__ inline void meet_all(u32 *count) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const u32 mine = blockIdx.x == 0 ? LAST - (gridDim.x - 1) : 1;
    __threadfence();
    const u32 before = atomicAdd(count, mine);
    while (((before ^ *(volatile u32 *)count) & LAST) == 0) look_again();
    __threadfence();
  }
  __syncthreads();
}

__device__ inline void fetch(u64 *to, const u64 *from, u32 words, u32 thread, u32 threads) {
  for (u32 i = thread; i < words / 2; i += threads) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
}

// march copies so many words from the host to room, and does what the last of them, so many as control says, list. Those before are what arguments
// point to. Both numbers are even. count is 0 before the first march, and what the last one has left before the next.
KERNEL_OF(MARCH_THREADS, 1) march(u64 *room, const u64 *list, u32 words, u32 control, u32 *count) {
  DYNAMIC_SHARED(shared);
  u64 *kept = (u64 *)shared;
  unsigned char *rooms = shared + CONTROL * sizeof(u64);
  fetch(room, list, words, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
  meet_all(count);
  room += words - control;
  if (control <= CONTROL) {
    fetch(kept, room, control, threadIdx.x, blockDim.x);
    __syncthreads();
  }
  const List l = {control <= CONTROL ? kept : room};
  const u32 phases = l.phases();
  for (u32 phase = 0, i = 0; phase < phases; phase++) {
    if (phase > 0) meet_all(count);
    for (const u32 end = l.end(phase); i < end; i++) perform(l.step(i), l.words + l.step(i).args, rooms);
  }
}
