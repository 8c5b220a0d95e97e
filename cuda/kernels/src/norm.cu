// Batch normalisation of a matrix of m rows (the pixels of a batch) and c columns (its channels), with what follows: ReLU, or a sum and
// ReLU. The formulas are the CPU's (cpu/norm.go), so that what is computed from given statistics has its bits in float32. The sums are
// not added in its order, and are float64; but of numbers of 16 bits a thread adds up at most 64 in float32, less the first row where a mean is
// sought, so that an offset of the data costs no digits. Against the sums of exact arithmetic that leaves, of Σ|x−shift| and Σ(x−shift)²,
// at most 64·2⁻²⁴.
//
// A block covers 8 packs of columns (64 of 16 bits, 32 of float32) and some rows; its 32 groups of 8 threads take every 32nd row. Blocks write partial
// sums, part[p][0..1][c], which are then added in one order: a run repeats, on any GPU.
#include "half.cuh"

#define ACROSS 8 // packs
#define DOWN 32  // rows at a time

// What follows the affine map of a normalisation.
#define PLAIN 0
#define WITH_RELU 1
#define WITH_ADD_RELU 2

// How a gradient knows where the ReLU let something through.
#define NO_GATE 0
#define BY_OUTPUT 1 // y > 0
#define BY_MASK 2   // a bit for each number: byte i holds those of pack i
#define BY_INPUT 3  // (x-mean)·scale + shift > 0: nothing was kept

// Tile is a thread's columns, and its rows from first to end in steps of DOWN.
template <class T> struct Tile {
  int column, count;
  bool whole;
  i64 first, end;

  __device__ Tile(i64 m, int c, int rows, u64 addresses) {
    column = (blockIdx.x * ACROSS + threadIdx.x % ACROSS) * Pack<T>::size;
    count = c - column < Pack<T>::size ? c - column : Pack<T>::size;
    whole = c % Pack<T>::size == 0 && fours(addresses);
    first = (i64)blockIdx.y * rows + threadIdx.x / ACROSS;
    end = (i64)(blockIdx.y + 1) * rows < m ? (i64)(blockIdx.y + 1) * rows : m;
  }
};

// columns_of reads what belongs to the tile's columns.
template <class T> __device__ inline void columns_of(float (&dst)[Pack<T>::size], const float *src, const Tile<T> &t) {
#pragma unroll
  for (int j = 0; j < Pack<T>::size; j++) dst[j] = j < t.count ? src[t.column + j] : 0.0f;
}

// Sum is what a thread adds numbers up in.
template <class T> struct Sum { using type = float; };
template <> struct Sum<float> { using type = double; };

__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double fused(double a, double b, double c) { return fma(a, b, c); }

// write_part adds the sums of the block's threads, which have the same columns in every eighth, and writes them to part[blockIdx.y].
template <class T> __device__ inline void write_part(double *part, int c, const Tile<T> &t, const typename Sum<T>::type (&s1)[Pack<T>::size],
                                              const typename Sum<T>::type (&s2)[Pack<T>::size]) {
  constexpr int N = Pack<T>::size;
  __shared__ double warps[8][2][ACROSS * N];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int j = 0; j < N; j++) {
    double a = (double)s1[j], b = (double)s2[j];
#pragma unroll
    for (int half = ACROSS; half < WARP; half *= 2) {
      a = a + __shfl_xor_sync(ALL_LANES, a, half);
      b = b + __shfl_xor_sync(ALL_LANES, b, half);
    }
    if (lane < ACROSS) {
      warps[warp][0][lane * N + j] = a;
      warps[warp][1][lane * N + j] = b;
    }
  }
  __syncthreads();
  const int which = threadIdx.x / (ACROSS * N), column = threadIdx.x % (ACROSS * N);
  const int at = blockIdx.x * ACROSS * N + column;
  if (which >= 2 || at >= c) return;
  double s = 0.0;
#pragma unroll
  for (int w = 0; w < 8; w++) s = s + warps[w][which][column];
  part[((i64)blockIdx.y * 2 + which) * c + at] = s;
}

