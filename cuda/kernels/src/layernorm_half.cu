// Layer norm, RMS norm and their gradients for y and dy of 16 bits, in float32: the functions of
// layernorm.cu for rows of a multiple of four numbers, at most four for each thread of a block. A
// thread has four columns, and its block some consecutive rows. Each operand is read once. For 768
// columns a multiprocessor has eight blocks, which load while others wait for a sum.
#include "half.cuh"

#define NORM_THREADS 768 // kernels.normThreads: the most of a block
#define NORM_ROWS 16     // kernels.normRows: the rows of a block
#define NORM_LINES 32    // kernels.normLines: the parts that a block of layer_norm_columns adds at once

// Sums is the memory for N sums over the threads of a block. Barriers separate the sums of the two
// buffers, so that each needs one barrier only.
template <int N> struct Sums {
  float of_warp[2][N][NORM_THREADS / WARP];
};

// block_sum replaces v by the sums over the threads of the block.
template <int N> __device__ inline void block_sum(float (&v)[N], Sums<N> &sums, int buffer) {
#pragma unroll
  for (int k = 0; k < N; k++)
#pragma unroll
    for (int by = WARP / 2; by > 0; by /= 2) v[k] = v[k] + __shfl_xor_sync(ALL_LANES, v[k], by);
  if (threadIdx.x % WARP == 0)
#pragma unroll
    for (int k = 0; k < N; k++) sums.of_warp[buffer][k][threadIdx.x / WARP] = v[k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; k++) {
    v[k] = 0.0f;
#pragma unroll 1
    for (int w = 0; w < (int)blockDim.x / WARP; w += 4) {
      const float4 q = *(const float4 *)&sums.of_warp[buffer][k][w];
      v[k] = v[k] + ((q.x + q.y) + (q.z + q.w));
    }
  }
}

// clear_sums writes zeros, for the warps that complete a multiple of four.
template <int N> __device__ inline void clear_sums(Sums<N> &sums) {
  for (int i = (int)threadIdx.x; i < 2 * N * (NORM_THREADS / WARP); i += (int)blockDim.x)
    (&sums.of_warp[0][0][0])[i] = 0.0f;
  __syncthreads();
}

__device__ inline Four zeros() { return Four{{0.0f, 0.0f, 0.0f, 0.0f}}; }

// columns_of returns four numbers of a vector at any address, or zeros for a null pointer.
__device__ inline Four columns_of(const float *p, int column, bool mine) {
  return p && mine ? Four{{p[column], p[column + 1], p[column + 2], p[column + 3]}} : zeros();
}

template <class T> __device__ inline Four to_four(const Quad<T> &q) {
  return Four{{to_float(q.v[0]), to_float(q.v[1]), to_float(q.v[2]), to_float(q.v[3])}};
}

template <class T> __device__ inline void store_quad(T *p, const Four &f) {
  union {
    uint2 words;
    Quad<T> quad;
  } u;
#pragma unroll
  for (int j = 0; j < 4; j++) u.quad.v[j] = Number<T>::from(f.v[j]);
  *(uint2 *)p = u.words;
}

// layer_norm_rows: the arguments are those of layer_norm.
template <class T>
__device__ inline void layer_norm_rows(float *s, T *y, float *mean, float *rstd, const float *a, const T *d,
                                       const float *gamma, const float *beta, int m, int c, float eps) {
  __shared__ __align__(16) Sums<1> sums;
  clear_sums(sums);
  const int column = 4 * (int)threadIdx.x;
  const bool mine = column < c;
  const Four scale = columns_of(gamma, column, mine), shift = columns_of(beta, column, mine);
  const int begin = (int)blockIdx.x * NORM_ROWS, end = begin + NORM_ROWS < m ? begin + NORM_ROWS : m;
#pragma unroll 1
  for (int row = begin; row < end; row++) {
    const int i = row * c + column;
    Four x = zeros();
    if (mine) {
      x = load4(a + i);
      if (d) {
        const Four add = to_four(load_quad(d + i));
#pragma unroll
        for (int j = 0; j < 4; j++) x.v[j] = x.v[j] + add.v[j];
        store4(s + i, x);
      }
    }
    float center = 0.0f;
    if (mean) {
      float sum[1] = {(x.v[0] + x.v[1]) + (x.v[2] + x.v[3])};
      block_sum(sum, sums, 0);
      center = sum[0] / (float)c;
    }
    float square[1] = {0.0f};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      x.v[j] = mine ? x.v[j] - center : 0.0f;
      square[0] = fmaf(x.v[j], x.v[j], square[0]);
    }
    block_sum(square, sums, mean ? 1 : row & 1);
    const float inverse = 1.0f / sqrtf(square[0] / (float)c + eps);
#pragma unroll
    for (int j = 0; j < 4; j++) x.v[j] = fmaf(x.v[j] * inverse, scale.v[j], shift.v[j]);
    if (mine) store_quad(y + i, x);
    if (threadIdx.x != 0) continue;
    if (mean) mean[row] = center;
    rstd[row] = inverse;
  }
}

