// Vector operations of device.Device, each with the bits of the CPU's: products and sums rounded one by one, from left to right. Vectors
// written may be among those read, at the same numbers.
#include "base.cuh"

KERNEL(256) fill(float *dst, i64 n, float value) {
  i64 i = thread_index();
  if (i < n) dst[i] = value;
}

// combined is Σ a[k]·v[k].
template <int K> __device__ inline float combined(const float (&a)[K], const float (&v)[K]) {
  float s = a[0] * v[0];
#pragma unroll
  for (int k = 1; k < K; k++) s = s + a[k] * v[k];
  return s;
}

template <int K> __device__ inline void combine(float *dst, i64 n, const float *const (&v)[K], const float (&a)[K]) {
  i64 i = 4 * thread_index();
  if (i >= n) return;
  u64 all = address(dst);
#pragma unroll
  for (int k = 0; k < K; k++) all |= address(v[k]);
  if (i + 4 <= n && fours(all)) {
    Four x[K], out;
#pragma unroll
    for (int k = 0; k < K; k++) x[k] = load4(v[k] + i);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float one[K];
#pragma unroll
      for (int k = 0; k < K; k++) one[k] = x[k].v[j];
      out.v[j] = combined(a, one);
    }
    store4(dst + i, out);
    return;
  }
  for (i64 end = i + 4 < n ? i + 4 : n; i < end; i++) {
    float one[K];
#pragma unroll
    for (int k = 0; k < K; k++) one[k] = v[k][i];
    dst[i] = combined(a, one);
  }
}

// combineK: dst = Σ aₖ·vₖ over K vectors.
KERNEL(256) combine1(float *dst, i64 n, const float *v0, float a0) {
  const float *v[1] = {v0};
  const float a[1] = {a0};
  combine<1>(dst, n, v, a);
}

KERNEL(256) combine2(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1) {
  const float *v[2] = {v0, v1};
  const float a[2] = {a0, a1};
  combine<2>(dst, n, v, a);
}

KERNEL(256) combine3(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2) {
  const float *v[3] = {v0, v1, v2};
  const float a[3] = {a0, a1, a2};
  combine<3>(dst, n, v, a);
}

KERNEL(256) combine4(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2, const float *v3,
                     float a3) {
  const float *v[4] = {v0, v1, v2, v3};
  const float a[4] = {a0, a1, a2, a3};
  combine<4>(dst, n, v, a);
}

KERNEL(256) combine5(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2, const float *v3,
                     float a3, const float *v4, float a4) {
  const float *v[5] = {v0, v1, v2, v3, v4};
  const float a[5] = {a0, a1, a2, a3, a4};
  combine<5>(dst, n, v, a);
}

KERNEL(256) combine6(float *dst, i64 n, const float *v0, float a0, const float *v1, float a1, const float *v2, float a2, const float *v3,
                     float a3, const float *v4, float a4, const float *v5, float a5) {
  const float *v[6] = {v0, v1, v2, v3, v4, v5};
  const float a[6] = {a0, a1, a2, a3, a4, a5};
  combine<6>(dst, n, v, a);
}

#define EACH(T, p) \
  T p##0, T p##1, T p##2, T p##3, T p##4, T p##5, T p##6, T p##7, T p##8, T p##9, T p##10, T p##11, T p##12, T p##13, T p##14, T p##15
#define PICK1(p, i) case i: return p##i;
#define PICK(p) \
  [&]() { \
    switch (blockIdx.z) { \
      PICK1(p, 1) PICK1(p, 2) PICK1(p, 3) PICK1(p, 4) PICK1(p, 5) PICK1(p, 6) PICK1(p, 7) PICK1(p, 8) PICK1(p, 9) PICK1(p, 10) PICK1(p, 11) \
      PICK1(p, 12) PICK1(p, 13) PICK1(p, 14) PICK1(p, 15) \
    } \
    return p##0; \
  }()

// combine_each is combine1 to combine3 for up to 16 vectors, of which blockIdx.z is one.
KERNEL(256) combine_each(i64 n, int terms, float a0, float a1, float a2, EACH(float *, dst), EACH(const float *, x), EACH(const float *, y), EACH(const float *, z)) {
  const float *v[3] = {PICK(x), PICK(y), PICK(z)};
  float *dst = PICK(dst);
  if (terms == 1) {
    const float *w[1] = {v[0]};
    const float a[1] = {a0};
    combine<1>(dst, n, w, a);
  } else if (terms == 2) {
    const float *w[2] = {v[0], v[1]};
    const float a[2] = {a0, a1};
    combine<2>(dst, n, w, a);
  } else {
    const float a[3] = {a0, a1, a2};
    combine<3>(dst, n, v, a);
  }
}