// moments: part = {Σ x - x[0], Σ (x - x[0])²} over the rows of each block.
template <class T> __device__ inline void moments(double *part, const T *x, i64 m, int c, int rows) {
  constexpr int N = Pack<T>::size;
  const Tile<T> t(m, c, rows, address(x));
  using S = typename Sum<T>::type;
  S s1[N] = {}, s2[N] = {};
  if (t.count > 0) {
    const Pack<T> shift = load_pack(x + t.column, t.count, t.whole);
#pragma unroll 4
    for (i64 i = t.first; i < t.end; i += DOWN) {
      const Pack<T> v = load_pack(x + i * c + t.column, t.count, t.whole);
#pragma unroll
      for (int j = 0; j < N; j++) {
        S d = (S)v.v[j] - (S)shift.v[j];
        s1[j] = s1[j] + d;
        s2[j] = fused(d, d, s2[j]);
      }
    }
  }
  write_part(part, c, t, s1, s2);
}

// total adds up the parts of a column: 32 groups of threads take every 32nd, and their sums are added from the first to the last. All
// threads of a block of 8 columns get that of theirs.
__device__ inline void total(const double *part, int parts, int c, int column, double (&sum)[2]) {
  __shared__ double groups[2][DOWN][ACROSS];
  const int group = threadIdx.x / ACROSS, at = threadIdx.x % ACROSS;
  double a = 0.0, b = 0.0;
  if (column < c)
#pragma unroll 4
    for (int p = group; p < parts; p += DOWN) {
      a = a + part[(i64)2 * p * c + column];
      b = b + part[((i64)2 * p + 1) * c + column];
    }
  groups[0][group][at] = a;
  groups[1][group][at] = b;
  __syncthreads();
  sum[0] = sum[1] = 0.0;
#pragma unroll 4
  for (int g = 0; g < DOWN; g++) {
    sum[0] = sum[0] + groups[0][g][at];
    sum[1] = sum[1] + groups[1][g][at];
  }
}

// affine sets the map of a column: y = (x - mean32)·scale + shift.
__device__ inline void affine(float *mean32, float *scale, float *shift, double mean, double square, float gamma, float beta) {
  double k = (double)gamma / sqrt(square);
  float rounded = (float)mean;
  *mean32 = rounded;
  *scale = (float)k;
  *shift = (float)((double)beta - (mean - (double)rounded) * k);
}

// norm_statistics computes mean, variance and the affine map of each column from the parts and the first row.
template <class T> __device__ inline void statistics(const double *part, int parts, const T *x, const float *gamma, const float *beta, i64 m, int c,
                                                     double eps, float *mean, float *variance, float *scale, float *shift) {
  const int column = blockIdx.x * ACROSS + threadIdx.x % ACROSS;
  double s[2];
  total(part, parts, c, column, s);
  if (column >= c || threadIdx.x >= ACROSS) return;
  double d = s[0] / (double)m;
  double v = (s[1] - s[0] * d) / (double)m;
  if (v < 0.0) v = 0.0;
  affine(mean + column, scale + column, shift + column, (double)to_float(x[column]) + d, v + eps, gamma[column], beta[column]);
  variance[column] = (float)v;
}

// norm_given makes the affine map of given statistics.
KERNEL(256) norm_given(const float *mean, const float *variance, const float *gamma, const float *beta, int c, double eps, float *mean_out,
                       float *scale, float *shift) {
  int column = (int)thread_index();
  if (column >= c) return;
  affine(mean_out + column, scale + column, shift + column, (double)mean[column], (double)variance[column] + eps, gamma[column], beta[column]);
}

// affine_of is the map of one number.
__device__ inline float affine_of(float x, float mean, float scale, float shift) { return (x - mean) * scale + shift; }

