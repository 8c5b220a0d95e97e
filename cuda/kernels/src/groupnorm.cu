// Normalisation of groups of channels: images of m pixels and c channels, whose channels are g groups
// of width neighbours, with an optional ReLU, or sum and ReLU (group normalisation), or with the gate
// σ(v·x) (EvoNorm-S0). The formulas are the CPU's (cpu/norm/group.go, evonorm.go); the sums are
// float64 in another order, which is fixed, so runs are reproducible on any GPU.
//
// A block sums one group of one image, or 32 channels of one image; blockIdx.y and z are the image.
#include "exponential.cuh"
#include "half.cuh"

#define GN_THREADS 256
#define GN_COLUMNS 32
#define GN_ROWS (GN_THREADS / GN_COLUMNS)

// Operation after the affine map.
#define GN_PLAIN 0
#define GN_WITH_RELU 1
#define GN_WITH_ADD_RELU 2

__device__ inline i64 image_index() { return (i64)blockIdx.z * gridDim.y + blockIdx.y; }

// group_block_sum returns the sum of v over the threads of the block, in the order of a tree.
__device__ inline double group_block_sum(double v) {
  __shared__ double all[GN_THREADS];
  __syncthreads();
  all[threadIdx.x] = v;
#pragma unroll
  for (int half = GN_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.x < half) all[threadIdx.x] = all[threadIdx.x] + all[threadIdx.x + half];
  }
  __syncthreads();
  return all[0];
}

// group_statistics: mean and variance of a group of an image, and the affine map of its channels.
// shift may be null.
template <class T>
__device__ inline void group_statistics(float *mean, float *variance, float *scale, float *shift, const T *x, const
                                        float *gamma, const float *beta, i64 images, int m, int c, int g, double eps) {
  const i64 image = image_index();
  if (image >= images) return;
  const int width = c / g, first = blockIdx.x * width, numbers = m * width;
  const T *from = x + image * m * c + first;
  const double start = (double)to_float(from[0]);
  double s1 = 0.0, s2 = 0.0;
  for (int i = threadIdx.x; i < numbers; i += GN_THREADS) {
    const double d = (double)to_float(from[(i64)(i / width) * c + i % width]) - start;
    s1 = s1 + d;
    s2 = fma(d, d, s2);
  }
  s1 = group_block_sum(s1);
  s2 = group_block_sum(s2);
  const double d = s1 / (double)numbers;
  double v = (s2 - s1 * d) / (double)numbers;
  if (v < 0.0) v = 0.0;
  const double center = start + d;
  const float rounded = (float)center;
  if (threadIdx.x == 0) {
    mean[image * g + blockIdx.x] = rounded;
    variance[image * g + blockIdx.x] = (float)v;
  }
  for (int j = first + threadIdx.x; j < first + width; j += GN_THREADS) {
    const double k = (double)gamma[j] / sqrt(v + eps);
    scale[image * c + j] = (float)k;
    if (shift) shift[image * c + j] = (float)((double)beta[j] - (center - (double)rounded) * k);
  }
}

// Number of a thread in its image; inside says that there is one.
struct ImageNumber {
  i64 image, at; // at: index in x
  int channel;
  bool inside;

  __device__ ImageNumber(i64 images, int m, int c) {
    image = image_index();
    const i64 i = thread_index();
    inside = image < images && i < (i64)m * c;
    channel = (int)(i % c);
    at = image * m * c + i;
  }
};

// group_apply: y = (x-mean)·scale + shift, and the operation after it.
template <class T>
__device__ inline void group_apply(T *y, const T *x, const T *z, const float *mean, const float *scale, const float
                                   *shift, i64 images, int m, int c, int g, int epilogue) {
  const ImageNumber p(images, m, c);
  if (!p.inside) return;
  const i64 k = p.image * c + p.channel;
  float v = (to_float(x[p.at]) - mean[p.image * g + p.channel / (c / g)]) * scale[k] + shift[k];
  if (epilogue == GN_WITH_ADD_RELU) v = v + to_float(z[p.at]);
  y[p.at] = Number<T>::from(epilogue == GN_PLAIN ? v : relu_of(v));
}

// evo_apply: y = (x·σ(v·x))·scale + beta.
template <class T>
__device__ inline void evo_apply(T *y, const T *x, const float *v, const float *scale, const float *beta, i64 images,
                                 int m, int c) {
  const ImageNumber p(images, m, c);
  if (!p.inside) return;
  const float a = to_float(x[p.at]);
  y[p.at] = Number<T>::from((a * sigmoid_of(v[p.channel] * a)) * scale[p.image * c + p.channel] + beta[p.channel]);
}

// group_write_sums adds the sums of the threads with the same channel and writes them to
// part[image][which].
template <int N>
__device__ inline void group_write_sums(double *part, const double (&s)[N], i64 image, int c, int channel) {
  __shared__ double rows[N][GN_ROWS][GN_COLUMNS];
  const int column = threadIdx.x % GN_COLUMNS, row = threadIdx.x / GN_COLUMNS;
#pragma unroll
  for (int k = 0; k < N; k++) rows[k][row][column] = s[k];
  __syncthreads();
  if (row >= N || channel >= c) return;
  double sum = 0.0;
#pragma unroll
  for (int r = 0; r < GN_ROWS; r++) sum = sum + rows[row][r][column];
  part[(image * N + row) * c + channel] = sum;
}