// combine_list is the same with any number of terms, at least one, listed in device memory.
KERNEL(256) combine_list(float *dst, i64 n, const float *const *v, const float *a, int terms) {
  i64 i = thread_index();
  if (i >= n) return;
  float s = a[0] * v[0][i];
  for (int k = 1; k < terms; k++) s = s + a[k] * v[k][i];
  dst[i] = s;
}

// gather: dst[j] = src[idx[j]].
KERNEL(256) gather(float *dst, const float *src, const u32 *idx, i64 k) {
  i64 j = thread_index();
  if (j < k) dst[j] = src[idx[j]];
}

// scatter_add: dst[idx[j]] += a·v[j]. No coordinate comes twice. A null idx stands for all of dst.
KERNEL(256) scatter_add(float *dst, const float *v, float a, const u32 *idx, i64 k) {
  i64 j = thread_index();
  if (j >= k) return;
  i64 i = idx ? (i64)idx[j] : j;
  dst[i] = dst[i] + a * v[j];
}

// scatter: dst[idx[j]] = v[j].
KERNEL(256) scatter(float *dst, const float *v, const u32 *idx, i64 k) {
  i64 j = thread_index();
  if (j < k) dst[idx[j]] = v[j];
}

// add_diff: vₜ[idx[j]] += aₜ·(own[j] - other[j]) for one or two terms; v1 may be null. A null idx stands for all coordinates.
KERNEL(256) add_diff(const float *own, const float *other, const u32 *idx, i64 k, float *v0, float a0, float *v1, float a1) {
  i64 j = thread_index();
  if (j >= k) return;
  float d = own[j] - other[j];
  i64 i = idx ? (i64)idx[j] : j;
  v0[i] = v0[i] + a0 * d;
  if (v1) v1[i] = v1[i] + a1 * d;
}

// add_diff_list is the same with any number of terms, listed in device memory.
KERNEL(256) add_diff_list(const float *own, const float *other, const u32 *idx, i64 k, float *const *v, const float *a, int terms) {
  i64 j = thread_index();
  if (j >= k) return;
  float d = own[j] - other[j];
  i64 i = idx ? (i64)idx[j] : j;
  for (int t = 0; t < terms; t++) v[t][i] = v[t][i] + a[t] * d;
}

// add_diffs: with S = scale·start + Σ aₖ·(own - vₖ) over the first `others` of up to six, x += b·S, then y += c·S. start and y may be
// null; a start that is null is zero.
KERNEL(256) add_diffs(i64 n, const float *start, float scale, const float *own, int others, const float *v0, float a0, const float *v1,
                      float a1, const float *v2, float a2, const float *v3, float a3, const float *v4, float a4, const float *v5, float a5,
                      float *x, float b, float *y, float c) {
  i64 i = thread_index();
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

// add_diffs_list is the same with any number of others and terms, listed in device memory: tₖ += bₖ·S.
KERNEL(256) add_diffs_list(i64 n, const float *start, float scale, const float *own, const float *const *v, const float *a, int others,
                           float *const *t, const float *b, int terms) {
  i64 i = thread_index();
  if (i >= n) return;
  float s = start ? scale * start[i] : 0.0f;
  float at = own[i];
  for (int k = 0; k < others; k++) s = s + a[k] * (at - v[k][i]);
  for (int k = 0; k < terms; k++) t[k][i] = t[k][i] + b[k] * s;
}

// add: y = a + b.
KERNEL(256) add(float *y, const float *a, const float *b, i64 n) {
  i64 i = thread_index();
  if (i < n) y[i] = a[i] + b[i];
}

// scale_by: y = (a·s)·x, with s in device memory.
KERNEL(256) scale_by(float *y, const float *x, const float *s, float a, i64 n) {
  i64 i = thread_index();
  if (i < n) y[i] = (a * s[0]) * x[i];
}

// move_average: y = (1-momentum)·avg + momentum·(a·x) in float64, rounded once at the end. momentum lies in device memory.
KERNEL(256) move_average(float *y, const float *x, const float *avg, const float *momentum, double a, i64 n) {
  i64 i = thread_index();
  if (i >= n) return;
  double m = (double)momentum[0];
  y[i] = (float)((1.0 - m) * (double)avg[i] + m * (a * (double)x[i]));
}

#define DOT_BLOCK 4096 // numbers whose products are summed before other sums are added

// dot_blocks: part[b] is the scalar product of block b of x and y. Each warp takes one block: product k is added to the sum of lane k mod 32,
// and the sums are added like a tree.
KERNEL(128) dot_blocks(double *part, const float *x, const float *y, i64 n) {
  i64 block = thread_index() / WARP;
  int lane = threadIdx.x % WARP;
  i64 begin = block * DOT_BLOCK, end = begin + DOT_BLOCK < n ? begin + DOT_BLOCK : n;
  if (begin >= n) return;
  double s = 0.0;
#pragma unroll 8
  for (i64 i = begin + lane; i < end; i += WARP) s = s + (double)x[i] * (double)y[i];
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) s = s + __shfl_down_sync(ALL_LANES, s, half);
  if (lane == 0) part[block] = s;
}