// apply: y = the map of x, plus z, and the larger of it and 0. mask may be null, or takes a bit for each number that is
// greater than 0; it needs whole packs.
template <class T> __device__ inline void apply(T *y, u8 *mask, const T *x, const T *z, const float *mean, const float *scale, const float *shift,
                                                i64 m, int c, int rows, int follows) {
  constexpr int N = Pack<T>::size;
  const Tile<T> t(m, c, rows, address(x) | address(y) | address(z));
  if (t.count <= 0) return;
  float a[N], b[N], e[N];
  columns_of(a, mean, t);
  columns_of(b, scale, t);
  columns_of(e, shift, t);
#pragma unroll 2
  for (i64 i = t.first; i < t.end; i += DOWN) {
    const i64 at = i * c + t.column;
    Pack<T> v = load_pack(x + at, t.count, t.whole), w;
    if (follows == WITH_ADD_RELU) w = load_pack(z + at, t.count, t.whole);
    u32 bits = 0;
#pragma unroll
    for (int j = 0; j < N; j++) {
      float r = affine_of(v.v[j], a[j], b[j], e[j]);
      if (follows == WITH_ADD_RELU) r = r + w.v[j];
      if (follows != PLAIN) r = r <= 0.0f ? 0.0f : r;
      v.v[j] = r;
      bits |= (r > 0.0f ? 1u : 0u) << j;
    }
    store_pack(y + at, v, t.count, t.whole);
    if (mask) mask[at / N] = (u8)bits;
  }
}

// gated is dy where the ReLU let something through, else 0.
template <class T> __device__ inline Pack<T> gated(int how, const T *dy, const T *y, const u8 *mask, const Pack<T> &x, const float (&mean)[Pack<T>::size],
                                                   const float *scale, const float *shift, i64 at, const Tile<T> &t) {
  constexpr int N = Pack<T>::size;
  Pack<T> g = load_pack(dy + at, t.count, t.whole);
  if (how == BY_OUTPUT) {
    const Pack<T> out = load_pack(y + at, t.count, t.whole);
#pragma unroll
    for (int j = 0; j < N; j++) g.v[j] = out.v[j] > 0.0f ? g.v[j] : 0.0f;
  } else if (how == BY_MASK) {
    const u32 bits = mask[at / N];
#pragma unroll
    for (int j = 0; j < N; j++) g.v[j] = bits >> j & 1 ? g.v[j] : 0.0f;
  } else if (how == BY_INPUT) {
    float b[N], e[N];
    columns_of(b, scale, t);
    columns_of(e, shift, t);
#pragma unroll
    for (int j = 0; j < N; j++) g.v[j] = affine_of(x.v[j], mean[j], b[j], e[j]) > 0.0f ? g.v[j] : 0.0f;
  }
  return g;
}

// grad_sums: part = {Σ g, Σ g·(x - mean)} over the rows of each block, where g is dy behind the gate; dz may be null, or takes g.
template <class T> __device__ inline void grad_sums(double *part, T *dz, const T *x, const T *dy, const T *y, const u8 *mask, const float *mean,
                                                    const float *scale, const float *shift, i64 m, int c, int rows, int gate) {
  constexpr int N = Pack<T>::size;
  const Tile<T> t(m, c, rows, address(x) | address(y) | address(dy) | address(dz));
  using S = typename Sum<T>::type;
  S s1[N] = {}, s2[N] = {};
  if (t.count > 0) {
    float a[N];
    columns_of(a, mean, t);
#pragma unroll 2
    for (i64 i = t.first; i < t.end; i += DOWN) {
      const i64 at = i * c + t.column;
      const Pack<T> v = load_pack(x + at, t.count, t.whole);
      const Pack<T> g = gated(gate, dy, y, mask, v, a, scale, shift, at, t);
      if (dz) store_pack(dz + at, g, t.count, t.whole);
#pragma unroll
      for (int j = 0; j < N; j++) {
        s1[j] = s1[j] + (S)g.v[j];
        s2[j] = fused((S)g.v[j], (S)v.v[j] - (S)a[j], s2[j]);
      }
    }
  }
  write_part(part, c, t, s1, s2);
}