// group_grad_sums: part = {Σ dy, Σ dy·(x-mean)} of each channel of an image, dy masked by y > 0 if
// there is a y. dz gets the masked dy if there is one.
template <class T>
__device__ inline void group_grad_sums(double *part, T *dz, const T *x, const T *dy, const T *y, const float *mean, i64
                                       images, int m, int c, int g) {
  const i64 image = image_index();
  if (image >= images) return;
  const int channel = blockIdx.x * GN_COLUMNS + threadIdx.x % GN_COLUMNS;
  double s[2] = {0.0, 0.0};
  if (channel < c) {
    const double center = (double)mean[image * g + channel / (c / g)];
    for (int i = threadIdx.x / GN_COLUMNS; i < m; i += GN_ROWS) {
      const i64 at = (image * m + i) * c + channel;
      float d = to_float(dy[at]);
      if (y && !(to_float(y[at]) > 0.0f)) d = 0.0f;
      if (dz) dz[at] = Number<T>::from(d);
      s[0] = s[0] + (double)d;
      s[1] = fma((double)d, (double)to_float(x[at]) - center, s[1]);
    }
  }
  group_write_sums<2>(part, s, image, c, channel);
}

// gn_grad_factors: the factors of dx: a[image][channel], and b and e of each group of an image.
KERNEL(256)
gn_grad_factors(const double *part, const float *gamma, const float *variance, i64 images, int m, int c, int g,
                double eps, float *a, float *b, float *e) {
  const i64 i = thread_index();
  if (i >= images * g) return;
  const i64 image = i / g;
  const int width = c / g, first = (int)(i % g) * width;
  const double inv = 1.0 / sqrt((double)variance[i] + eps), numbers = (double)m * (double)width;
  double p = 0.0, q = 0.0;
  for (int j = first; j < first + width; j++) {
    p = p + (double)gamma[j] * part[(image * 2) * c + j];
    q = q + (double)gamma[j] * part[(image * 2 + 1) * c + j];
    a[image * c + j] = (float)((double)gamma[j] * inv);
  }
  b[i] = (float)(-(inv * inv * (q * inv)) / numbers);
  e[i] = (float)(-(inv * p) / numbers);
}

// gn_grad_params: the gradients of gamma and beta, over the images in order.
KERNEL(256)
gn_grad_params(const double *part, const float *variance, i64 images, int c, int g, double eps, float *dgamma,
               float *dbeta) {
  const i64 j = thread_index();
  if (j >= c) return;
  const int group = (int)j / (c / g);
  double forGamma = 0.0, forBeta = 0.0;
  for (i64 image = 0; image < images; image++) {
    const double inv = 1.0 / sqrt((double)variance[image * g + group] + eps);
    forBeta = forBeta + part[(image * 2) * c + j];
    forGamma = forGamma + part[(image * 2 + 1) * c + j] * inv;
  }
  dgamma[j] = (float)forGamma;
  dbeta[j] = (float)forBeta;
}

// group_grad_apply: dx = a·dy + ((x-mean)·b + e), dy masked by y > 0 if there is a y.
template <class T>
__device__ inline void group_grad_apply(T *dx, const T *x, const T *dy, const T *y, const float *mean, const float *a,
                                        const float *b, const float *e, i64 images, int m, int c, int g) {
  const ImageNumber p(images, m, c);
  if (!p.inside) return;
  const i64 k = p.image * g + p.channel / (c / g);
  float d = to_float(dy[p.at]);
  if (y && !(to_float(y[p.at]) > 0.0f)) d = 0.0f;
  dx[p.at] = Number<T>::from(a[p.image * c + p.channel] * d + ((to_float(x[p.at]) - mean[k]) * b[k] + e[k]));
}

// Swish is s = σ(t) and w = σ(t)·σ(-t), of one exponential.
struct Swish {
  float s, w;

  __device__ explicit Swish(float t) {
    const double e = exponential(-(double)t), inverse = 1.0 / (1.0 + e);
    s = (float)inverse;
    w = (float)((e * inverse) * inverse);
  }
};

// evo_grad_sums: part = {Σ dy, Σ dy·x·s, Σ dy·x²·w} of each channel of an image, with t = v·x.
template <class T>
__device__ inline void evo_grad_sums(double *part, const T *x, const T *dy, const float *v, i64 images, int m, int c) {
  const i64 image = image_index();
  if (image >= images) return;
  const int channel = blockIdx.x * GN_COLUMNS + threadIdx.x % GN_COLUMNS;
  double sum[3] = {0.0, 0.0, 0.0};
  if (channel < c) {
    for (int i = threadIdx.x / GN_COLUMNS; i < m; i += GN_ROWS) {
      const i64 at = (image * m + i) * c + channel;
      const float d = to_float(dy[at]), u = to_float(x[at]);
      const Swish y(v[channel] * u);
      sum[0] = sum[0] + (double)d;
      sum[1] = sum[1] + (double)d * (double)(u * y.s);
      sum[2] = sum[2] + (double)d * (double)(u * (u * y.w));
    }
  }
  group_write_sums<3>(part, sum, image, c, channel);
}