// layer_norm_rows_grad: dx, plus e unless that is null, also rounded unless rounded is null; and part = {Σ dy·x̂, Σ dy, Σ dx} of each
// column over the rows of the block. mean may be null.
template <class T>
__device__ inline void layer_norm_rows_grad(float *dx, T *rounded, float *part, const float *x, const T *dy,
                                            const float *gamma, const float *mean, const float *rstd, const float *e,
                                            int m, int c) {
  __shared__ __align__(16) Sums<2> sums;
  clear_sums(sums);
  const int column = 4 * (int)threadIdx.x;
  const bool mine = column < c;
  const Four scale = columns_of(gamma, column, mine);
  const int begin = (int)blockIdx.x * NORM_ROWS, end = begin + NORM_ROWS < m ? begin + NORM_ROWS : m;
  const float each = 1.0f / (float)c;
  Four along_columns = zeros(), down_columns = zeros(), results = zeros();
#pragma unroll 1
  for (int row = begin; row < end; row++) {
    const int i = row * c + column;
    Four normal = zeros(), d = zeros(), added = zeros();
    if (mine) {
      normal = load4(x + i);
      d = to_four(load_quad(dy + i));
      if (e) added = load4(e + i);
    }
    const float center = mean ? mean[row] : 0.0f, inverse = rstd[row];
    float sum[2] = {0.0f, 0.0f}; // of g and g·x̂, with g = gamma·dy
#pragma unroll
    for (int j = 0; j < 4; j++) {
      normal.v[j] = (normal.v[j] - center) * inverse;
      const float g = scale.v[j] * d.v[j];
      sum[0] = sum[0] + g;
      sum[1] = fmaf(g, normal.v[j], sum[1]);
      along_columns.v[j] = fmaf(d.v[j], normal.v[j], along_columns.v[j]);
      down_columns.v[j] = down_columns.v[j] + d.v[j];
    }
    block_sum(sum, sums, row & 1);
    const float first = mean ? sum[0] * each : 0.0f, second = sum[1] * each;
#pragma unroll
    for (int j = 0; j < 4; j++) {
      added.v[j] = fmaf(fmaf(-normal.v[j], second, scale.v[j] * d.v[j] - first), inverse, added.v[j]);
      results.v[j] = results.v[j] + added.v[j];
    }
    if (mine) store4(dx + i, added);
    if (mine && rounded) store_quad(rounded + i, added);
  }
  if (!mine) return;
  part = part + (i64)blockIdx.x * 3 * c + column;
  store4(part, along_columns);
  store4(part + c, down_columns);
  store4(part + 2 * c, results);
}

#define LAYER_NORM_ROWS(T, suffix)                                                                                     \
  KERNEL_OCCUPANCY(NORM_THREADS, 2)                                                                                    \
  layer_norm_rows_##suffix(float *s, T *y, float *mean, float *rstd, const float *a, const T *d, const float *gamma,   \
                           const float *beta, int m, int c, float eps) {                                               \
    layer_norm_rows<T>(s, y, mean, rstd, a, d, gamma, beta, m, c, eps);                                                \
  }                                                                                                                    \
  KERNEL_OCCUPANCY(NORM_THREADS, 2)                                                                                    \
  layer_norm_rows_grad_##suffix(float *dx, T *rounded, float *part, const float *x, const T *dy, const float *gamma,   \
                                const float *mean, const float *rstd, const float *e, int m, int c) {                  \
    layer_norm_rows_grad<T>(dx, rounded, part, x, dy, gamma, mean, rstd, e, m, c);                                     \
  }

LAYER_NORM_ROWS(Half, f16)
LAYER_NORM_ROWS(BFloat, bf16)

// layer_norm_columns adds the parts of 32 columns in a fixed order: of dgamma where blockIdx.y is 0,
// of dbeta where it is 1, and of the sums of dx where it is 2. What is null is left out.
KERNEL(1024) layer_norm_columns(float *dgamma, float *dbeta, float *sums, const float *part, int parts, int c) {
  float *to = blockIdx.y == 0 ? dgamma : blockIdx.y == 1 ? dbeta : sums;
  if (!to) return;
  __shared__ double lines[NORM_LINES][WARP];
  const int lane = (int)threadIdx.x % WARP, line = (int)threadIdx.x / WARP, column = (int)blockIdx.x * WARP + lane;
  double sum = 0.0;
  if (column < c) {
#pragma unroll 8
    for (int k = line; k < parts; k += NORM_LINES) sum = sum + (double)part[((i64)k * 3 + blockIdx.y) * c + column];
  }
  lines[line][lane] = sum;
  __syncthreads();
  if (line != 0 || column >= c) return;
#pragma unroll 8
  for (int k = 1; k < NORM_LINES; k++) sum = sum + lines[k][lane];
  to[column] = (float)sum;
}
