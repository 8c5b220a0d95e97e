// Coordinates of masks, drawn from the random streams of fspda/internal/rng with the bits of
// fspda/dist, so that both ends of an edge, one of which may be a CPU, draw the same. A stream is
// one number, its counter, in device memory; each kernel leaves it where the next one continues.
#include "base.cuh"
#include "each.cuh"

#define GOLDEN 0x9e3779b97f4a7c15ull

// mix is the finalizer of splitmix64.
__device__ inline u64 mix(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// draw_number returns the n-th number of a stream, n >= 1.
__device__ inline u64 draw_number(u64 state, u64 n) { return mix(state + GOLDEN * n); }

// store64: *dst = value.
KERNEL(32) store64(u64 *dst, u64 value) {
  if (threadIdx.x == 0) *dst = value;
}

// iota: dst[j] = start + j.
KERNEL(256) iota(u32 *dst, u32 start, i64 n) {
  i64 j = thread_index();
  if (j < n) dst[j] = start + (u32)j;
}

// Cuts describes the blocks into which a vector of d coordinates is divided: block b begins at
// floor(b·d/k) = b·shorter + floor(b·part/2^64).
struct Cuts {
  u32 shorter; // floor(d/k)
  u64 part;
  u64 first; // number of the block that begins at `begin`
  u32 begin;

  __device__ u32 length(u64 b) const { return shorter + (u32)(b * part + part < part); }
  __device__ u32 begins(u64 b) const {
    return begin + (u32)((b - first) * shorter) + (u32)(__umul64hi(b, part) - __umul64hi(first, part));
  }
};

// below multiplies 32 random bits by n: the upper half is uniform in 0..n-1, unless rejected says
// that the draw must be repeated.
__device__ inline u64 below(u32 bits, u32 n) { return (u64)bits * n; }
__device__ inline bool rejected(u64 product, u32 n) { return (u32)product < n && (u32)product < (0u - n) % n; }

// draw_pair draws the coordinates of blocks first+2p and first+2p+1, of count, from one number. It
// returns true if the number is rejected.
__device__ inline bool draw_pair(u32 *dst, int count, int p, u64 number, const Cuts &cuts) {
  bool bad = false;
  for (int half = 0; half < 2; half++) {
    int j = 2 * p + half;
    if (j >= count) break;
    u32 length = cuts.length(cuts.first + j);
    u64 product = below((u32)(number >> 32 * half), length);
    bad = bad || rejected(product, length);
    dst[j] = cuts.begins(cuts.first + j) + (u32)(product >> 32);
  }
  return bad;
}

// redraw_pair is draw_pair with rejected draws repeated from the stream. It returns how many extra
// numbers that took.
__device__ inline u64 redraw_pair(u32 *dst, int count, int p, u64 state, u64 used, const Cuts &cuts) {
  u64 number = draw_number(state, used + 1), more = 0;
  for (int half = 0; half < 2; half++) {
    int j = 2 * p + half;
    if (j >= count) break;
    u32 length = cuts.length(cuts.first + j);
    u64 product = below((u32)(number >> 32 * half), length);
    while (rejected(product, length)) product = below((u32)draw_number(state, used + 1 + ++more), length);
    dst[j] = cuts.begins(cuts.first + j) + (u32)(product >> 32);
  }
  return more;
}

// stratified draws one coordinate in each of count blocks of a stratified mask, starting at block
// first. Each thread block assumes that no number of the stream is rejected. That fails about once
// in a million pairs; then the last thread block to finish redraws everything from there on.
//
// scratch is {0xffffffff, 0} before and after.
KERNEL(256) stratified(u32 *dst, int count, u32 begin, u32 shorter, u64 part, u64 first, u64 *state, u32 *scratch) {
  const Cuts cuts = {shorter, part, first, begin};
  const u64 stream = *state;
  const int pairs = (count + 1) / 2;
  i64 p = thread_index();
  if (p < pairs && draw_pair(dst, count, (int)p, draw_number(stream, (u64)p + 1), cuts)) atomicMin(&scratch[0], (u32)p);
  __threadfence();
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&scratch[1], 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;

  __threadfence();
  __shared__ u64 extra; // rejected numbers
  __shared__ u32 bad;
  u32 next = ((volatile u32 *)scratch)[0];
  if (threadIdx.x == 0) extra = 0;
  __syncthreads();
  while (next < (u32)pairs) { // pair `next` is the first that needs another number
    if (threadIdx.x == 0) {
      extra += redraw_pair(dst, count, (int)next, stream, (u64)next + extra, cuts);
      bad = 0xffffffffu;
    }
    __syncthreads();
    u32 from = next + 1;
    next = 0xffffffffu;
    for (; from < (u32)pairs && next == 0xffffffffu; from += blockDim.x) {
      u32 mine = from + threadIdx.x;
      if (mine < (u32)pairs && draw_pair(dst, count, (int)mine, draw_number(stream, (u64)mine + extra + 1), cuts))
        atomicMin(&bad, mine);
      __syncthreads();
      next = bad;
      __syncthreads();
    }
  }
  if (threadIdx.x == 0) {
    *state = stream + GOLDEN * ((u64)pairs + extra);
    scratch[0] = 0xffffffffu;
    scratch[1] = 0;
  }
}

// block_scan returns the sum over the threads before this one, and sets total to the sum over all.
// warps holds one number per warp.
__device__ inline u64 block_scan(u64 v, u64 *warps, u64 *total) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, count = blockDim.x / WARP;
  u64 upto = v;
#pragma unroll
  for (int d = 1; d < WARP; d *= 2) {
    u64 left = __shfl_up_sync(ALL_LANES, upto, d);
    if (lane >= d) upto += left;
  }
  if (lane == WARP - 1) warps[warp] = upto;
  __syncthreads();
  u64 before = 0, all = 0;
  for (int w = 0; w < count; w++) {
    if (w == warp) before = all;
    all += warps[w];
  }
  __syncthreads();
  *total = all;
  return before + upto - v;
}