// norm_grad_factors turns the parts into the gradients of gamma and beta and the factors of dx.
KERNEL(256) norm_grad_factors(const double *part, int parts, const float *gamma, const float *variance, i64 m, int c, double eps, float *dgamma,
                              float *dbeta, float *a, float *b, float *e) {
  const int column = blockIdx.x * ACROSS + threadIdx.x % ACROSS;
  double s[2];
  total(part, parts, c, column, s);
  if (column >= c || threadIdx.x >= ACROSS) return;
  double inv = 1.0 / sqrt((double)variance[column] + eps);
  double k = (double)gamma[column] * inv;
  double along = s[1] * inv;
  dbeta[column] = (float)s[0];
  dgamma[column] = (float)along;
  a[column] = (float)k;
  b[column] = (float)(-(k * inv * along) / (double)m);
  e[column] = (float)(-(k * s[0]) / (double)m);
}

// grad_apply: dx = a·g + ((x-mean)·b + e).
template <class T> __device__ inline void grad_apply(T *dx, const T *x, const T *dy, const T *y, const u8 *mask, const float *mean, const float *scale,
                                                     const float *shift, const float *a, const float *b, const float *e, i64 m, int c, int rows, int gate) {
  constexpr int N = Pack<T>::size;
  const Tile<T> t(m, c, rows, address(x) | address(y) | address(dy) | address(dx));
  if (t.count <= 0) return;
  float center[N], fa[N], fb[N], fe[N];
  columns_of(center, mean, t);
  columns_of(fa, a, t);
  columns_of(fb, b, t);
  columns_of(fe, e, t);
  for (i64 i = t.first; i < t.end; i += DOWN) {
    const i64 at = i * c + t.column;
    Pack<T> v = load_pack(x + at, t.count, t.whole);
    const Pack<T> g = gated(gate, dy, y, mask, v, center, scale, shift, at, t);
#pragma unroll
    for (int j = 0; j < N; j++) v.v[j] = fa[j] * g.v[j] + ((v.v[j] - center[j]) * fb[j] + fe[j]);
    store_pack(dx + at, v, t.count, t.whole);
  }
}

#define NORM_KERNELS(T, name)                                                                                                            \
  KERNEL_OF(256, 3) norm_moments_##name(double *part, const T *x, i64 m, int c, int rows) { moments<T>(part, x, m, c, rows); }                 \
  KERNEL(256) norm_statistics_##name(const double *part, int parts, const T *x, const float *gamma, const float *beta, i64 m, int c,     \
                                     double eps, float *mean, float *variance, float *scale, float *shift) {                             \
    statistics<T>(part, parts, x, gamma, beta, m, c, eps, mean, variance, scale, shift);                                                 \
  }                                                                                                                                      \
  KERNEL_OF(256, 3) norm_apply_##name(T *y, u8 *mask, const T *x, const T *z, const float *mean, const float *scale, const float *shift,       \
                                i64 m, int c, int rows, int follows) {                                                                   \
    apply<T>(y, mask, x, z, mean, scale, shift, m, c, rows, follows);                                                                    \
  }                                                                                                                                      \
  KERNEL_OF(256, 3) norm_grad_sums_##name(double *part, T *dz, const T *x, const T *dy, const T *y, const u8 *mask, const float *mean,         \
                                    const float *scale, const float *shift, i64 m, int c, int rows, int gate) {                          \
    grad_sums<T>(part, dz, x, dy, y, mask, mean, scale, shift, m, c, rows, gate);                                                        \
  }                                                                                                                                      \
  KERNEL_OF(256, 3) norm_grad_apply_##name(T *dx, const T *x, const T *dy, const T *y, const u8 *mask, const float *mean, const float *scale,  \
                                     const float *shift, const float *a, const float *b, const float *e, i64 m, int c, int rows,         \
                                     int gate) {                                                                                         \
    grad_apply<T>(dx, x, dy, y, mask, mean, scale, shift, a, b, e, m, c, rows, gate);                                                    \
  }

NORM_KERNELS(float, f32)
NORM_KERNELS(Half, f16)
NORM_KERNELS(Brain, bf16)
