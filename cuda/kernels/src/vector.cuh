// Bodies of vector.cu.
#pragma once
#include "block.cuh"

#define DOT_BLOCK 4096 // products per partial sum

// copy_words: dst = src, n words of 32 bits.
BODY copy_words_of(const Block &block, u32 *dst, const u32 *src, i64 n) {
  i64 i = 4 * block.index();
  if (i + 4 <= n && aligned16(address(dst) | address(src))) {
    *(uint4 *)(dst + i) = *(const uint4 *)(src + i);
    return;
  }
  for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) dst[i] = src[i];
}

BODY fill_of(const Block &block, float *dst, i64 n, float value) {
  i64 i = block.index();
  if (i < n) dst[i] = value;
}

// combined returns Σ a[k]·v[k].
template <int K> __device__ inline float combined(const float (&a)[K], const float (&v)[K]) {
  float s = a[0] * v[0];
#pragma unroll
  for (int k = 1; k < K; k++) s = s + a[k] * v[k];
  return s;
}

#define COMBINE_FOURS 3 // of each vector that a thread has in flight
#define COMBINE_MOST 6  // of each of at most three vectors

// combine computes FOURS fours of numbers in a thread. Where another than the first is not there
// or not whole, it loads the first instead, since loads with conditions are not all in flight.
template <int FOURS, int K, class Block>
__device__ inline void combine(const Block &block, float *dst, i64 n, const float *const (&v)[K], const float (&a)[K]) {
  u64 all = address(dst);
#pragma unroll
  for (int k = 0; k < K; k++) all |= address(v[k]);
  const i64 each = 4 * block.threads(), first = (i64)block.x() * FOURS * each + 4 * block.thread();
  const bool fours = first + 4 <= n && aligned16(all);
  if (fours) {
    Four x[FOURS][K];
#pragma unroll
    for (int e = 0; e < FOURS; e++)
#pragma unroll
      for (int k = 0; k < K; k++) x[e][k] = load4(v[k] + (first + e * each + 4 <= n ? first + e * each : first));
#pragma unroll
    for (int e = 0; e < FOURS; e++) {
      Four out;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float one[K];
#pragma unroll
        for (int k = 0; k < K; k++) one[k] = x[e][k].v[j];
        out.v[j] = combined(a, one);
      }
      if (first + e * each + 4 <= n) store4(dst + first + e * each, out);
    }
  }
  // the others, one by one
#pragma unroll 1
  for (int e = 0; e < FOURS; e++) {
    const i64 i = first + e * each;
    if (fours && i + 4 <= n) continue;
#pragma unroll 1
    for (i64 at = i; at < n && at < i + 4; at++) {
      float one[K];
#pragma unroll
      for (int k = 0; k < K; k++) one[k] = v[k][at];
      dst[at] = combined(a, one);
    }
  }
}

// combineK: dst = Σ aₖ·vₖ over K vectors.
BODY combine1_of(const Block &block, float *dst, i64 n, const float *v0, float a0) {
  const float *v[1] = {v0};
  const float a[1] = {a0};
  combine<COMBINE_MOST, 1>(block, dst, n, v, a);
}

BODY combine2_of(const Block &block, float *dst, i64 n, const float *v0, float a0, const float *v1, float a1) {
  const float *v[2] = {v0, v1};
  const float a[2] = {a0, a1};
  combine<COMBINE_MOST, 2>(block, dst, n, v, a);
}

BODY combine3_of(const Block &block, float *dst, i64 n, const float *v0, float a0, const float *v1, float a1,
                 const float *v2, float a2) {
  const float *v[3] = {v0, v1, v2};
  const float a[3] = {a0, a1, a2};
  combine<COMBINE_MOST, 3>(block, dst, n, v, a);
}

BODY combine4_of(const Block &block, float *dst, i64 n, const float *v0, float a0, const float *v1, float a1,
                 const float *v2, float a2, const float *v3, float a3) {
  const float *v[4] = {v0, v1, v2, v3};
  const float a[4] = {a0, a1, a2, a3};
  combine<COMBINE_FOURS, 4>(block, dst, n, v, a);
}

BODY combine5_of(const Block &block, float *dst, i64 n, const float *v0, float a0, const float *v1, float a1,
                 const float *v2, float a2, const float *v3, float a3, const float *v4, float a4) {
  const float *v[5] = {v0, v1, v2, v3, v4};
  const float a[5] = {a0, a1, a2, a3, a4};
  combine<COMBINE_FOURS, 5>(block, dst, n, v, a);
}

BODY combine6_of(const Block &block, float *dst, i64 n, const float *v0, float a0, const float *v1, float a1,
                 const float *v2, float a2, const float *v3, float a3, const float *v4, float a4, const float *v5,
                 float a5) {
  const float *v[6] = {v0, v1, v2, v3, v4, v5};
  const float a[6] = {a0, a1, a2, a3, a4, a5};
  combine<COMBINE_FOURS, 6>(block, dst, n, v, a);
}

// gather: dst[j] = src[idx[j]].
BODY gather_of(const Block &block, float *dst, const float *src, const u32 *idx, i64 k) {
  i64 j = block.index();
  if (j < k) dst[j] = src[idx[j]];
}