// set_random_bits draws two coordinates below d from each of `draws` numbers of the stream, sets
// their bits, and returns how many bits this thread has newly set. Which of two equal draws counts
// as new does not matter.
__device__ inline int set_random_bits(u32 *words, u32 d, u64 stream, int draws) {
  const u32 least = (0u - d) % d;
  int fresh = 0;
  for (int n = threadIdx.x; n < draws; n += blockDim.x) {
    u64 u = draw_number(stream, (u64)n + 1);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      u64 product = below((u32)(u >> 32 * half), d);
      if ((u32)product < least) continue;
      u32 c = (u32)(product >> 32), bit = 1u << (c & 31);
      if (!(atomicOr(&words[c >> 5], bit) & bit)) fresh++;
    }
  }
  return fresh;
}

// set_last_bit draws until one more bit is newly set.
__device__ inline void set_last_bit(u32 *words, u32 d, u64 stream) {
  const u32 least = (0u - d) % d;
  for (u64 used = 1;; used++) {
    u64 u = draw_number(stream, used);
    for (int half = 0; half < 2; half++) {
      u64 product = below((u32)(u >> 32 * half), d);
      if ((u32)product < least) continue;
      u32 c = (u32)(product >> 32), bit = 1u << (c & 31);
      if (words[c >> 5] & bit) continue;
      words[c >> 5] |= bit;
      return;
    }
  }
}

// subset draws count of the numbers below d, uniformly among all sets of that size, ascending. One
// thread block sets random bits of a bitmap until enough are set; if that is more than half, it
// draws the complement. words is the bitmap, one bit per number, zero before and after.
__device__ inline void subset(u32 *dst, int count, u32 d, u32 *words, u64 begin) {
  __shared__ u64 warps[WARP];
  __shared__ u64 stream;
  const bool complement = 2 * (i64)count > (i64)d;
  int missing = complement ? (int)(d - (u32)count) : count;
  if (threadIdx.x == 0) stream = begin;
  __syncthreads();
  while (missing >= 2) {
    int draws = missing / 2;
    u64 fresh;
    block_scan((u64)set_random_bits(words, d, stream, draws), warps, &fresh);
    missing -= (int)fresh;
    if (threadIdx.x == 0) stream += GOLDEN * (u64)draws;
    __syncthreads();
  }
  if (threadIdx.x == 0 && missing == 1) set_last_bit(words, d, stream);
  __syncthreads();
  const u32 all = (d + 31) / 32;
  u64 done = 0;
  for (u32 from = 0; from < all; from += blockDim.x) {
    u32 w = from + threadIdx.x, word = 0;
    if (w < all) {
      word = words[w];
      words[w] = 0;
      if (complement) word = w == all - 1 && d % 32 ? ~word & ((1u << d % 32) - 1) : ~word;
    }
    u64 listed;
    u64 at = done + block_scan((u64)__popc(word), warps, &listed);
    for (; word; word &= word - 1) dst[at++] = 32 * w + (u32)(__ffs((int)word) - 1);
    done += listed;
  }
}

// random_subsets is subset for up to 16 streams, one thread block each. The bitmaps are `stride`
// words apart, or in shared memory if words is null.
KERNEL(1024) random_subsets(int count, u32 d, u32 *words, i64 stride, EACH(u32 *, dst), EACH(u64, stream)) {
  DYNAMIC_SHARED(bitmap);
  u32 *bits = words ? words + blockIdx.z * stride : (u32 *)bitmap;
  if (!words) {
    for (u32 w = threadIdx.x; w < (d + 31) / 32; w += blockDim.x) bits[w] = 0;
    __syncthreads();
  }
  subset(PICK(dst), count, d, bits, PICK(stream));
}