// evo_grad_factors: the factors of dx: k[image][channel], and q of each group of an image.
KERNEL(256)
evo_grad_factors(const double *part, const float *gamma, const float *variance, i64 images, int m, int c, int g,
                 double eps, float *k, float *q) {
  const i64 i = thread_index();
  if (i >= images * g) return;
  const i64 image = i / g;
  const int width = c / g, first = (int)(i % g) * width;
  const double inv = 1.0 / sqrt((double)variance[i] + eps), numbers = (double)m * (double)width;
  double along = 0.0;
  for (int j = first; j < first + width; j++) {
    along = along + (double)gamma[j] * part[(image * 3 + 1) * c + j];
    k[image * c + j] = (float)((double)gamma[j] * inv);
  }
  q[i] = (float)(-(inv * inv * (along * inv)) / numbers);
}

// evo_grad_params: the gradients of gamma, beta and v, over the images in order.
KERNEL(256)
evo_grad_params(const double *part, const float *gamma, const float *variance, i64 images, int c, int g, double eps,
                float *dgamma, float *dbeta, float *dv) {
  const i64 j = thread_index();
  if (j >= c) return;
  const int group = (int)j / (c / g);
  double forGamma = 0.0, forBeta = 0.0, forV = 0.0;
  for (i64 image = 0; image < images; image++) {
    const double inv = 1.0 / sqrt((double)variance[image * g + group] + eps);
    forBeta = forBeta + part[(image * 3) * c + j];
    forGamma = forGamma + part[(image * 3 + 1) * c + j] * inv;
    forV = forV + part[(image * 3 + 2) * c + j] * ((double)gamma[j] * inv);
  }
  dgamma[j] = (float)forGamma;
  dbeta[j] = (float)forBeta;
  dv[j] = (float)forV;
}

// evo_grad_apply: dx = k·(dy·(s + t·w)) + (x-mean)·q.
template <class T>
__device__ inline void evo_grad_apply(T *dx, const T *x, const T *dy, const float *v, const float *mean, const float *k,
                                      const float *q, i64 images, int m, int c, int g) {
  const ImageNumber p(images, m, c);
  if (!p.inside) return;
  const i64 group = p.image * g + p.channel / (c / g);
  const float u = to_float(x[p.at]), t = v[p.channel] * u;
  const Swish y(t);
  dx[p.at] = Number<T>::from(k[p.image * c + p.channel] * (to_float(dy[p.at]) * (y.s + t * y.w)) +
                             (u - mean[group]) * q[group]);
}

#define GROUP_NORM_KERNELS(T, name)                                                                                    \
  KERNEL(256)                                                                                                          \
  gn_statistics_##name(float *mean, float *variance, float *scale, float *shift, const T *x, const float *gamma,       \
                       const float *beta, i64 images, int m, int c, int g, double eps) {                               \
    group_statistics<T>(mean, variance, scale, shift, x, gamma, beta, images, m, c, g, eps);                           \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  gn_apply_##name(T *y, const T *x, const T *z, const float *mean, const float *scale, const float *shift, i64 images, \
                  int m, int c, int g, int epilogue) {                                                                 \
    group_apply<T>(y, x, z, mean, scale, shift, images, m, c, g, epilogue);                                            \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  gn_grad_sums_##name(double *part, T *dz, const T *x, const T *dy, const T *y, const float *mean, i64 images, int m,  \
                      int c, int g) {                                                                                  \
    group_grad_sums<T>(part, dz, x, dy, y, mean, images, m, c, g);                                                     \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  gn_grad_apply_##name(T *dx, const T *x, const T *dy, const T *y, const float *mean, const float *a, const float *b,  \
                       const float *e, i64 images, int m, int c, int g) {                                              \
    group_grad_apply<T>(dx, x, dy, y, mean, a, b, e, images, m, c, g);                                                 \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  evo_apply_##name(T *y, const T *x, const float *v, const float *scale, const float *beta, i64 images, int m,         \
                   int c) {                                                                                            \
    evo_apply<T>(y, x, v, scale, beta, images, m, c);                                                                  \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  evo_grad_sums_##name(double *part, const T *x, const T *dy, const float *v, i64 images, int m, int c) {              \
    evo_grad_sums<T>(part, x, dy, v, images, m, c);                                                                    \
  }                                                                                                                    \
  KERNEL(256)                                                                                                          \
  evo_grad_apply_##name(T *dx, const T *x, const T *dy, const float *v, const float *mean, const float *k,             \
                        const float *q, i64 images, int m, int c, int g) {                                             \
    evo_grad_apply<T>(dx, x, dy, v, mean, k, q, images, m, c, g);                                                      \
  }

GROUP_NORM_KERNELS(float, f32)
GROUP_NORM_KERNELS(Half, f16)
GROUP_NORM_KERNELS(BFloat, bf16)