// scatter_add: dst[idx[j]] += a·v[j]. The coordinates are distinct. A null idx stands for all of
// dst.
BODY scatter_add_of(const Block &block, float *dst, const float *v, float a, const u32 *idx, i64 k) {
  i64 j = block.index();
  if (j >= k) return;
  i64 i = idx ? (i64)idx[j] : j;
  dst[i] = dst[i] + a * v[j];
}

// move_copy: q[j] = v[idx[j]] + w[idx[j]] - copy[idx[j]], then copy[idx[j]] += q[j]. w may be null.
// A null idx stands for all coordinates.
BODY move_copy_of(const Block &block, float *q, float *copy, const float *v, const float *w, const u32 *idx, i64 k) {
  i64 j = block.index();
  if (j >= k) return;
  i64 i = idx ? (i64)idx[j] : j;
  float x = v[i];
  if (w) x = x + w[i];
  x = x - copy[i];
  q[j] = x;
  copy[i] = copy[i] + x;
}

// add_diff: vₜ[idx[j]] += aₜ·(own[j] - other[j]) for one or two terms; v1 may be null. A null idx
// stands for all coordinates.
BODY add_diff_of(const Block &block, const float *own, const float *other, const u32 *idx, i64 k, float *v0, float a0,
                 float *v1, float a1) {
  i64 j = block.index();
  if (j >= k) return;
  float d = own[j] - other[j];
  i64 i = idx ? (i64)idx[j] : j;
  v0[i] = v0[i] + a0 * d;
  if (v1) v1[i] = v1[i] + a1 * d;
}

// add_diffs: with S = scale·start + Σ aₖ·(own - vₖ) over the first `others` of at most six,
// x += b·S, then y += c·S. start and y may be null; a null start is zero.
BODY add_diffs_of(const Block &block, i64 n, const float *start, float scale, const float *own, int others,
                  const float *v0, float a0, const float *v1, float a1, const float *v2, float a2, const float *v3,
                  float a3, const float *v4, float a4, const float *v5, float a5, float *x, float b, float *y,
                  float c) {
  i64 i = block.index();
  if (i >= n) return;
  const float *v[6] = {v0, v1, v2, v3, v4, v5};
  const float a[6] = {a0, a1, a2, a3, a4, a5};
  float s = start ? scale * start[i] : 0.0f;
  float at = own[i];
#pragma unroll
  for (int k = 0; k < 6; k++)
    if (k < others) s = s + a[k] * (at - v[k][i]);
  x[i] = x[i] + b * s;
  if (y) y[i] = y[i] + c * s;
}

// adamw moves the averages m and v by the gradient g, and writes the direction to g.
__device__ inline void adamw_at(i64 i, float *g, float *m, float *v, const float *x, float beta1, float rest1,
                                float beta2, float rest2, float scale1, float scale2, float eps, float decay,
                                float most) {
  float grad = g[i];
  float first = beta1 * m[i] + rest1 * grad;
  float second = beta2 * v[i] + rest2 * (grad * grad);
  if (second > most) second = most; // false for NaN
  m[i] = first;
  v[i] = second;
  float root = scale2 * sqrtf(second) + eps;
  g[i] = (scale1 * first) / root + decay * x[i];
}

BODY adamw_of(const Block &block, float *g, float *m, float *v, const float *x, i64 n, float beta1, float rest1,
              float beta2, float rest2, float scale1, float scale2, float eps, float decay, float most) {
  const i64 i = block.index();
  if (i < n) adamw_at(i, g, m, v, x, beta1, rest1, beta2, rest2, scale1, scale2, eps, decay, most);
}

// dot_blocks: part[b] is the scalar product of block b of x and y. A warp handles one block:
// product k is added to the sum of lane k mod 32, and the lanes' sums are added in a tree.
BODY dot_blocks_of(const Block &block, double *part, const float *x, const float *y, i64 n) {
  i64 b = block.index() / WARP;
  int lane = block.thread() % WARP;
  i64 begin = b * DOT_BLOCK, end = begin + DOT_BLOCK < n ? begin + DOT_BLOCK : n;
  if (begin >= n) return;
  double s = 0.0;
#pragma unroll 8
  for (i64 i = begin + lane; i < end; i += WARP) s = s + (double)x[i] * (double)y[i];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[b] = s;
}

struct DotTile {
  double part[256];
};

// sum_in_order returns Σ part, added from left to right, to the first thread.
template <class Block> __device__ inline double sum_in_order(const Block &block, const double *part, i64 parts) {
  double (&tile)[256] = shared_of<DotTile>(block).part;
  double s = 0.0;
  for (i64 begin = 0; begin < parts; begin += block.threads()) {
    block.sync();
    if (begin + block.thread() < parts) tile[block.thread()] = part[begin + block.thread()];
    block.sync();
    if (block.thread() == 0) {
      int count = parts - begin < block.threads() ? (int)(parts - begin) : (int)block.threads();
      for (int i = 0; i < count; i++) s = s + tile[i];
    }
  }
  return s;
}

// dot_sum: s = scale·Σ part, added from left to right, is written to out64 and, rounded, to out32;
// each may be null. Block x handles the x-th group of parts and writes at offset x·stride.
BODY dot_sum_of(const Block &block, double *out64, float *out32, const double *part, i64 parts, double scale,
                i64 stride) {
  const double s = scale * sum_in_order(block, part + block.x() * parts, parts);
  if (block.thread() != 0) return;
  if (out64) out64[block.x() * stride] = s;
  if (out32) out32[block.x() * stride] = (float)s;
}