// dot_sum: s = scale·Σ part, added from left to right, to out64 and, rounded, to out32; each of them may be null. Block z does so with the
// z-th parts of as many, for result z, which lies `apart` numbers behind that of block z-1.
KERNEL(256) dot_sum(double *out64, float *out32, const double *part, i64 parts, double scale, i64 apart) {
  __shared__ double tile[256];
  part += blockIdx.x * parts;
  double s = 0.0;
  for (i64 begin = 0; begin < parts; begin += blockDim.x) {
    __syncthreads();
    if (begin + threadIdx.x < parts) tile[threadIdx.x] = part[begin + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      int count = parts - begin < blockDim.x ? (int)(parts - begin) : (int)blockDim.x;
      for (int i = 0; i < count; i++) s = s + tile[i];
    }
  }
  if (threadIdx.x != 0) return;
  s = scale * s;
  if (out64) out64[blockIdx.x * apart] = s;
  if (out32) out32[blockIdx.x * apart] = (float)s;
}

// count_not_finite adds to *count how many numbers are infinite or no number.
KERNEL(256) count_not_finite(u32 *count, const float *x, i64 n) {
  i64 i = thread_index();
  bool bad = i < n && (__float_as_uint(x[i]) & 0x7f800000u) == 0x7f800000u;
  u32 lanes = __ballot_sync(ALL_LANES, bad);
  if (threadIdx.x % WARP == 0 && lanes) atomicAdd(count, (u32)__popc(lanes));
}

// fspda_update is the local step of FSPDA-SA in one pass: u = mu·u + g, x = x + (-alpha)·u + (-eta)·lambda, rounded as the two
// combinations are. A null u stands for mu = 0: the direction is g.
KERNEL(256) fspda_update(float *x, const float *lambda, const float *g, float *u, float alpha, float eta, float mu, i64 n) {
  i64 i = thread_index();
  if (i >= n) return;
  float direction = g[i];
  if (u) {
    direction = mu * u[i] + direction;
    u[i] = direction;
  }
  x[i] = (x[i] + (-alpha) * direction) + (-eta) * lambda[i];
}

// gather_pair is gather at both ends of an edge between two agents of one GPU.
KERNEL(256) gather_pair(float *p, float *q, const float *x, const float *other_x, const u32 *idx, i64 k) {
  i64 j = thread_index();
  if (j >= k) return;
  i64 i = idx ? (i64)idx[j] : j;
  p[j] = x[i];
  q[j] = other_x[i];
}

// exchange is both ends of that edge: with the gathered p and q and D = p - q, x[idx] += a·D and lambda[idx] += b·D at one end, and the exact
// negatives at the other, for whom D is q - p. A null idx stands for all coordinates.
KERNEL(256) exchange(const float *p, const float *q, const u32 *idx, i64 k, float *x, float *lambda, float *other_x, float *other_lambda,
                     float a, float b) {
  i64 j = thread_index();
  if (j >= k) return;
  i64 i = idx ? (i64)idx[j] : j;
  float d = p[j] - q[j];
  float e = q[j] - p[j];
  x[i] = x[i] + a * d;
  lambda[i] = lambda[i] + b * d;
  other_x[i] = other_x[i] + a * e;
  other_lambda[i] = other_lambda[i] + b * e;
}
