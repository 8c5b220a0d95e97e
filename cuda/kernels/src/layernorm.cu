// Normalisation of the rows of a matrix: layer norm and RMS norm, and their gradients. The formulas
// are the CPU's (cpu/norm/layer.go); the sums are float64 in another order, which is fixed. A warp
// has a row, which stays in the cache between its passes. RMS norm is layer norm with the mean 0. T is
// the number type of y, dy and d; what is normalised and dx are float32.
#include "half.cuh"

#define LAYER_WARPS 8
#define LAYER_COLUMNS 32
#define LAYER_ROWS 8
#define LAYER_PART 64 // kernels.rowsOfPart

// warp_sum returns the sum over the lanes, in the order of a tree, to all of them.
__device__ inline double warp_sum(double v) {
#pragma unroll
  for (int half = WARP / 2; half > 0; half /= 2) v = v + __shfl_xor_sync(ALL_LANES, v, half);
  return v;
}

__device__ inline i64 row_of_warp() { return (i64)blockIdx.x * LAYER_WARPS + threadIdx.x / WARP; }

// layer_norm: with s = a + d, y = gamma·(s-mean)·rstd + beta. Null pointers: d, then s is not written;
// beta; mean, for RMS norm.
template <class T>
__device__ inline void layer_norm(float *s, T *y, float *mean, float *rstd, const float *a, const T *d,
                                  const float *gamma, const float *beta, i64 m, int c, double eps) {
  const i64 row = row_of_warp();
  if (row >= m) return; // all lanes of the warp
  const int lane = threadIdx.x % WARP;
  const float *x = a + row * c;
  double center = 0.0;
  if (d) {
    for (int j = lane; j < c; j += WARP) s[row * c + j] = x[j] + to_float(d[row * c + j]);
    x = s + row * c;
  }
  if (mean) {
    double sum = 0.0;
    for (int j = lane; j < c; j += WARP) sum = sum + (double)x[j];
    center = warp_sum(sum) / (double)c;
  }
  double square = 0.0;
  for (int j = lane; j < c; j += WARP) {
    const double off = (double)x[j] - center;
    square = fma(off, off, square);
  }
  const double inverse = 1.0 / sqrt(warp_sum(square) / (double)c + eps);
  for (int j = lane; j < c; j += WARP) {
    const double normal = ((double)x[j] - center) * inverse, scaled = normal * (double)gamma[j];
    y[row * c + j] = Number<T>::from((float)(beta ? scaled + (double)beta[j] : scaled));
  }
  if (lane != 0) return;
  if (mean) mean[row] = (float)center;
  rstd[row] = (float)inverse;
}

// layer_norm_grad: dx, plus e; and what the rounding of the mean lost of each row. Null pointers:
// mean, for RMS norm; e.
template <class T>
__device__ inline void layer_norm_grad(float *dx, double *lost, const float *x, const T *dy, const float *gamma,
                                       const float *mean, const float *rstd, const float *e, i64 m, int c) {
  const i64 row = row_of_warp();
  if (row >= m) return; // all lanes of the warp
  const int lane = threadIdx.x % WARP;
  const double center = mean ? (double)mean[row] : 0.0, inverse = (double)rstd[row], n = (double)c;
  double slope = 0.0, along = 0.0, off = 0.0;
  for (int j = lane; j < c; j += WARP) {
    const double d = (double)x[row * c + j] - center, g = (double)gamma[j] * (double)to_float(dy[row * c + j]);
    slope = slope + g;
    along = fma(g, d, along);
    off = off + d;
  }
  along = warp_sum(along) / n;
  const double first = mean ? warp_sum(slope) / n : 0.0, delta = mean ? warp_sum(off) / n : 0.0;
  const double second = (along - delta * first) * inverse;
  for (int j = lane; j < c; j += WARP) {
    const i64 i = row * c + j;
    const double normal = ((double)x[i] - center - delta) * inverse, g = (double)gamma[j] * (double)to_float(dy[i]);
    const float v = (float)((g - first - normal * second) * inverse);
    dx[i] = e ? v + e[i] : v;
  }
  if (lane == 0) lost[row] = delta;
}

// layer_norm_sums: part = {Σ dy·x̂, Σ dy} of each column over the rows of a part. blockIdx.y is the
// part.
template <class T>
__device__ inline void layer_norm_sums(double *part, const double *lost, const float *x, const T *dy,
                                       const float *mean, const float *rstd, i64 m, int c) {
  __shared__ double rows[2][LAYER_ROWS][LAYER_COLUMNS];
  const int at = threadIdx.x % LAYER_COLUMNS, line = threadIdx.x / LAYER_COLUMNS;
  const int column = (int)blockIdx.x * LAYER_COLUMNS + at;
  const i64 begin = (i64)blockIdx.y * LAYER_PART, end = begin + LAYER_PART < m ? begin + LAYER_PART : m;
  double s[2] = {0.0, 0.0};
  if (column < c) {
    for (i64 row = begin + line; row < end; row += LAYER_ROWS) {
      const double center = mean ? (double)mean[row] : 0.0, d = (double)to_float(dy[row * c + column]);
      const double normal = ((double)x[row * c + column] - center - lost[row]) * (double)rstd[row];
      s[0] = fma(d, normal, s[0]);
      s[1] = s[1] + d;
    }
  }
  rows[0][line][at] = s[0];
  rows[1][line][at] = s[1];
  __syncthreads();
  if (line >= 2 || column >= c) return;
  double sum = 0.0;
#pragma unroll
  for (int r = 0; r < LAYER_ROWS; r++) sum = sum + rows[line][r][at];
  part[((i64)blockIdx.y * 2 + line) * c + column] = sum;
}

#define LAYER_NORM_KERNELS(T, suffix)                                                                                  \
  KERNEL(256)                                                                                                          \
  layer_norm_##suffix(float *s, T *y, float *mean, float *rstd, const float *a, const T *d, const float *gamma,        \
                      const float *beta, i64 m, int c, double eps) {                                                   \
    layer_norm<T>(s, y, mean, rstd, a, d, gamma, beta, m, c, eps);                                                     \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  layer_norm_grad_##suffix(float *dx, double *lost, const float *x, const T *dy, const float *gamma,                   \
                           const float *mean, const float *rstd, const float *e, i64 m, int c) {                       \
    layer_norm_grad<T>(dx, lost, x, dy, gamma, mean, rstd, e, m, c);                                                   \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  layer_norm_sums_##suffix(double *part, const double *lost, const float *x, const T *dy, const float *mean,           \
                           const float *rstd, i64 m, int c) {                                                          \
    layer_norm_sums<T>(part, lost, x, dy, mean, rstd, m, c);                                                           \
  }

LAYER_NORM_KERNELS(float, f32)
LAYER_NORM_KERNELS(Half, f16)
LAYER_NORM_KERNELS(BFloat, bf16)

// layer_norm_params adds the parts in order. dbeta may be null.
KERNEL(256) layer_norm_params(float *dgamma, float *dbeta, const double *part, int parts, int c) {
  const int column = (int)thread_index();
  if (column >= c) return;
  double first = 0.0, second = 0.0;
#pragma unroll 16
  for (int k = 0; k < parts; k++) {
    first = first + part[(i64)k * 2 * c + column];
    second = second + part[((i64)k * 2 + 1) * c + column];
  }
  dgamma[column] = (float)first;
  if (dbeta) dbeta[column] = (float)second;
}
