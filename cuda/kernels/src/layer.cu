// The operations around the matrix products of dense layers, with the CPU's bits in float32. In 16
// bits each result is computed in float32 and rounded once.
#include "exponential.cuh"
#include "half.cuh"

// bias: y[i][j] += b[j] of an m×n matrix.
KERNEL(256) bias(float *y, const float *b, i64 mn, int n) {
  i64 i = thread_index();
  if (i < mn) y[i] = y[i] + b[i % n];
}

// bias_sigmoid: y = 1/(1+exp(-(y+b))).
KERNEL(256) bias_sigmoid(float *y, const float *b, i64 mn, int n) {
  i64 i = thread_index();
  if (i < mn) y[i] = sigmoid_of(y[i] + b[i % n]);
}

// bias_relu: y = max(y+b, 0).
KERNEL(256) bias_relu(float *y, const float *b, i64 mn, int n) {
  i64 i = thread_index();
  if (i < mn) y[i] = relu_of(y[i] + b[i % n]);
}

// add_bias: y = x + b[i mod n], and with f max(y, 0).
KERNEL(256) add_bias(float *y, const float *x, const float *b, i64 mn, int n, int f) {
  i64 i = thread_index();
  if (i >= mn) return;
  const float v = x[i] + b[i % n];
  y[i] = f ? relu_of(v) : v;
}

KERNEL(256) sigmoid(float *y, const float *x, i64 n) {
  i64 i = thread_index();
  if (i < n) y[i] = sigmoid_of(x[i]);
}

// sigmoid_grad: dx = dy·y·(1-y). dx may be dy.
KERNEL(256) sigmoid_grad(float *dx, const float *y, const float *dy, i64 n) {
  i64 i = thread_index();
  if (i < n) dx[i] = (dy[i] * y[i]) * (1.0f - y[i]);
}

KERNEL(256) relu(float *y, const float *x, i64 n) {
  i64 i = thread_index();
  if (i < n) y[i] = relu_of(x[i]);
}

// relu_grad: dx = dy where y > 0, else 0. dx may be dy.
KERNEL(256) relu_grad(float *dx, const float *y, const float *dy, i64 n) {
  i64 i = thread_index();
  if (i < n) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

#define SUM_COLUMNS 32
#define SUM_ROWS 64

// column_sums: dst[j] = Σ_i a[i][j] of an m×n matrix in float64, from the first row to the last.
// All threads of a block load a tile; one warp sums it.
template <class T> __device__ inline void column_sums_of(float *dst, const T *a, int m, int n) {
  __shared__ float tile[SUM_ROWS][SUM_COLUMNS];
  const int lane = threadIdx.x % SUM_COLUMNS, row = threadIdx.x / SUM_COLUMNS, rows = blockDim.x / SUM_COLUMNS;
  const int column = blockIdx.x * SUM_COLUMNS + lane;
  double s = 0.0;
  for (int begin = 0; begin < m; begin += SUM_ROWS) {
    __syncthreads();
#pragma unroll 8
    for (int i = row; i < SUM_ROWS; i += rows)
      if (begin + i < m && column < n) tile[i][lane] = to_float(a[(i64)(begin + i) * n + column]);
    __syncthreads();
    if (row != 0 || column >= n) continue;
    const int end = m - begin < SUM_ROWS ? m - begin : SUM_ROWS;
    for (int i = 0; i < end; i++) s = s + (double)tile[i][lane];
  }
  if (row == 0 && column < n) dst[column] = (float)s;
}

KERNEL(256) column_sums(float *dst, const float *a, int m, int n) { column_sums_of<float>(dst, a, m, n); }

// Activation functions after a dense layer, as the 16-bit kernels number them.
#define IDENTITY 0
#define SIGMOID 1
#define RELU 2

__device__ inline float activation_of(float v, int f) {
  return f == SIGMOID ? sigmoid_of(v) : f == RELU ? relu_of(v) : v;
}

// activate: y = f(x + b[i mod n]). b may be null. y may be x.
template <class T> __device__ inline void activate(T *y, const T *x, const float *b, i64 mn, int n, int f) {
  i64 i = thread_index();
  if (i >= mn) return;
  float v = to_float(x[i]);
  if (b) v = v + b[i % n];
  y[i] = Number<T>::from(activation_of(v, f));
}

// activate_grad: dx = dy·f'(x), computed from the output y. dx may be dy.
template <class T> __device__ inline void activate_grad(T *dx, const T *y, const T *dy, i64 n, int f) {
  i64 i = thread_index();
  if (i >= n) return;
  const float out = to_float(y[i]), g = to_float(dy[i]);
  dx[i] = Number<T>::from(f == SIGMOID ? (g * out) * (1.0f - out) : out > 0.0f ? g : 0.0f);
}

// weighted_sum: y = p·a + q·b. b may be null. y may be a or b.
template <class T> __device__ inline void weighted_sum(T *y, const T *a, const T *b, float p, float q, i64 n) {
  i64 i = thread_index();
  if (i >= n) return;
  float v = p * to_float(a[i]);
  if (b) v = v + q * to_float(b[i]);
  y[i] = Number<T>::from(v);
}

#define LAYER_KERNELS(T, name)                                                                                         \
  KERNEL(256) activate_##name(T *y, const T *x, const float *b, i64 mn, int n, int f) {                                \
    activate<T>(y, x, b, mn, n, f);                                                                                    \
  }                                                                                                                    \
  KERNEL(256) activate_grad_##name(T *dx, const T *y, const T *dy, i64 n, int f) {                                     \
    activate_grad<T>(dx, y, dy, n, f);                                                                                 \
  }                                                                                                                    \
  KERNEL(256) weighted_sum_##name(T *y, const T *a, const T *b, float p, float q, i64 n) {                             \
    weighted_sum<T>(y, a, b, p, q, n);                                                                                 \
  }                                                                                                                    \
  KERNEL(256) column_sums_##name(float *dst, const T *a, int m, int n) { column_sums_of<T>(dst, a, m, n); }

LAYER_KERNELS(Half, f16)
LAYER_KERNELS(BFloat, bf16)
